"""Which operators differ, and which of them added the error."""

import streamlit as st

from ui import frame
from ui.cards import layers, operators, scope

with frame.page("Layers") as view:
    asked = scope.choose(view)
    scope.sentence(asked, view)
    wide, narrow = st.columns([1.72, 1], gap="medium")
    with wide:
        height = layers.heat(view, asked)
    with narrow:
        layers.inside(view, asked, height=max(height, 300))
    operators.draw(view, asked)
    frame.foot(frame.show(view, under=asked.at, sort="added"))
