"""Parts of the Drift page: the ranked table, the metric along execution order, one distribution."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from analysis.views_detail import octaves
from analysis.views_distributions import value_curves
from analysis.views_rows import kinds, of_kind
from analysis.views_unpaired import Unpaired
from charts import drift
from charts.detail import exponent_histogram
from charts.execution import blocks
from charts.histograms import value_histogram
from charts.names import common_prefix, for_html, shorten
from charts.template import CONFIG
from core.numbers import UNDEFINED, count, error
from core.words import word
from language import _, told
from metrics import METRICS
from ui import chart, url
from ui.cards.alone import alone_of
from ui.cards.distributions import scales, values_title
from ui.cards.tensor import number_of
from ui.frame import View
from ui.kept import kept
from ui.markup import anchor, heading, key, muted, table, verdict_word

PAGE = 50
FEW = 1000  # elements below which a histogram says little
COLUMNS = (
    "js_divergence", "ks", "psi", "wasserstein_1_relative", "quantile_shift_median",
    "quantile_shift_p99",
)  # fmt: skip
_OWN = ("t", "drift", "kind", "scale")


@dataclass(frozen=True, slots=True)
class Ranking:
    """Rows of the chosen kind with a value, most moved first; `every` also has those without."""

    metric: str
    every: pd.DataFrame
    rows: pd.DataFrame
    chosen: int  # pair shown at the right, -1 when there is none
    alone: Mapping[int, Unpaired]  # of pairs that have no element in common


def choose(view: View) -> Ranking:
    """Pickers and the standing line; NotHereError when the address names a tensor not here."""
    family = {name: name for name, metric in METRICS.items() if metric.family == "drift"}
    labels = {name: told(METRICS[name].label) for name in family}
    said = st.empty()  # the answer depends on what is picked below, and stands first
    with st.container(horizontal=True, vertical_alignment="center", key="drift-bar"):
        blind = _("Blind to position: a permuted tensor does not move.")
        st.html(f'<p class="px-says">{for_html(blind)}</p>')
        present = kinds(view.rows)
        kind = url.choose(
            _("Tensors"),
            {k: k for k in present},
            key="kind",
            labels=present,
            visible=False,
            width=180,
        )
        metric = url.choose(
            _("Moved by"), family, key="drift", labels=labels, visible=False, width=220
        )
    alone = alone_of(view, of_kind(view.rows, kind))
    every, rows = kept(
        view, "ranking", lambda: _ranked(view, kind, metric, alone), kind, metric, len(alone)
    )
    ranking = Ranking(metric, every, rows, _chosen(view, rows), alone)
    said.html(f'<div class="px-title"><h1>{for_html(_answer(ranking), 300)}</h1></div>')
    return ranking


def _ranked(
    view: View, kind: str, metric: str, alone: Mapping[int, Unpaired]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tensors in execution order, and those whose metric is defined, most moved first."""
    every = of_kind(view.rows, kind).copy()
    for number, found in alone.items():
        every.loc[every["pair"] == number, list(COLUMNS)] = [
            METRICS[name](found.stats) for name in COLUMNS
        ]
    every["x"] = np.arange(len(every))
    every["block"] = blocks(every["operator"])
    size = every[metric].abs()
    return every, every.loc[size[size.notna()].sort_values(ascending=False, kind="stable").index]


def along(view: View, ranking: Ranking) -> None:
    """The metric along execution order; a click shows that tensor's distributions."""
    metric = METRICS[ranking.metric]
    with st.container(horizontal=True, vertical_alignment="center", key="head-drift"):
        st.html(heading(_("Along execution order"), told(metric.label)))
        chart.as_table(ranking.rows[["operator", "slot", *COLUMNS, "tensor"]], key="drift-table")
    figure = kept(
        view, "moved",
        lambda: drift.moved(
            ranking.every, column=ranking.metric, label=told(metric.label),
            chosen=ranking.chosen, theme=view.theme,
        ),
        ranking.metric, ranking.chosen, len(ranking.alone),
    )  # fmt: skip
    chart.clickable(figure, key="drift-path", on_click=_show, alt=_answer(ranking))


