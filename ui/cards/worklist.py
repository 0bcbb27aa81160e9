"""Look at next: the five things worth opening, worst first, each a link."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pandas as pd
import streamlit as st

from charts.names import common_prefix, for_html, pattern, shorten
from core.comparison import Comparison, Judgement, Verdict
from core.numbers import count, times_floor
from core.tensors import TensorInfo
from ui import url
from ui.markup import anchor, heading, mark

MOST = 5


def draw(comparison: Comparison, judgement: Judgement, table: pd.DataFrame) -> None:
    """Faults, then watch, then what could not be compared or matched; else the largest errors."""
    rows = list(islice(_rows(comparison, judgement, table), MOST))
    agree = not rows
    if agree:
        rows = list(_largest(table))
    aside = "nothing stands out; the largest errors" if agree and rows else ""
    body = "".join(
        f"<li><b>{number}</b>{row}</li>" for number, row in enumerate(rows, start=1)
    ) or '<li class="px-muted">Nothing was compared and nothing is unmatched.</li>'  # fmt: skip
    st.html(f'{heading("Look at next", aside)}<ol class="px-next">{body}</ol>')


def _item(verdict: Verdict, name: str, why: str, href: str, word: str = "Open") -> str:
    short = for_html(shorten(name, 44))
    full = for_html(name, 1000)
    return (
        f'{mark(verdict)}<span><span class="px-mono" title="{full}">{short}</span>'
        f'<span class="px-muted">{for_html(why, 300)}</span></span>'
        f"{anchor(href, word, title=f'{word} {name}')}"
    )


def _rows(comparison: Comparison, judgement: Judgement, table: pd.DataFrame) -> Iterator[str]:
    for verdict in ("fault", "watch"):
        found = table[table["verdict"] == verdict].sort_values(
            "added", ascending=False, na_position="last", kind="stable"
        )
        first = found[found["pair"] == judgement.first_divergence]
        rest = found[found["pair"] != judgement.first_divergence]
        prefix = common_prefix(list(table["operator"]))
        for row in [*first.to_dict("records"), *rest.to_dict("records")]:
            name = f"{row['operator'].removeprefix(prefix) or 'model'}"
            is_first = row["pair"] == judgement.first_divergence
            yield _item(verdict, name, _why(row, is_first), url.link("tensor", t=row["tensor"]))  # type: ignore[arg-type]
    yield from _uncompared(table)
    yield from _unmatched("reference", comparison.unmatched_reference)
    yield from _unmatched("candidate", comparison.unmatched_candidate)


def _why(row: dict[str, object], is_first: bool) -> str:
    total, added = float(row["times_floor"]), float(row["added"])  # type: ignore[arg-type]
    where = f"{row['slot']}: first divergence, " if is_first else f"{row['slot']}: "
    if total == float("inf"):
        return f"{where}non-finite on one side, or exact values differ"
    if added != added:  # NaN: what was handed in is unknown
        return f"{where}total {times_floor(total)} floor, inputs not recorded"
    return f"{where}adds {times_floor(added)} floor"


def _uncompared(table: pd.DataFrame) -> Iterator[str]:
    for problem, rows in table[table["problem"] != ""].groupby("problem", sort=False):
        name = pattern(rows["operator"].astype(str) + "." + rows["slot"].astype(str))
        why = str(problem) if len(rows) == 1 else f"{count(len(rows))} pairs: {problem}"
        yield _item("uncompared", name, why, url.link("tensor", t=rows["tensor"].iloc[0]))


def _unmatched(side: str, tensors: tuple[TensorInfo, ...]) -> Iterator[str]:
    if tensors:
        name = tensors[0].name if len(tensors) == 1 else f"{count(len(tensors))} tensors"
        why = f"in the {side} only"
        yield _item("uncompared", name, why, url.link("overview", list="unmatched"), "List")


def _largest(table: pd.DataFrame) -> Iterator[str]:
    found = table[table["times_floor"].notna()].nlargest(MOST, "times_floor")
    prefix = common_prefix(list(table["operator"]))
    for row in found.to_dict("records"):
        name = row["operator"].removeprefix(prefix) or "model"
        why = f"{row['slot']}: total {times_floor(row['times_floor'])} floor"
        yield _item(row["verdict"], name, why, url.link("tensor", t=row["tensor"]))
