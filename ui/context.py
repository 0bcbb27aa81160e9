"""The context bar: which pair, which step and rank, find, metric, copy link."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from analysis.views_rows import EVERY_KIND, has_inside
from charts.names import for_html, plain
from core.comparison import Comparison
from core.words import word
from language import _, say, told
from metrics import METRICS
from ui import browser, url
from ui.markup import Side, key

TIMES_FLOOR = "times_floor"
_ALL = {"step": say("all steps"), "rank": say("all ranks")}
_MOST_NAMES = 1500  # in the finder; more would make every page heavy


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
    present = sorted({int(value) for value in table[name].dropna().unique()})
    if len(present) < 2:
        return None
    options: dict[str, int | None] = {"all": None} | {str(value): value for value in present}
    every = _("all steps") if name == "step" else _("all ranks")
    one = _("step {n}") if name == "step" else _("rank {n}")
    labels = {"all": every} | {str(v): one.replace("{n}", str(v)) for v in present}
    return url.choose(label, options, key=name, labels=labels, visible=False, width=120)


def _find(table: pd.DataFrame) -> None:
    """Search: modules, then tensors are offered while one types, as many as a page can carry.

    Anything else that is typed is found too: `found` looks at all names.
    """
    modules = [str(name) for name in table["operator"].unique() if name]
    tensors = map(str, table["tensor"].head(max(0, _MOST_NAMES - len(modules))))
    st.selectbox(
        _("Find a module or tensor"),
        list(dict.fromkeys([*modules[:_MOST_NAMES], *tensors])),
        index=None,
        key="find",
        placeholder=_("Find a module or tensor   /"),
        format_func=lambda name: plain(name, 200),
        label_visibility="collapsed",
        accept_new_options=True,
        on_change=_open,
        args=(table,),
        width=300,
    )


def _open(table: pd.DataFrame) -> None:
    asked = st.session_state["find"]
    if asked is None:
        return
    st.session_state["find"] = None
    page, parameter, value = found(table, str(asked))
    everything = {"kind": EVERY_KIND} if parameter == "q" else {}
    url.go_after(page, **{parameter: value}, **everything)


def found(table: pd.DataFrame, asked: str) -> tuple[str, str, str]:
    """Page, parameter and value that show what was asked for.

    A module opens on Layers, also by a part of its path that no other has; a tensor by its id.
    Anything else filters the list of Layers as words.
    """
    names = [str(name) for name in table["operator"].unique()]
    if asked in names or has_inside(names, asked):
        return "layers", "at", asked
    alike = [name for name in names if asked in name]
    if len(alike) == 1:
        return "layers", "at", alike[0]
    if (table["tensor"] == asked).any():
        return "tensor", "t", asked
    return "layers", "q", asked
