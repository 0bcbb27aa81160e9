"""What somebody without access to this server is given: choices, what leaves, a preview."""

import streamlit as st

from ui import frame
from ui.cards import report

with frame.page("Report") as view:
    narrow, wide = st.columns([1, 2.4], gap="medium")
    with narrow:
        asked = report.choose()
        report.leaves(view, asked)
    with wide:
        report.preview(view, asked)
    frame.foot(frame.command("report", view.comparison.id, names=asked.names, worst=asked.worst))
