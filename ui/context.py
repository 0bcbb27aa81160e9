"""The context bar: which pair, which step and rank, find, metric, copy link."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

import pandas as pd
import streamlit as st

from charts.names import for_html, plain
from core.comparison import Comparison
from core.words import word
from language import _, say, told
from metrics import METRICS
from ui import browser, url
from ui.markup import Side, key

TIMES_FLOOR = "times_floor"
_ALL = {"step": say("all steps"), "rank": say("all ranks")}
_MOST_NAMES = 3000  # in the finder; more would make every page heavy


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the bar's pickers say; None for step and rank means all."""

    step: int | None
    rank: int | None
    metric: str


def bar(comparison: Comparison, table: pd.DataFrame) -> Chosen:
    """Draws the bar and returns what it says."""
    with st.container(horizontal=True, vertical_alignment="center", key="context"):
        st.html(_pair(comparison), width="content")
        step, rank = _number(_("Step"), "step", table), _number(_("Rank"), "rank", table)
        st.space("stretch")
        _find(table)
        metric = url.choose(
            _("Metric"), metrics(), key="m", labels=metric_labels(), visible=False, width=190
        )
        browser.copy_link()
        st.html(_present(), width="content")
    return Chosen(step, rank, metric)


def narrowed(table: pd.DataFrame, step: int | None, rank: int | None) -> pd.DataFrame:
    """The rows of one step and one rank; None keeps all."""
    keep = pd.Series(True, index=table.index)
    for column, value in (("step", step), ("rank", rank)):
        if value is not None:
            keep &= table[column] == value
    return table[keep]


def metrics() -> Mapping[str, str]:
    """What the metric picker offers: the floor first, then the registry in its order."""
    return {TIMES_FLOOR: TIMES_FLOOR} | {name: name for name in METRICS}


def metric_labels() -> Mapping[str, str]:
    """What the metric picker shows."""
    return {TIMES_FLOOR: _("× floor")} | {
        name: told(metric.label) for name, metric in METRICS.items()
    }


def _pair(comparison: Comparison) -> str:
    reference, candidate = comparison.reference.label, comparison.candidate.label
    return (
        f'<div class="px-pair">{_side("reference", reference)}<span>·</span>'
        f"{_side('candidate', candidate)}</div>"
    )


def _present() -> str:
    href = html.escape(url.link("findings", present=1))
    return f'<a class="px-go px-button" href="{href}">{for_html(_("Present"))}</a>'


def _side(side: Side, label: str) -> str:
    said = "" if label.lower().endswith(side) else f"<span>{for_html(word(side))}</span>"
    return f'{key(side)}<b title="{for_html(label)}">{for_html(label, 40)}</b>{said}'


def _number(label: str, name: str, table: pd.DataFrame) -> int | None:
    """A picker of step or rank, only when there are several; the first choice is all of them."""
    present = sorted({int(value) for value in table[name].dropna()})
    if len(present) < 2:
        return None
    options: dict[str, int | None] = {"all": None} | {str(value): value for value in present}
    labels = {"all": told(_ALL[name])} | {str(v): f"{told(word(name))} {v}" for v in present}
    return url.choose(label, options, key=name, labels=labels, visible=False, width=120)


def _find(table: pd.DataFrame) -> None:
    every = _names(table)
    names = dict(islice(every.items(), _MOST_NAMES))
    cut = _(
        "Find among the first {n:,} of {total:,} names",
        n=_MOST_NAMES,
        total=len(every),
    )
    st.selectbox(
        _("Find a module or tensor"),
        list(names),
        index=None,
        key="find",
        placeholder=cut if len(every) > len(names) else _("Find a module or tensor   /"),
        format_func=lambda name: plain(name, 200),
        label_visibility="collapsed",
        on_change=_open,
        args=(names,),
        width=300,
    )


def _names(table: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Shown name -> parameter of the address and its value: operators first, then tensors."""
    operators = {str(name): ("at", str(name)) for name in table["operator"].unique() if name}
    tensors = {str(name): ("t", str(name)) for name in table["tensor"]}
    return operators | tensors


def _open(names: Mapping[str, tuple[str, str]]) -> None:
    chosen = st.session_state["find"]
    if chosen is None:
        return
    st.session_state["find"] = None
    parameter, value = names[chosen]
    url.go_after("tensor" if parameter == "t" else "layers", **{parameter: value})
