"""What can be compared: two dumps from anywhere, a sample, or a comparison made before."""

import streamlit as st

from store import workspace as store
from ui import frame
from ui.cards import guide, job, recent, samples, settings, slot

with frame.shell():
    workspace = store.default()
    guide.draw()
    left, right = st.columns(2, gap="small")
    with left:
        reference = slot.draw(workspace, "reference")
    with right:
        candidate = slot.draw(workspace, "candidate")
    settings.draw(workspace, reference, candidate)
    job.draw(workspace)
    samples.draw(workspace)
    recent.draw(workspace)
    frame.foot(settings.command(reference, candidate))
