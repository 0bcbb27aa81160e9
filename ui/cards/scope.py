"""What the Layers page is asked to show: place, kind of tensor, rows, columns, colour, filters."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from analysis.filters import Filter
from analysis.views_grid import Span
from analysis.views_layers import Stack, stack_of
from analysis.views_rows import EVERY_KIND, kinds, of_kind, trail, under
from charts.names import for_html
from core.errors import NotHereError
from core.numbers import count, times_floor
from language import _, n_, say, told
from metrics import METRICS
from ui import url
from ui.cards import filters
from ui.frame import View
from ui.markup import anchor

# Parameters of this page that stay when one of them changes.
OWN = ("at", "kind", "rows", "cols", "colour", "size", "span", "sort", "up", *filters.PARAMETERS)
METRIC_COLUMNS = (
    "times_floor", "added", "relative_l2", "cosine_distance", "max_abs_error", "ulp_p99",
    "mismatch_fraction", "nonfinite_mismatch", "js_divergence",
)  # fmt: skip
_FACTS = (
    *("pair", "tensor", "operator", "module_class", "op", "slot", "pass", "step", "rank", "call"),
    *("dtype_reference", "dtype_candidate", "shape", "elements", "match", "match_note"),
    *("problem", "verdict"),
)
_COLOURS: Mapping[str, str] = {
    "both": say("Total + added"),
    "added": say("Added"),
    "cosine_distance": say("Cosine"),
    "ulp_max": say("Max ulp"),
}


@dataclass(frozen=True, slots=True)
class Scope:
    """The page's choices and the rows they leave.

    `every` are all rows of the kind, `shown` those that meet the filter, `held` those of them under
    `at`. `span` are the rows of the heat map to show alone, by their place in execution order.
    """

    at: str
    kind: str
    filter: Filter
    by: str
    across: str
    colour: str
    stack: Stack | None
    span: Span | None
    every: pd.DataFrame
    shown: pd.DataFrame
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
            _("Tensors"), {k: k for k in present}, key="kind",
            labels={kind: _(words) for kind, words in present.items()}, visible=False, width=165,
            then=_start_over, default=_first_kind(view, present),
        )  # fmt: skip
        every = of_kind(view.rows[_columns(view)], kind)
        stack = stack_of(every["operator"].unique().tolist(), at)
        by = url.choose(
            _("Rows"), {"operator": "operator", "module": "module"}, key="rows",
            labels={"operator": _("rows: operators"), "module": _("rows: modules")},
            visible=False, width=150, then=_start_over,
        )  # fmt: skip
        across = _across(stack, every)
        colour = "both" if across == "metric" else _colour(view.metric)
        asked = filters.choose(every)
    shown = asked.rows(every)
    return Scope(
        at, kind, asked, by, across, colour, stack, _span(), every, shown, under(shown, at)
    )


def breadcrumb(path: str) -> str:
    """The path of a module, each step a link to the Layers page there."""
    steps, whole = trail(path), _("whole model")
    links = [anchor(here(at=None), whole)] if path else [f"<b>{for_html(whole)}</b>"]
    links += [anchor(here(at=at), segment, title=at) for segment, at in steps[:-1]]
    links += [f"<b>{for_html(segment)}</b>" for segment, _ in steps[-1:]]
    return (
        f'<nav class="px-crumb" aria-label="{for_html(_("Path"))}">{"<i>/</i>".join(links)}</nav>'
    )


def sentence(scope: Scope, view: View) -> None:
    """What the page shows, in words, with what lies outside of the heat map."""
    said = _("Showing <b>{subject}</b>{step}.", subject=_subject(scope), step=_step(view))
    changed = any(url.get(name) for name in OWN)
    clear = anchor(url.link("layers"), _("Clear")) if changed else ""
    parts = [
        said,
        filters.in_words(scope.filter, lambda name: here(**{name: None})),
        for_html(_outside(scope)),
        clear,
    ]
    st.html(
        f'<div class="px-title"><h1>{for_html(_answer(scope.held), 300)}</h1></div>'
        f'<p class="px-says">{" ".join(part for part in parts if part)}</p>'
    )


def _answer(rows: pd.DataFrame) -> str:
    """The page's answer in one sentence: who adds error among what is shown."""
    if rows.empty:
        return _("Nothing here matches.")
    verdicts = rows["verdict"].value_counts()
    guilty = rows[rows["verdict"].isin(("fault", "watch"))]
    operators = [str(name) for name in guilty["operator"].unique()]
    if len(operators) == 1:
        worst = guilty.sort_values("times_floor").iloc[-1]
        added = worst["times_floor"] if pd.isna(worst["added"]) else worst["added"]
        name = operators[0] or _("The model itself")
        return _("{name} adds {times} the floor.", name=name, times=times_floor(float(added)))
    if operators:
        return _("{n} operators add error of their own.", n=count(len(operators)))
    if verdicts.get("inherited", 0):
        inherit = count(verdicts["inherited"])
        return _("No operator here adds error of its own; {n} inherit it.", n=inherit)
    total = count(len(rows))
    if verdicts.get("rounding", 0):
        agree = count(verdicts["rounding"])
        return _("{n} of {total} agree to rounding.", n=agree, total=total)
    return _("None of {total} could be compared.", total=total)


