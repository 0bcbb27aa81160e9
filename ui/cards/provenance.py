"""What the two runs say about themselves, side by side, differences first."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from charts.names import for_html
from core.comparison import Comparison, RunSummary
from core.numbers import count, size
from core.words import word
from language import Said, _, say, told
from ui.markup import Side, heading, key, muted, table

_ABSENT = say("not recorded")
_KEYS = {
    "framework": say("Framework"),
    "framework.version": say("Framework version"),
    "format": say("Format"),
    "device": say("Device"),
    "device.name": say("Device name"),
    "dtype_policy": say("Dtype policy"),
    "model_class": say("Model class"),
}
_SIDES: tuple[Side, Side] = ("reference", "candidate")
_SHOWN = 7  # equal rows after these are counted, not listed


def draw(comparison: Comparison) -> None:
    """A table of facts; rows that differ come first and in bold."""
    reference, candidate = _facts(comparison.reference), _facts(comparison.candidate)
    names = list(reference | candidate)
    pairs = [(n, reference.get(n, _ABSENT), candidate.get(n, _ABSENT)) for n in names]
    differing = [p for p in pairs if p[1] != p[2]]
    equal = [p for p in pairs if p[1] == p[2]]
    shown = equal[: max(0, _SHOWN - len(differing))]
    rows = [_row(*p, differs=True) for p in differing] + [_row(*p, differs=False) for p in shown]
    hidden = len(equal) - len(shown)
    more = f"<p>{muted(_('{n} more are equal on both sides', n=hidden))}</p>" if hidden else ""
    head = ["", *(f"{key(side)} {for_html(word(side))}" for side in _SIDES)]
    st.html(
        heading(_("Provenance"), _("{n} of {total} differ", n=len(differing), total=len(pairs)))
        + f'<div class="px-wrap">{table(head, rows, label=_("Provenance of both runs"))}</div>'
        + more
    )


def _row(name: str, reference: str, candidate: str, *, differs: bool) -> tuple[str, str, str]:
    left, right = for_html(reference, 60), for_html(candidate, 60)
    if differs:
        return f"<b>≠</b> {for_html(_words(name))}", left, f"<b>{right}</b>"
    grey = '<span class="px-muted">{}</span>'
    return grey.format(f"= {for_html(_words(name))}"), grey.format(left), grey.format(right)


def _words(name: str) -> str:
    """`math.allow_tf32` -> `Math allow tf32`: a key of the dump as a label."""
    if name in _KEYS:
        return told(_KEYS[name])
    text = name.replace("_", " ").replace(".", " ").strip()
    return text[:1].upper() + text[1:]


def _facts(run: RunSummary) -> dict[str, str]:
    computed = {
        _("tensors"): count(run.tensors),
        _("size"): size(run.nbytes),
        _("content"): run.content[:12],
    }
    return {name: str(value) for name, value in run.provenance.items()} | computed


def problems(comparison: Comparison) -> None:
    """Items of the dumps that were refused or could not be read: code, where, message."""
    sides = {"reference": comparison.reference, "candidate": comparison.candidate}
    lines = [
        {
            _("side"): told(word(side)),
            _("code"): p.code,
            _("where"): p.where,
            _("what"): told(p.message) if isinstance(p.message, Said) else p.message,
        }
        for side, run in sides.items()
        for p in run.problems
    ]
    if lines:
        title = _("{lines} items of the dumps could not be read", lines=count(len(lines)))
        with st.expander(title, key="problems"):
            st.dataframe(pd.DataFrame(lines), hide_index=True)
