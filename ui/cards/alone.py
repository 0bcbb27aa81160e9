"""Pairs of different shapes on Drift: their distributions, read in the background."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from analysis.views_unpaired import Unpaired, unpaired
from charts.names import for_html
from core.comparison import Pair
from core.errors import ExplorerError
from core.numbers import count
from language import n_, told
from ui.frame import View

_MOST = 400  # pairs whose distributions are read


def alone_of(view: View, rows: pd.DataFrame) -> Mapping[int, Unpaired]:
    """The distributions of pairs of different shapes; empty while they are being read."""
    pairs = view.comparison.pairs
    wanted = [
        (int(n), pairs[int(n)].reference.id, pairs[int(n)].candidate.id)
        for n in rows.loc[rows["verdict"] == "uncompared", "pair"].head(_MOST)
        if pairs[int(n)].stats is None and _has_both(pairs[int(n)])
    ]
    if not wanted:
        return {}
    try:
        found = view.workspace.ask_later(view.comparison.id, unpaired, pairs=tuple(wanted))
    except ExplorerError as gone:
        st.html(f'<p class="px-note">{for_html(told(gone.message), 300)}</p>')
        return {}
    if found is None:
        st.fragment(_reading, run_every=1.0)(view, tuple(wanted))
        return {}
    words = n_(
        "{n} pair has no element in common (another batch, another length): it is compared by its "
        "distributions alone.",
        "{n} pairs have no element in common (another batch, another length): they are compared by "
        "their distributions alone.",
        len(found),
        n=count(len(found)),
    )
    st.html(f'<p class="px-note">{for_html(words, 300)}</p>')
    return {each.number: each for each in found}


def _reading(view: View, pairs: tuple[tuple[int, str, str], ...]) -> None:
    if view.workspace.ask_later(view.comparison.id, unpaired, pairs=pairs) is not None:
        st.rerun()
    words = n_(
        "The distributions of {n} pair of different shapes are being read.",
        "The distributions of {n} pairs of different shapes are being read.",
        len(pairs),
        n=count(len(pairs)),
    )
    st.html(f'<p class="px-note" role="status">{for_html(words, 300)}</p>')


def _has_both(pair: Pair) -> bool:
    sides = pair.reference, pair.candidate
    return all(t.has_values and t.size for t in sides)
