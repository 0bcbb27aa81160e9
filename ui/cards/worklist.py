"""Look at next: the five things worth opening, worst first, each a link."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import pandas as pd
import streamlit as st

from charts.names import common_prefix, for_html, pattern, shorten
from core.comparison import Comparison, Judgement, Verdict
from core.numbers import count, times_floor
from core.tensors import TensorInfo
from language import _, told
from ui import url
from ui.markup import anchor, heading, mark

MOST = 5
_ENOUGH = 2000  # rows among which the largest of five places are found
_KEYS = "<kbd>j</kbd><kbd>k</kbd>"


def draw(comparison: Comparison, judgement: Judgement, table: pd.DataFrame) -> None:
    """Faults, then watch, then what could not be compared or matched; else the largest errors."""
    rows = list(islice(_rows(comparison, judgement, table), MOST))
    agree = not rows
    rows += islice(_largest(table), MOST - len(rows))
    aside = _("nothing stands out; the largest errors") if agree and rows else ""
    nothing = _("Nothing was compared and nothing is unmatched.")
    body = "".join(
        f"<li><b>{number}</b>{row}</li>" for number, row in enumerate(rows, start=1)
    ) or f'<li class="px-muted">{for_html(nothing)}</li>'  # fmt: skip
    with st.container(key="next"):
        st.html(f'{heading(_("Look at next"), aside, _KEYS)}<ol class="px-next">{body}</ol>')


def _item(verdict: Verdict, name: str, why: str, href: str, word: str = "") -> str:
    word = word or _("Open")
    short = for_html(shorten(name, 44))
    full = for_html(name, 1000)
    return (
        f'{mark(verdict)}<span><span class="px-mono" title="{full}">{short}</span>'
        f'<span class="px-muted">{for_html(why, 300)}</span></span>'
        f"{anchor(href, word, title=_('{word} {name}', word=word, name=name))}"
    )


def _rows(comparison: Comparison, judgement: Judgement, table: pd.DataFrame) -> Iterator[str]:
    prefix = common_prefix([str(name) for name in table["operator"].unique()])
    for verdict in ("fault", "watch"):
        found = table[table["verdict"] == verdict].sort_values(
            "added", ascending=False, na_position="last", kind="stable"
        )
        is_first = found["pair"] == judgement.first_divergence
        places = found["operator"].value_counts()
        for row in pd.concat([found[is_first], found[~is_first]]).drop_duplicates(
            ["operator", "slot"]
        ).head(MOST).to_dict("records"):  # fmt: skip
            name = f"{row['operator'].removeprefix(prefix)}" or _("model")
            why = _why(row, row["pair"] == judgement.first_divergence, places[row["operator"]])
            yield _item(verdict, name, why, url.link("tensor", t=row["tensor"]))
    yield from _uncompared(table)
    yield from _unmatched("reference", comparison.unmatched_reference)
    yield from _unmatched("candidate", comparison.unmatched_candidate)


def _why(row: Mapping[Any, Any], is_first: bool, places: int) -> str:
    total, added, slot = float(row["times_floor"]), float(row["added"]), str(row["slot"])
    if math.isinf(total):
        said = _("{slot}: non-finite on one side, or exact values differ", slot=slot)
    elif math.isnan(added):  # what was handed in is unknown
        times = times_floor(total)
        said = _("{slot}: total {times} floor, inputs not recorded", slot=slot, times=times)
    else:
        said = _("{slot}: adds {times} floor", slot=slot, times=times_floor(added))
    if is_first:
        said = _("first divergence, {what}", what=said)
    return _("{what}, worst of {n}", what=said, n=count(int(places))) if places > 1 else said


def _uncompared(table: pd.DataFrame) -> Iterator[str]:
    for _problem, rows in table[table["problem"] != ""].groupby("problem", sort=False):
        name = pattern(rows["operator"].astype(str) + "." + rows["slot"].astype(str))
        why = told(rows["problem"].iloc[0])  # the key of the group forgot how it was said
        if len(rows) > 1:
            why = _("{n} pairs: {problem}", n=count(len(rows)), problem=why)
        yield _item("uncompared", name, why, url.link("tensor", t=rows["tensor"].iloc[0]))


def _unmatched(side: str, tensors: tuple[TensorInfo, ...]) -> Iterator[str]:
    if tensors:
        name = tensors[0].name
        if len(tensors) > 1:
            name = _("{n} tensors", n=count(len(tensors)))
        why = _("in the reference only") if side == "reference" else _("in the candidate only")
        yield _item("uncompared", name, why, url.link("overview", list="unmatched"), _("List"))


def _largest(table: pd.DataFrame) -> Iterator[str]:
    """What is explained, the largest first: it is where to look once the rest was seen."""
    quiet = table["verdict"].isin(("inherited", "rounding"))
    sizes = table["times_floor"][quiet].dropna()
    largest = sizes.nlargest(_ENOUGH).index
    found = table.loc[largest, ["operator", "slot", "verdict", "times_floor", "tensor"]]
    prefix = common_prefix([str(name) for name in table["operator"].unique()])
    for row in found.drop_duplicates(["operator", "slot"]).head(MOST).to_dict("records"):
        name = row["operator"].removeprefix(prefix) or _("model")
        times = times_floor(row["times_floor"])
        why = _("{slot}: total {times} floor, rounding", slot=row["slot"], times=times)
        if row["verdict"] == "inherited":
            why = _("{slot}: total {times} floor, inherited", slot=row["slot"], times=times)
        yield _item(row["verdict"], name, why, url.link("tensor", t=row["tensor"]))
