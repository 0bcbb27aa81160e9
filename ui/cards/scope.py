"""What the Layers page is asked to show: place, kind of tensor, rows, columns, colour, words."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from analysis.views_layers import Stack, stack_of
from analysis.views_rows import EVERY_KIND, kinds, matching, of_kind, trail, under
from charts.names import for_html
from core.errors import NotHereError
from core.numbers import count, times_floor
from metrics import METRICS
from ui import url
from ui.frame import View
from ui.markup import anchor

# Parameters of this page that stay when one of them changes.
OWN = ("at", "kind", "rows", "cols", "colour", "q", "sort", "up")
_COLOURS: Mapping[str, str] = {
    "both": "Total + added",
    "added": "Added",
    "cosine_distance": "Cosine",
    "ulp_max": "Max ulp",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """The page's choices and the rows they leave.

    `every` are all rows of the kind, `held` those of them under `at` that match the words.
    """

    at: str
    kind: str
    words: str
    by: str
    across: str
    colour: str
    stack: Stack | None
    every: pd.DataFrame
    held: pd.DataFrame


def here(**changes: object) -> str:
    """Address of this page with some parameters changed; the page of the table starts over."""
    kept = {name: url.get(name) for name in OWN}
    return url.link("layers", **(kept | changes))


def choose(view: View) -> Scope:
    """Breadcrumb and pickers; NotHereError when the address names a module that is not there."""
    at = _place(view.rows)
    with st.container(horizontal=True, vertical_alignment="center", key="layers-bar"):
        st.html(breadcrumb(at))
        present = kinds(view.rows)
        kind = url.choose(
            "Tensors", {k: k for k in present}, key="kind", labels=present,
            visible=False, width=170, then=_start_over, default=_first_kind(view, present),
        )  # fmt: skip
        every = of_kind(view.rows, kind)
        stack = stack_of(every["operator"].astype(str), at)
        by = url.choose(
            "Rows", {"operator": "operator", "module": "module"}, key="rows",
            labels={"operator": "rows: operators", "module": "rows: modules"},
            visible=False, width=160,
        )  # fmt: skip
        across = _across(stack, every)
        colour = "both" if across == "metric" else _colour(view.metric)
        words = _words()
    held = matching(under(every, at), words)
    return Scope(at, kind, words, by, across, colour, stack, every, held)


def breadcrumb(path: str) -> str:
    """The path of a module, each step a link to the Layers page there."""
    steps = trail(path)
    links = [anchor(here(at=None), "whole model")] if path else ["<b>whole model</b>"]
    links += [anchor(here(at=at), segment, title=at) for segment, at in steps[:-1]]
    links += [f"<b>{for_html(segment)}</b>" for segment, _ in steps[-1:]]
    return f'<nav class="px-crumb" aria-label="Path">{"<i>/</i>".join(links)}</nav>'


def sentence(scope: Scope, view: View) -> None:
    """What the page shows, in words, with what lies outside of the heat map."""
    parts = [f"<b>{_subject(scope)}</b>", _step(view), f"matching “{for_html(scope.words)}”"]
    text = " ".join(part for part in parts[: 3 if scope.words else 2] if part)
    outside = _outside(scope)
    changed = any(url.get(name) for name in OWN)
    clear = f" {anchor(url.link('layers'), 'Clear')}" if changed else ""
    st.html(
        f'<div class="px-title"><h1>{for_html(_answer(scope.held), 300)}</h1></div>'
        f'<p class="px-says">Showing {text}.{for_html(outside)}{clear}</p>'
    )


def _answer(rows: pd.DataFrame) -> str:
    """The page's answer in one sentence: who adds error among what is shown."""
    if rows.empty:
        return "Nothing here matches."
    verdicts = rows["verdict"].value_counts()
    guilty = rows[rows["verdict"].isin(("fault", "watch"))]
    operators = list(dict.fromkeys(guilty["operator"].astype(str)))
    if len(operators) == 1:
        worst = guilty.sort_values("times_floor").iloc[-1]
        added = worst["times_floor"] if pd.isna(worst["added"]) else worst["added"]
        return f"{operators[0] or 'The model itself'} adds {times_floor(float(added))} the floor."
    if operators:
        return f"{count(len(operators))} operators add error of their own."
    if verdicts.get("inherited", 0):
        return f"No operator here adds error of its own; {count(verdicts['inherited'])} inherit it."
    if verdicts.get("rounding", 0):
        return f"{count(verdicts['rounding'])} of {count(len(rows))} agree to rounding."
    return f"None of {count(len(rows))} could be compared."


