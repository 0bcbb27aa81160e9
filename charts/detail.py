"""Charts of one pair beyond the plain histogram: by exponent, cumulative, Q-Q, error, density."""

from __future__ import annotations

import math

import numpy as np
import plotly.graph_objects as go

from analysis.views_detail import Cumulative, Density, ErrorOctaves, Octaves, Quantiles
from charts.histograms import MARGIN, percent_axis
from charts.template import HISTOGRAM_HEIGHT, figure, message
from charts.tokens import Theme, colorscale
from core.numbers import count, error, share
from language import _

_TICKS = 5


def exponent_histogram(found: Octaves | None, *, theme: Theme) -> go.Figure:
    """Share of each side's elements by power of two."""
    if found is None or not found.exponent.size:
        return message(theme, _("No finite value has an exponent."), height=HISTOGRAM_HEIGHT)
    chart = figure(theme, height=HISTOGRAM_HEIGHT)
    for name, values, colour in (
        (_("reference"), found.reference, theme.reference),
        (_("candidate"), found.candidate, theme.candidate),
    ):
        chart.add_bar(
            x=found.exponent, y=100 * values, name=name, marker={"color": colour},
            customdata=[[share(v, 1)] for v in values],
            hovertemplate=name + "<br>2<sup>%{x}</sup> ≤ |x| &lt; 2<sup>%{x}+1</sup>"
            "<br>%{customdata[0]}<extra></extra>",
        )  # fmt: skip
    _powers(chart, found.exponent)
    return percent_axis(chart, 100 * float(max(found.reference.max(), found.candidate.max())))


def cumulative_chart(found: Cumulative | None, *, theme: Theme) -> go.Figure:
    """Share of the elements at or below each value."""
    if found is None:
        return message(theme, _("No value is finite."), height=HISTOGRAM_HEIGHT)
    chart = figure(theme, height=HISTOGRAM_HEIGHT)
    for name, (value, upto), line in (
        (_("reference"), found.reference, {"color": theme.reference, "width": 2, "dash": "dash"}),
        (_("candidate"), found.candidate, {"color": theme.candidate, "width": 1.5}),
    ):
        chart.add_scatter(
            x=value, y=100 * upto, mode="lines", line=line | {"shape": "hv"}, name=name,
            hovertemplate=name + "<br>%{y:.3g} % ≤ %{x:.3g}<extra></extra>",
        )  # fmt: skip
    reach = found.high - found.low or abs(found.high) or 1.0
    chart.update_xaxes(range=[found.low - 0.02 * reach, found.high + 0.02 * reach], nticks=_TICKS)
    return percent_axis(chart, 100.0)


def quantile_chart(found: Quantiles | None, *, theme: Theme) -> go.Figure:
    """The candidate's quantiles over the reference's; on the diagonal both distributions agree."""
    if found is None:
        return message(theme, _("One side has no finite value."), height=HISTOGRAM_HEIGHT)
    chart = figure(theme, height=HISTOGRAM_HEIGHT)
    low = float(min(found.reference.min(), found.candidate.min()))
    high = float(max(found.reference.max(), found.candidate.max()))
    chart.add_scatter(
        x=[low, high], y=[low, high], mode="lines", hoverinfo="skip",
        line={"color": theme.line_strong, "width": 1, "dash": "dot"},
    )  # fmt: skip
    hover = [
        [f"{100 * s:g} %", error(a), error(b)]
        for s, a, b in zip(found.share, found.reference, found.candidate, strict=True)
    ]
    chart.add_scatter(
        x=found.reference, y=found.candidate, mode="markers", customdata=hover,
        marker={"size": 4, "color": theme.candidate},
        hovertemplate="<b>%{customdata[0]}</b><br>" + _("reference") + " %{customdata[1]}<br>"
        + _("candidate") + " %{customdata[2]}<extra></extra>",
    )  # fmt: skip
    chart.update_xaxes(nticks=_TICKS)
    chart.update_yaxes(nticks=_TICKS)
    chart.update_layout(margin=MARGIN)
    return chart


