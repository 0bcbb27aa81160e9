"""Whether the two runs part, where, and how much was compared."""

import streamlit as st

from ui import frame
from ui.cards import coverage, notes, path, provenance, verdict, worklist

with frame.page("Overview") as view:
    verdict.draw(view)
    path.draw(view)
    left, middle, right = st.columns([1.4, 0.8, 1.3], gap="medium")
    with left:
        worklist.draw(view.comparison, view.judgement, view.rows)
    with middle:
        coverage.draw(view.comparison, view.table)
    with right:
        provenance.draw(view.comparison)
    notes.everywhere(view)
    coverage.unmatched(view.comparison)
    provenance.problems(view.comparison)
    frame.foot(frame.show(view))
