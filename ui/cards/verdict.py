"""The answer first: verdict, the sentence to read aloud, why, and three figures."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from charts.names import for_html
from core.comparison import Comparison
from core.numbers import count, share, times_floor
from core.words import word
from language import _, listing, say, told
from ui.cards.findings.answer import said_of
from ui.frame import View
from ui.markup import figures, verdict_word


def draw(view: View) -> None:
    """The head of the Overview."""
    judgement, table = view.judgement, view.table
    with st.container(horizontal=True, vertical_alignment="bottom", key="verdict"):
        st.html(
            f'<div class="px-answer"><p class="px-line-up">{_word(view)}'
            f'<span class="px-muted">{for_html(scope(table))}</span></p>'
            f"<h1>{for_html(told(judgement.sentence), 400)}</h1>"
            f'<p class="px-muted">{for_html(told(judgement.detail), 800)}</p></div>'
        )
        st.html(figures(_figures(view.comparison, table)), width="content")


def _word(view: View) -> str:
    """The verdict; with the side and how sure that is, where the diagnosis knows."""
    found = view.workspace.findings(view.comparison.id)
    if not found or found[0].verdict != view.judgement.verdict:
        return verdict_word(view.judgement.verdict)
    sure = _("confidence {share}", share=share(found[0].confidence, 1))
    return f'{said_of(found[0])}<span class="px-chip">{for_html(sure)}</span>'


def scope(table: pd.DataFrame) -> str:
    """What the verdict covers: steps, ranks and passes."""
    passes = [p for p in ("forward", "backward") if (table["pass"] == p).any()]
    parts = [steps_of(_present(table["step"])), ranks_of(_present(table["rank"]))]
    return told(listing([*parts, " / ".join(told(word(way)) for way in passes)]))


def _present(values: pd.Series) -> list[int]:
    return sorted({int(value) for value in values.dropna().unique()})


def steps_of(steps: Sequence[int]) -> str:
    """Which steps there are, ascending, to be shown by `told`."""
    if len(steps) < 2:
        return say("step {step}", step=steps[0]) if steps else ""
    if steps[-1] - steps[0] == len(steps) - 1:
        return say("steps {first} to {last}", first=steps[0], last=steps[-1])
    return say("{n} steps", n=len(steps))


def ranks_of(ranks: Sequence[int]) -> str:
    """Which ranks there are, ascending, to be shown by `told`."""
    if len(ranks) < 2:
        return say("rank {rank}", rank=ranks[0]) if ranks else ""
    if ranks[-1] - ranks[0] == len(ranks) - 1:
        return say("ranks {first} to {last}", first=ranks[0], last=ranks[-1])
    return say("{n} ranks", n=len(ranks))


def _figures(comparison: Comparison, table: pd.DataFrame) -> list[tuple[str, str, str]]:
    compared = table["problem"] == ""
    last = _last_output(table)
    total = len(table) + len(comparison.unmatched_reference)
    at_last = [] if last is None else [(_("At the last output"), times_floor(last), "")]
    return [
        *at_last,
        (_("Pairs compared"), count(int(compared.sum())), f"/ {count(total)}"),
        (_("Elements compared"), count(int(table["elements"][compared].sum())), ""),
    ]


def _last_output(table: pd.DataFrame) -> float | None:
    """Total error of the last forward output that has one; None without any."""
    slots = [s for s in table["slot"].unique() if str(s).startswith(("forward_output", "value"))]
    forward = table["pass"].isin(("forward", "unknown")) & table["slot"].isin(slots)
    known = table["times_floor"][forward].dropna()
    return float(known.iloc[-1]) if len(known) else None