def error_histogram(found: ErrorOctaves | None, *, theme: Theme) -> go.Figure:
    """Share of the elements by power of two of |error|, and of those without any at the left."""
    if found is None:
        return message(theme, _("No element is finite on both sides."), height=HISTOGRAM_HEIGHT)
    chart = figure(theme, height=HISTOGRAM_HEIGHT)
    first = int(found.exponent[0]) if found.exponent.size else 0
    at = [first - 2, *map(int, found.exponent)]
    counts = [found.zero, *map(int, found.counts)]
    names = [_("no error"), *(f"2<sup>{e}</sup> ≤ |e| &lt; 2<sup>{e + 1}</sup>" for e in at[1:])]
    chart.add_bar(
        x=at, y=[100 * n / found.total for n in counts],
        marker={"color": [theme.line_strong, *[theme.text] * found.exponent.size]},
        customdata=[[n, share(c, found.total), count(c)] for n, c in zip(names, counts,
                                                                         strict=True)],
        hovertemplate="%{customdata[0]}<br>%{customdata[1]}, %{customdata[2]}<extra></extra>",
    )  # fmt: skip
    ticks = _ticks(np.asarray(at[1:])) if found.exponent.size else []
    chart.update_xaxes(
        tickvals=[at[0], *ticks], ticktext=["0", *(f"2<sup>{t}</sup>" for t in ticks)]
    )
    return percent_axis(chart, 100 * max(counts) / found.total)


def density_chart(
    found: Density | None, *, roundoff: float, tolerance: tuple[float, float], theme: Theme
) -> go.Figure:
    """How many elements have which error at which magnitude, log scale on all three.

    The dotted line is half a unit in the last place of the format, `roundoff` · |reference|; the
    solid one the tolerance (atol, rtol) that stands on the page.
    """
    if found is None:
        return message(theme, _("No element has both a size and an error."),
                       height=HISTOGRAM_HEIGHT)  # fmt: skip
    chart = figure(theme, height=HISTOGRAM_HEIGHT)
    shown = np.where(found.counts > 0, np.log10(np.maximum(found.counts, 1)), np.nan)
    hover = [[count(int(n)) for n in row] for row in found.counts]
    chart.add_heatmap(
        x=found.size + 0.5, y=found.error + 0.5, z=shown, customdata=hover, showscale=False,
        colorscale=colorscale((theme.line, theme.muted, theme.text)),
        hovertemplate="|r| 2<sup>%{x:.0f}</sup>, |e| 2<sup>%{y:.0f}</sup>"
        "<br>%{customdata}<extra></extra>",
    )  # fmt: skip
    x = np.linspace(found.size[0], found.size[-1] + 1, 60)
    lines = [(roundoff * np.exp2(x), "dot", theme.reference)] if roundoff else []
    allowed = tolerance[0] + tolerance[1] * np.exp2(x)
    lines += [(allowed, "solid", theme.accent)] if any(tolerance) else []
    for y, dash, colour in lines:
        chart.add_scatter(x=x, y=np.log2(y), mode="lines", hoverinfo="skip",
                          line={"color": colour, "width": 1.5, "dash": dash})  # fmt: skip
    _powers(chart, found.size)
    ticks = _ticks(found.error)
    chart.update_yaxes(
        range=[float(found.error[0]), float(found.error[-1] + 1)], showgrid=False,
        tickvals=ticks, ticktext=[f"2<sup>{t}</sup>" for t in ticks],
    )  # fmt: skip
    chart.update_layout(margin=MARGIN)
    return chart


def _powers(chart: go.Figure, exponent: np.ndarray) -> None:
    ticks = _ticks(exponent)
    chart.update_xaxes(tickvals=ticks, ticktext=[f"2<sup>{t}</sup>" for t in ticks])


def _ticks(exponent: np.ndarray) -> list[int]:
    low, high = int(exponent[0]), int(exponent[-1])
    step = max(1, math.ceil((high - low) / _TICKS))
    return [t for t in range(low, high + 1) if t % step == 0]
