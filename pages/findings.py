"""Why the runs part, on which side, how sure that is, and what to check next."""

import streamlit as st

from ui import frame
from ui.cards import notes
from ui.cards.findings import answer, bundle, listed, present, where, why

with frame.page("Findings") as view:
    diagnosis = view.workspace.diagnosis(view.comparison.id)
    finding = listed.chosen(diagnosis)
    if present.is_on():
        present.draw(view, diagnosis, finding)
        st.stop()
    left, right = st.columns([1, 3.6], gap="medium")
    with left:
        listed.draw(diagnosis, finding)
    with right:
        if finding is None:
            answer.nothing(diagnosis)
            where.nearest(view, diagnosis)
        else:
            answer.draw(finding)
            with st.container(horizontal=True, key="finding-actions"):
                notes.button(view, finding.operator)
                bundle.draw(view, diagnosis, finding)
            wide, narrow = st.columns([1.45, 1], gap="medium")
            with wide:
                where.draw(view, diagnosis, finding)
                why.draw(finding)
            with narrow:
                where.sides(diagnosis, finding)
                why.signature(view, finding)
                answer.next_steps(finding)
                why.runner_up(finding)
    frame.foot(frame.command("findings", view.comparison.id, id=finding.id if finding else ""))
