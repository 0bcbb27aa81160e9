"""The answer first: verdict, the sentence to read aloud, why, and three figures."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from charts.execution import on_path
from charts.names import for_html
from core.comparison import Comparison, Judgement
from core.numbers import count, times_floor
from ui.markup import figures, verdict_word


def draw(comparison: Comparison, judgement: Judgement, table: pd.DataFrame) -> None:
    """The head of the Overview."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="verdict"):
        st.html(
            f'<div class="px-answer"><p>{verdict_word(judgement.verdict)}'
            f'<span class="px-muted">{for_html(scope(table))}</span></p>'
            f"<h1>{for_html(judgement.sentence, 400)}</h1>"
            f'<p class="px-muted">{for_html(judgement.detail, 800)}</p></div>'
        )
        st.html(figures(_figures(comparison, table)), width="content")


def scope(table: pd.DataFrame) -> str:
    """What the verdict covers: steps, ranks and passes."""
    passes = [p for p in ("forward", "backward") if (table["pass"] == p).any()]
    parts = [_numbers("step", table["step"]), _numbers("rank", table["rank"]), " and ".join(passes)]
    return ", ".join(part for part in parts if part)


def _numbers(name: str, values: pd.Series) -> str:
    present = sorted({int(value) for value in values.dropna().unique()})
    if len(present) < 2:
        return f"{name} {present[0]}" if present else ""
    whole = present[-1] - present[0] == len(present) - 1
    return f"{name}s {present[0]} to {present[-1]}" if whole else f"{len(present)} {name}s"


def _figures(comparison: Comparison, table: pd.DataFrame) -> list[tuple[str, str, str]]:
    outputs = on_path(table, "forward")
    outputs = outputs[outputs["slot"].str.startswith(("forward_output", "value"))]
    outputs = outputs[outputs["times_floor"].notna()]
    last = outputs.iloc[-1] if len(outputs) else None
    compared = table[table["problem"] == ""]
    total = len(table) + len(comparison.unmatched_reference)
    at_last = [] if last is None else [("At the last output", times_floor(last["times_floor"]), "")]
    return [
        *at_last,
        ("Pairs compared", count(len(compared)), f"/ {count(total)}"),
        ("Elements compared", count(int(compared["elements"].sum())), ""),
    ]
