"""What the two runs say about themselves, side by side, differences first."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from charts.names import for_html
from core.comparison import Comparison, RunSummary
from core.numbers import count, size
from ui.markup import heading, key, table

_ABSENT = "not recorded"
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
    more = f'<p class="px-muted">{hidden} more are equal on both sides</p>' if hidden else ""
    head = ["", f"{key('reference')} reference", f"{key('candidate')} candidate"]
    st.html(
        heading("Provenance", f"{len(differing)} of {len(pairs)} differ")
        + f'<div class="px-wrap">{table(head, rows, label="Provenance of both runs")}</div>{more}'
    )


def _row(name: str, reference: str, candidate: str, *, differs: bool) -> tuple[str, str, str]:
    left, right = for_html(reference, 60), for_html(candidate, 60)
    if differs:
        return f"<b>≠</b> {for_html(_words(name))}", left, f"<b>{right}</b>"
    grey = '<span class="px-muted">{}</span>'
    return grey.format(f"= {for_html(_words(name))}"), grey.format(left), grey.format(right)


def _words(name: str) -> str:
    """`math.allow_tf32` -> `Math allow tf32`: a key of the dump as a label."""
    text = name.replace("_", " ").replace(".", " ").strip()
    return text[:1].upper() + text[1:]


def _facts(run: RunSummary) -> dict[str, str]:
    computed = {
        "tensors": count(run.tensors),
        "size": size(run.nbytes),
        "content": run.content[:12],
    }
    return {name: str(value) for name, value in run.provenance.items()} | computed


def problems(comparison: Comparison) -> None:
    """Items of the dumps that were refused or could not be read: code, where, message."""
    sides = {"reference": comparison.reference, "candidate": comparison.candidate}
    lines = [
        {"side": side, "code": p.code, "where": p.where, "what": p.message}
        for side, run in sides.items()
        for p in run.problems
    ]
    if lines:
        title = f"{count(len(lines))} items of the dumps could not be read"
        with st.expander(title, key="problems"):
            st.dataframe(pd.DataFrame(lines), hide_index=True)
