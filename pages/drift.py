"""Which distributions moved most, wherever in the tensor."""

import streamlit as st

from ui import frame
from ui.cards import drift, moving

with frame.page("Drift") as view:
    ranking = drift.choose(view)
    wide, narrow = st.columns([1.5, 1], gap="medium")
    with wide:
        drift.along(view, ranking)
    with narrow:
        drift.distribution(view, ranking)
    moving.draw(view, ranking.chosen, {n: a.stats for n, a in ranking.alone.items()})
    drift.ranked(ranking)
    frame.foot(frame.show(view, sort=ranking.metric))
