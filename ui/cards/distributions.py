"""Values, ulp errors and error by axis of one pair, and its worst elements."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from analysis.views_distributions import (
    axis_curve,
    concentration,
    relative_l2,
    ulp_bars,
    value_curves,
)
from charts.histograms import ulp_histogram, ulp_range, value_histogram
from charts.names import for_html
from charts.profiles import axis_profile, title
from charts.template import CONFIG
from core.comparison import Pair
from core.numbers import error, share
from core.stats import PairStats
from ui import chart, slices, url
from ui.cards.cut import explained, worst
from ui.cards.elements import rows_of
from ui.cards.tensor import Subject
from ui.cards.values import rms
from ui.frame import View
from ui.markup import heading, muted

SCALES = {"linear": "linear", "symlog": "log, both signs"}
_KS_5_PERCENT = 1.36  # the Kolmogorov-Smirnov test's 5 % point, times sqrt(1/n + 1/m)


@st.fragment  # type: ignore[untyped-decorator]
def draw(view: View, subject: Subject) -> None:
    """Four small charts: values, ulps, and error along the last two long axes; the others below."""
    stats = subject.pair.stats
    if stats is None:
        return
    drawn = [_values(view, subject, stats), _ulps(view, stats), *_axes(view, subject, stats)]
    with st.container(horizontal=True, vertical_alignment="center", key="head-distributions"):
        band = '<span><i class="px-band"></i>explained by rounding</span>'
        aside = "shares of all elements; relative L2 along each axis"
        st.html(heading("Where the error lies", aside, band))
        url.choose(
            "Value axis", {k: k for k in SCALES}, key="scale", labels=SCALES,
            style="segments", visible=False,
        )  # fmt: skip
    for start in range(0, len(drawn), 4):
        columns = st.columns(4, gap="small")
        for place, (column, (name, figure, rows)) in enumerate(
            zip(columns, drawn[start : start + 4], strict=False)
        ):
            with column:
                _one(name, figure, rows, key=f"distribution-{start + place}")


def elements(view: View, subject: Subject) -> None:
    """The worst elements with their bits."""
    pair, stats = subject.pair, subject.pair.stats
    if stats is None:
        return
    st.html(heading("Worst elements", "largest |error| first, non-finite on one side before all"))
    with explained():
        _elements(view, subject, pair, stats)


def _elements(view: View, subject: Subject, pair: Pair, stats: PairStats) -> None:
    found = worst(view, pair)
    if not found:
        why = "The tensor has no elements." if not stats.count else "All elements are equal."
        st.html(f'<p class="px-note">{muted(why)}</p>')
        return
    unit = float(subject.row["floor"]) * rms(stats)
    st.html(rows_of(found, pair, unit=unit, head="Index"))


Drawn = tuple[str, go.Figure, Callable[[], pd.DataFrame]]


def _one(name: str, figure: go.Figure, rows: Callable[[], pd.DataFrame], *, key: str) -> None:
    with st.container(gap=4):
        with st.container(horizontal=True, vertical_alignment="center", gap=8, wrap=False):
            st.html(f'<h3 class="px-small" title="{for_html(name)}">{for_html(name, 200)}</h3>')
            chart.as_table(rows(), key=f"{key}-table")
        st.plotly_chart(figure, theme=None, key=key, config=CONFIG, alt=name)


def values_title(stats: PairStats, ks: float) -> str:
    """Whether both distributions agree, as the Kolmogorov-Smirnov distance says."""
    if math.isnan(ks):
        return "Values: no distribution on one side"
    n, m = stats.reference.finite, stats.candidate.finite
    agree = ks <= _KS_5_PERCENT * math.sqrt(1 / n + 1 / m)
    return f"Values: distributions {'agree' if agree else 'differ'}, KS {error(ks)}"


def _values(view: View, subject: Subject, stats: PairStats) -> Drawn:
    curves = value_curves(stats, symlog=url.get("scale") == "symlog")

    def rows() -> pd.DataFrame:
        if curves is None:
            return pd.DataFrame()
        middle = (curves.edges[:-1] + curves.edges[1:]) / 2
        return pd.DataFrame(
            {"bin": middle, "reference": curves.reference, "candidate": curves.candidate}
        )

    name = values_title(stats, float(subject.row["ks"]))
    return name, value_histogram(curves, theme=view.theme), rows


def _ulps(view: View, stats: PairStats) -> Drawn:
    bars = ulp_bars(stats)

    def rows() -> pd.DataFrame:
        if bars is None:
            return pd.DataFrame()
        ranges = [ulp_range(bars, k) for k in range(len(bars.counts))]
        return pd.DataFrame({"ulp error": ranges, "elements": bars.counts})

    off = share(stats.count - stats.equal, stats.count)
    return (
        f"Ulp error ({stats.dtype}): {off} not equal",
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
    return title(name, found), axis_profile(curve, name=name, floor=floor, theme=view.theme), rows
