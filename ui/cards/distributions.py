"""Values, ulp errors and error by axis of one pair, and its worst elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from analysis import selection
from analysis.views_detail import octaves
from analysis.views_distributions import (
    axis_curve,
    concentration,
    relative_l2,
    ulp_bars,
    value_curves,
)
from charts.detail import exponent_histogram
from charts.histograms import ulp_histogram, ulp_range, value_histogram
from charts.names import for_html
from charts.profiles import axis_profile, title
from charts.template import CONFIG
from core.comparison import Pair
from core.numbers import error, share
from core.stats import PairStats
from language import _
from ui import chart, slices, url
from ui.cards import cut
from ui.cards.cut import POLL_S, explained
from ui.cards.elements import rows_of
from ui.cards.tensor import Subject
from ui.cards.values import rms
from ui.cards.worst import the_worst, worst
from ui.frame import View
from ui.markup import heading, muted


def scales() -> dict[str, str]:
    """How the value axis may run."""
    return {"linear": _("linear"), "symlog": _("log, both signs"), "exponent": _("by exponent")}


_MOVED = "slice-moved"  # session key: a click led into another slice
_KS_5_PERCENT = 1.36  # the Kolmogorov-Smirnov test's 5 % point, times sqrt(1/n + 1/m)


@st.fragment  # type: ignore[untyped-decorator]
def draw(view: View, subject: Subject) -> None:
    """Four small charts: values, ulps, and error along the last two long axes; the others below."""
    stats = subject.pair.stats
    if stats is None:
        return
    if st.session_state.pop(_MOVED, False):
        st.rerun()  # the slice is drawn elsewhere: a fragment alone would leave it as it was
    drawn = [_values(view, subject, stats), _ulps(view, stats), *_axes(view, subject, stats)]
    with st.container(horizontal=True, vertical_alignment="center", key="head-distributions"):
        band = f'<span><i class="px-band"></i>{for_html(_("explained by rounding"))}</span>'
        aside = _(
            "shares of all elements, values to 1/16 of themselves; relative L2 along each axis"
        )
        st.html(heading(_("Where the error lies"), aside, band))
        url.choose(
            _("Value axis"), {k: k for k in scales()}, key="scale", labels=scales(),
            style="segments", visible=False,
        )  # fmt: skip
    grid_of(drawn, key="distribution")


def elements(view: View, subject: Subject) -> None:
    """The worst elements with their bits."""
    pair, stats = subject.pair, subject.pair.stats
    if stats is None:
        return
    aside = _("largest |error| first, non-finite on one side before all")
    st.html(heading(_("Worst elements"), aside))
    with explained():
        _elements(view, subject, pair, stats)


def _elements(view: View, subject: Subject, pair: Pair, stats: PairStats) -> None:
    found = worst(view, pair)
    if found is None:
        st.fragment(_searching, run_every=POLL_S)(view, pair)
        found = the_worst(view, pair)
    if not found:
        why = _("The tensor has no elements.") if not stats.count else _("All elements are equal.")
        st.html(f'<p class="px-note">{muted(why)}</p>')
        return
    unit = float(subject.row["floor"]) * rms(stats)
    st.html(rows_of(found, pair, unit=unit, head=_("Index")))


def _searching(view: View, pair: Pair) -> None:
    """Looks whether all elements were seen by now, and draws the page again when they were."""
    if worst(view, pair) is not None:
        st.rerun()
    words = _("The worst one is below; the next ones are being looked for among all elements.")
    st.html(f'<p class="px-note" role="status">{for_html(words, 300)}</p>')


@dataclass(frozen=True, slots=True)
class Drawn:
    """A small chart: what it says, how, and its numbers; a click calls `on_click` if given."""

    name: str
    figure: go.Figure
    rows: Callable[[], pd.DataFrame]
    on_click: Callable[[Any], None] | None = None


def grid_of(drawn: Sequence[Drawn], *, key: str) -> None:
    """Small charts, four a row."""
    for start in range(0, len(drawn), 4):
        columns = st.columns(4, gap="small")
        for place, (column, one) in enumerate(zip(columns, drawn[start : start + 4], strict=False)):
            with column:
                _one(one, key=f"{key}-{start + place}")


def _one(drawn: Drawn, *, key: str) -> None:
    name = drawn.name
    with st.container(gap=4):
        with st.container(horizontal=True, vertical_alignment="center", gap=8, wrap=False):
            st.html(f'<h3 class="px-small" title="{for_html(name)}">{for_html(name, 200)}</h3>')
            chart.as_table(drawn.rows(), key=f"{key}-table")
        if drawn.on_click is not None:
            chart.clickable(drawn.figure, key=key, on_click=drawn.on_click, alt=name)
        else:
            st.plotly_chart(drawn.figure, theme=None, key=key, config=CONFIG, alt=name)


def values_title(stats: PairStats, ks: float) -> str:
    """Whether both distributions agree, as the Kolmogorov-Smirnov distance says."""
    if math.isnan(ks):
        return _("Values: no distribution on one side")
    n, m = stats.reference.finite, stats.candidate.finite
    if ks <= _KS_5_PERCENT * math.sqrt(1 / n + 1 / m):
        return _("Values: distributions agree, KS {ks}", ks=error(ks))
    return _("Values: distributions differ, KS {ks}", ks=error(ks))


def _values(view: View, subject: Subject, stats: PairStats) -> Drawn:
    name = values_title(stats, float(subject.row["ks"]))
    if url.get("scale") == "exponent":
        by_power = octaves(stats)

        def powers() -> pd.DataFrame:
            if by_power is None:
                return pd.DataFrame()
            sides = {"reference": by_power.reference, "candidate": by_power.candidate}
            return pd.DataFrame({"exponent": by_power.exponent} | sides)

        return Drawn(name, exponent_histogram(by_power, theme=view.theme), powers)
    curves = value_curves(stats, symlog=url.get("scale") == "symlog")

    def rows() -> pd.DataFrame:
        if curves is None:
            return pd.DataFrame()
        middle = (curves.edges[:-1] + curves.edges[1:]) / 2
        return pd.DataFrame(
            {"bin": middle, "reference": curves.reference, "candidate": curves.candidate}
        )

    return Drawn(name, value_histogram(curves, theme=view.theme), rows)


def _ulps(view: View, stats: PairStats) -> Drawn:
    bars = ulp_bars(stats)

    def rows() -> pd.DataFrame:
        if bars is None:
            return pd.DataFrame()
        ranges = [ulp_range(bars, k) for k in range(len(bars.counts))]
        return pd.DataFrame({_("ulp error"): ranges, _("elements"): bars.counts})

    off = share(stats.count - stats.equal, stats.count)
    return Drawn(
        _("Ulp error ({dtype}): {share} not equal", dtype=stats.dtype, share=off),
        ulp_histogram(bars, theme=view.theme),
        rows,
    )


def _axes(view: View, subject: Subject, stats: PairStats) -> list[Drawn]:
    tensor = subject.pair.reference
    named = slices.names_of_axes(tensor.dims, tensor.shape)
    long = [axis for axis in range(len(stats.axes)) if tensor.shape[axis] > 1]
    ordered = [*long[-2:], *long[:-2]]
    return [_axis(view, subject, stats, axis, named[axis]) for axis in ordered]


def _axis(view: View, subject: Subject, stats: PairStats, axis: int, name: str) -> Drawn:
    profile, floor = stats.axes[axis], float(subject.row["floor"])
    curve = axis_curve(profile)

    def rows() -> pd.DataFrame:
        value = relative_l2(profile)
        return pd.DataFrame(
            {
                name: np.arange(value.size),
                "relative_l2": value,
                "max_abs_error": profile.max_abs_error,
            }
        )

    found = concentration(profile) if curve is not None else None
    figure = axis_profile(curve, name=name, floor=floor, theme=view.theme)
    return Drawn(title(name, found), figure, rows, lambda data: _into(subject.pair, axis, data))


def _into(pair: Pair, axis: int, customdata: Any) -> None:
    """Shows the slice at one index of an axis: fixed there, or the view closes in on it."""
    part = cut.part_of(pair)
    st.session_state[_MOVED] = True
    url.put(sel=selection.at(part, pair.shape, axis, int(customdata[0])).text(pair.shape), el=None)
