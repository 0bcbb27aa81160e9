"""One element, picked in the slice or typed: both values with their bits."""

from __future__ import annotations

import math

import streamlit as st

from analysis.views_elements import element
from charts.names import for_html
from core.comparison import Pair
from language import _
from ui import url
from ui.cards.elements import rows_of
from ui.cards.values import names
from ui.frame import View

_KEY = "typed-element"


def draw(view: View, pair: Pair, picked: tuple[int, ...] | None, wrong: str = "") -> None:
    """A field for the index, and the element it names; `wrong` says why it names none."""
    st.session_state[_KEY] = url.get("el") or ""
    shape = ", ".join(str(n) for n in pair.shape)
    with st.container(horizontal=True, vertical_alignment="center", key="inspector"):
        st.text_input(
            _("Element"),
            key=_KEY,
            on_change=_typed,
            placeholder=", ".join("0" for _axis in pair.shape),
            help=_(
                "One index for each axis, separated by commas; the shape is {shape}. A negative "
                "index counts from the end: −1 is the last.",
                shape=shape or _("scalar"),
            ),
            width=240,
        )
        st.html(f'<p class="px-note">{for_html(wrong or _said(picked), 400)}</p>')
    if picked is None:
        return
    found = view.workspace.ask(view.comparison.id, element, index=picked, **names(pair))
    st.html(rows_of((found,), pair, unit=math.nan, head=_("Picked element")))


def _said(picked: tuple[int, ...] | None) -> str:
    """What the index means, where that is not plain."""
    asked = url.get("el") or ""
    if picked is None:
        return _("Click an element, or type its index, to see its bits.")
    if "-" in asked or "−" in asked:
        return _(
            "{asked} counts from the end: this is [{index}].",
            asked=asked, index=", ".join(map(str, picked)),
        )  # fmt: skip
    return ""


def _typed() -> None:
    text = str(st.session_state[_KEY]).strip().strip("[]()")
    url.put(el=text.replace("−", "-") or None)