def _subject(scope: Scope) -> str:
    shown, total = len(scope.held), len(scope.every)
    noun = kinds(scope.every).get(scope.kind, "tensors") if scope.kind != EVERY_KIND else "tensors"
    noun = noun.removesuffix("s") if shown == 1 else noun
    every = "all " if shown == total and shown > 1 else ""
    place = f" under {for_html(scope.at)}" if scope.at else ""
    return f"{every}{count(shown)} {noun}{place}"


def _step(view: View) -> str:
    chosen = [("step", view.step), ("rank", view.rank)]
    named = [f"{name} {value}" for name, value in chosen if value is not None]
    return f"at {' and '.join(named)}" if named else ""


def _outside(scope: Scope) -> str:
    if scope.stack is None or scope.across == "metric":
        return ""
    operators = scope.held["operator"].astype(str)
    out = int(sum(scope.stack.split(name) is None for name in operators))
    return f" {count(out)} outside the repeated blocks are in the table only." if out else ""


def _first_kind(view: View, present: Mapping[str, str]) -> str | None:
    """The kind of tensor at which the runs part, so that the page opens on what was found."""
    first = view.judgement.first_divergence
    if first is None:
        return None
    kind = str(view.table["slot"].to_list()[first]).partition(".")[0]
    return kind if kind in present else None


def nearest(asked: str, names: Iterable[str], most: int = 2000) -> list[str]:
    """Up to three similar names; of many names only those with the same last part are weighed."""
    known = list(names)
    if len(known) > most:
        tail = re.split(r"[./]", asked)[-1]
        known = [name for name in known if name.endswith(tail)][:most]
    return difflib.get_close_matches(asked, known, n=3)


def _place(rows: pd.DataFrame) -> str:
    at = url.get("at") or ""
    operators = rows["operator"].astype(str)
    if at and not ((operators == at) | operators.str.startswith(f"{at}.")).any():
        known = {step for name in operators.unique() for _, step in trail(name)}
        near = nearest(at, known)
        raise NotHereError(
            f"This comparison has no module {at!r}.",
            f"Nearest: {', '.join(near)}." if near else "Start from the whole model on Layers.",
        )
    return at


def _across(stack: Stack | None, rows: pd.DataFrame) -> str:
    names = {
        "layer": "columns: layers", "metric": "columns: metrics", "rank": "columns: ranks",
        "step": "columns: steps",
    }  # fmt: skip
    several = [name for name in ("rank", "step") if rows[name].nunique() > 1]
    shown = [*(["layer"] if stack else []), "metric", *several]
    options = {name: name for name in shown}
    return url.choose("Columns", options, key="cols", labels=names, visible=False, width=160)


def _colour(metric: str) -> str:
    """What colours the cells; the metric of the context bar is one of the choices."""
    labels = dict(_COLOURS)
    if metric in METRICS and metric not in labels and METRICS[metric].ideal is not None:
        labels[metric] = METRICS[metric].label
    options = {name: name for name in labels}
    return url.choose(
        "Colour", options, key="colour", labels=labels, style="segments", visible=False
    )  # fmt: skip


def _words() -> str:
    words = url.get("q") or ""
    st.session_state["layers-words"] = words
    st.text_input(
        "Filter", key="layers-words", placeholder="Filter: name, class, dtype, verdict",
        label_visibility="collapsed", width=240, on_change=_save_words,
    )  # fmt: skip
    return words


def _save_words() -> None:
    url.put(q=st.session_state["layers-words"] or None, p=None)


def _start_over() -> None:
    url.put(p=None)