def distribution(view: View, ranking: Ranking) -> None:
    """Both sides' distributions of the chosen tensor, and a link to it."""
    with st.container(horizontal=True, vertical_alignment="center", key="head-moved"):
        keys = f"<span>{key('reference')}{told(word('reference'))}</span>"
        keys += f"<span>{key('candidate')}{told(word('candidate'))}</span>"
        st.html(heading(_("Distribution"), "", keys))
        scale = url.choose(
            _("Value axis"), {k: k for k in scales()}, key="scale", labels=scales(),
            style="segments", visible=False,
        )  # fmt: skip
    if ranking.chosen < 0:
        st.html(f'<p class="px-note">{muted(_("No tensor of this kind has a distribution."))}</p>')
        return
    row = view.table.iloc[ranking.chosen]
    pair = view.comparison.pairs[ranking.chosen]
    alone = ranking.alone.get(ranking.chosen)
    stats = alone.stats if alone else pair.stats
    link = anchor(url.link("tensor", t=row["tensor"]), _("Open tensor →"))
    name = f"{row['operator']} · {row['slot']}"
    st.html(f'<p class="px-note"><b>{for_html(name, 200)}</b> {link}</p>')
    if stats is None:
        why = (
            _("Not compared: {problem}", problem=pair.problem)
            if pair.problem
            else _("The dumps hold no values of it.")
        )
        st.html(f'<p class="px-note">{for_html(why, 300)}</p>')
        return
    if scale == "exponent":
        figure = exponent_histogram(octaves(stats), theme=view.theme)
    else:
        curves = value_curves(stats, symlog=scale == "symlog")
        figure = value_histogram(curves, theme=view.theme, height=drift.HEIGHT - 30)
    title = values_title(stats, METRICS["ks"](stats))
    st.plotly_chart(figure, theme=None, key="drift-values", config=CONFIG, alt=title)
    st.html(
        f'<p class="px-note">{for_html(title)}{_few(stats.reference.finite)}{_apart(alone)}</p>'
    )


def ranked(ranking: Ranking) -> None:
    """The most moved tensors with every drift measure; a head ranks by it."""
    without = len(ranking.every) - len(ranking.rows)
    shown = ranking.rows.head(PAGE)
    rest = (
        _("the first {n} of {total}", n=PAGE, total=count(len(ranking.rows)))
        if len(ranking.rows) > PAGE
        else _("all")
    )
    aside = _("{rest}, ranked by {label}", rest=rest, label=told(METRICS[ranking.metric].label))
    st.html(heading(_("Most moved"), aside))
    prefix = common_prefix([str(path) for path in shown["operator"].unique()])
    heads = [
        "",
        _("Operator"),
        _("Slot"),
        *(_head(name, ranking.metric) for name in COLUMNS),
        _("Elements"),
        _("Verdict"),
    ]
    rows = []
    several = ranking.every["step"].nunique() > 1
    for place, row in enumerate(shown.to_dict("records"), 1):
        text = shorten(str(row["operator"]).removeprefix(prefix) or _("model"), 44)
        rows.append([
            muted(str(place)),
            anchor(_here(t=row["tensor"]), text, mono=True, title=str(row["tensor"])),
            muted(_slot(row, several=several)),
            *(_cell(float(row[name])) for name in COLUMNS),
            count(int(row["elements"])),
            verdict_word(row["verdict"]),
        ])  # fmt: skip
    st.html(table(heads, rows, numeric=range(3, 4 + len(COLUMNS)), label=_("Most moved")))
    if without:
        said = _("{n} tensors without a value are not ranked.", n=count(without))
        st.html(f'<p class="px-note">{for_html(said)}</p>')


def _slot(row: Mapping[Hashable, Any], *, several: bool) -> str:
    """Slot, and the step where there are several."""
    if not several or pd.isna(row["step"]):
        return str(row["slot"])
    return _("{slot}, step {step}", slot=row["slot"], step=int(row["step"]))


def _chosen(view: View, rows: pd.DataFrame) -> int:
    asked = url.get("t")
    if asked is None:
        return int(rows["pair"].to_list()[0]) if len(rows) else -1
    return number_of(view, asked)


def _answer(ranking: Ranking) -> str:
    if ranking.rows.empty:
        return _("No distribution could be compared.")
    top = ranking.rows.iloc[0]
    if not top[ranking.metric]:
        return _("No distribution moved.")
    label, value = told(METRICS[ranking.metric].label), error(float(top[ranking.metric]))
    return _(
        "{operator} moved most: {label} {value}.",
        operator=shorten(str(top["operator"]), 40),
        label=label,
        value=value,
    )


def _apart(found: Unpaired | None) -> str:
    if found is None:
        return ""
    words = _(
        "{a} of {of_a} elements against {b} of {of_b}", a=count(found.seen[0]),
        of_a=count(found.total[0]), b=count(found.seen[1]), of_b=count(found.total[1]),
    )  # fmt: skip
    return f" · {for_html(words)}"


def _few(elements: int) -> str:
    if elements >= FEW:
        return ""
    return _(" · only {n} elements: a histogram of so few says little", n=count(elements))


def _head(name: str, ranked_by: str) -> str:
    arrow = " ↓" if name == ranked_by else ""
    return anchor(
        _here(drift=name), told(METRICS[name].label) + arrow, title=told(METRICS[name].help)
    )


def _cell(value: float) -> str:
    text = error(value)
    why = _("not defined for this pair")
    return text if text != UNDEFINED else f'<span title="{why}">{UNDEFINED}</span>'


def _here(**changes: object) -> str:
    return url.link("drift", **({name: url.get(name) for name in _OWN} | changes))


def _show(customdata: list[str]) -> None:
    url.put(t=customdata[0])
