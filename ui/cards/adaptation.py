"""How the two tensors of a pair became comparable: who was paired, how surely, and the steps."""

from __future__ import annotations

import streamlit as st

from analysis.adapt.text import step_in_words
from charts.names import for_html
from core.comparison import Pair
from core.numbers import count, error
from language import _
from ui.markup import muted

_PROSE = 300  # characters of a step with its shapes


def draw(pair: Pair) -> None:
    """A line a step, and what confirmed them; nothing for a pair compared as it stands."""
    adaptation = pair.adaptation
    if adaptation is None:
        return
    parts = len(pair.members("reference")), len(pair.members("candidate"))
    steps = "".join(
        f"<li>{for_html(step_in_words(step), _PROSE)}</li>" for step in adaptation.steps
    )
    checked = _("decided by the shapes alone or by hand")
    if adaptation.error == adaptation.error:  # not NaN
        checked = _(
            "relative error of a sample after these steps: {error}", error=error(adaptation.error)
        )
    whole = _(
        "{parts} tensors of the reference, {parts2} of the candidate",
        parts=count(parts[0]),
        parts2=count(parts[1]),
    )
    title, said = (
        _("Adapted before comparing"),
        _("{whole}; {checked}.", whole=whole, checked=checked),
    )
    st.html(
        f'<div class="px-explain"><h2>{for_html(title)}</h2><ol>{steps}</ol>'
        f"<p>{muted(said)}</p></div>"
    )