def _subject(scope: Scope) -> str:
    """`12 forward outputs under model.layers.1` (HTML)."""
    shown, total = len(scope.held), len(scope.every)
    noun = kinds(scope.every).get(scope.kind, "tensors") if scope.kind != EVERY_KIND else "tensors"
    noun = _(noun.removesuffix("s") if shown == 1 else noun)
    said = _("{n} {things}", n=count(shown), things=noun)
    if shown == total and shown > 1:
        said = _("all {n} {things}", n=count(shown), things=noun)
    place = for_html(scope.at)
    return _("{things} under {place}", things=said, place=place) if scope.at else said


def _step(view: View) -> str:
    if view.step is not None and view.rank is not None:
        return _(" at step {step} on rank {rank}", step=view.step, rank=view.rank)
    if view.step is not None:
        return _(" at step {step}", step=view.step)
    return _(" on rank {rank}", rank=view.rank) if view.rank is not None else ""


def _outside(scope: Scope) -> str:
    if scope.stack is None or scope.across == "metric":
        return ""
    names, counts = scope.held["operator"].value_counts(), scope.stack
    out = int(sum(n for name, n in names.items() if counts.split(str(name)) is None))
    if not out:
        return ""
    return n_(
        "{number} outside the repeated blocks is in the table only.",
        "{number} outside the repeated blocks are in the table only.",
        out,
    )


def _span() -> Span | None:
    """Rows of the heat map that the address asks for, `36-71`."""
    asked = url.get("span")
    if asked is None:
        return None
    found = re.fullmatch(r"(\d{1,7})-(\d{1,7})", asked)
    if found is None or int(found[1]) >= int(found[2]):
        st.warning(_("The link asks for rows of the heat map that are none. Showing all."))
        return None
    return int(found[1]), int(found[2])


def _columns(view: View) -> list[str]:
    """What the page shows; leaving the other metrics out makes every cut of many rows cheap."""
    metrics = [*METRIC_COLUMNS, *_COLOURS, view.metric]
    return [name for name in dict.fromkeys((*_FACTS, *metrics)) if name in view.rows]


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
    names = [str(name) for name in rows["operator"].unique()] if at else []
    if at and not any(name == at or name.startswith(f"{at}.") for name in names):
        known = {step for name in names for _segment, step in trail(name)}
        near = nearest(at, known)
        raise NotHereError(
            say("This comparison has no module {name!r}.", name=at),
            say("Nearest: {names}.", names=", ".join(near))
            if near
            else say("Start from the whole model on Layers."),
        )
    return at


def _across(stack: Stack | None, rows: pd.DataFrame) -> str:
    names = {
        "layer": _("columns: layers"), "metric": _("columns: metrics"),
        "rank": _("columns: ranks"), "step": _("columns: steps"),
    }  # fmt: skip
    several = [name for name in ("rank", "step") if rows[name].nunique() > 1]
    shown = [*(["layer"] if stack else []), "metric", *several]
    options = {name: name for name in shown}
    return url.choose(
        _("Columns"), options, key="cols", labels=names, visible=False, width=150, then=_start_over
    )


def _colour(metric: str) -> str:
    """What colours the cells; the metric of the context bar is one of the choices."""
    labels = {name: told(label) for name, label in _COLOURS.items()}
    if metric in METRICS and metric not in labels and METRICS[metric].ideal is not None:
        labels[metric] = told(METRICS[metric].label)
    options = {name: name for name in labels}
    return url.choose(
        _("Colour"), options, key="colour", labels=labels, style="segments", visible=False
    )  # fmt: skip


def _start_over() -> None:
    url.put(p=None, span=None)
