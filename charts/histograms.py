"""Distributions of one pair: both sides' values over each other, and the ulp error."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from analysis.views_distributions import Curves, UlpBars
from charts.template import HISTOGRAM_HEIGHT, figure, message
from charts.tokens import Theme, colour_at, ember_position
from core.numbers import MINUS, error, share
from core.words import word
from language import _, told

MARGIN = {"l": 44, "r": 6, "t": 8, "b": 24}
_ULP_UNITS = (("", 1), (" k", 1 << 10), (" M", 1 << 20), (" G", 1 << 30))


def value_histogram(
    curves: Curves | None, *, theme: Theme, height: int = HISTOGRAM_HEIGHT
) -> go.Figure:
    """The reference filled and dashed, the candidate a solid line; shares of elements a bin."""
    if curves is None:
        return message(theme, _("No value is finite."), height=height)
    chart = figure(theme, height=height)
    middle = (curves.edges[:-1] + curves.edges[1:]) / 2
    where = [_value(curves, at) for at in middle]
    for name, line, values in (
        ("reference", {"color": theme.reference, "width": 1.5, "dash": "dash"}, curves.reference),
        ("candidate", {"color": theme.candidate, "width": 1.5}, curves.candidate),
    ):
        filled, side, near = name == "reference", told(word(name)), _("near")
        chart.add_scatter(
            x=middle, y=100 * values, mode="lines", line=line, name=name, customdata=where,
            fill="tozeroy" if filled else "none", fillcolor=theme.surface_2,
            hovertemplate=f"{side} %{{y:.3g}} %<br>{near} %{{customdata}}<extra></extra>",
        )  # fmt: skip
    ticks = curves.ticks or _linear_ticks(float(curves.edges[0]), float(curves.edges[-1]))
    chart.update_xaxes(
        range=[curves.edges[0], curves.edges[-1]],
        tickvals=[at for at, _value in ticks],
        ticktext=[tick(value) for _at, value in ticks],
        tickangle=0,
    )
    return percent_axis(chart, 100 * float(max(curves.reference.max(), curves.candidate.max())))


def ulp_histogram(bars: UlpBars | None, *, theme: Theme) -> go.Figure:
    """Share of elements by ulp error: 0, 1, 2, 3-4, 5-8, …; grey up to 1, then ember."""
    if bars is None:
        return message(theme, _("No element is finite on both sides."), height=HISTOGRAM_HEIGHT)
    chart = figure(theme, height=HISTOGRAM_HEIGHT)
    percent = 100 * bars.counts / bars.total
    ranges = [ulp_range(bars, k) for k in range(len(bars.upper))]
    chart.add_bar(
        x=list(range(len(bars.upper))),
        y=percent,
        marker={"color": [_ulp_colour(float(upper), theme) for upper in bars.upper]},
        customdata=[
            [text, share(int(n), bars.total)] for text, n in zip(ranges, bars.counts, strict=True)
        ],
        hovertemplate="%{customdata[0]} ulp<br>"
        + f"{_('elements')} %{{customdata[1]}}<extra></extra>",
    )
    every = max(1, -(-len(bars.upper) // 6))
    kept = [k for k in range(len(bars.upper)) if k % every == 1 or k == 0 or every == 1]
    chart.update_xaxes(tickvals=kept, ticktext=[_ulp_text(float(bars.upper[k])) for k in kept])
    return percent_axis(chart, float(percent.max()))


def tick(value: float) -> str:
    """A tick's number without trailing zeros."""
    plain = value == 0 or 1e-3 <= abs(value) < 1e5
    text = f"{value:g}" if plain else f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
    return text.replace("-", MINUS)


def ulp_range(bars: UlpBars, k: int) -> str:
    """The ulp errors of one bar in words: `0`, `1`, `3–4`."""
    upper = int(bars.upper[k])
    lower = int(bars.upper[k - 1]) + 1 if k else 0
    return f"{lower:,}" if lower == upper else f"{lower:,}–{upper:,}"


def _value(curves: Curves, at: float) -> str:
    """The value at an axis position, as far as the hover needs it."""
    if not curves.ticks:
        return error(float(at))
    places, values = zip(*curves.ticks, strict=True)
    near = int(np.argmin(np.abs(np.asarray(places) - at)))
    if at == 0 or len(places) < 2:
        return error(values[near])
    sign = -1.0 if at < 0 else 1.0
    anchor = next((p, v) for p, v in reversed(curves.ticks) if v > 0)
    return error(sign * anchor[1] * 2 ** ((abs(at) - anchor[0]) / 4))


def _linear_ticks(low: float, high: float) -> list[tuple[float, float]]:
    step = (high - low) / 3
    size = 10.0 ** np.floor(np.log10(step))
    step = float(size * max(k for k in (1, 2, 5) if size * k <= step))
    first, last = int(np.ceil(low / step)), int(np.floor(high / step))
    return [(n * step, float(f"{n * step:.6g}")) for n in range(first, last + 1)]


def _ulp_colour(upper: float, theme: Theme) -> str:
    if upper <= 1:
        return theme.line_strong
    return colour_at(theme.ember, ember_position(upper))


def _ulp_text(upper: float) -> str:
    if upper >= 1 << 40:
        return f"2<sup>{int(np.log2(upper))}</sup>"
    unit, size = next((u, s) for u, s in reversed(_ULP_UNITS) if upper >= s or s == 1)
    return f"{upper / size:.0f}{unit}"


def percent_axis(chart: go.Figure, top: float) -> go.Figure:
    """The axis of shares, from 0 to `top` per cent, and the margins of a small chart."""
    step = _step(top)
    ticks = [n * step for n in range(int(top / step) + 1)]
    chart.update_yaxes(
        range=[0, top * 1.08 or 1], tickvals=ticks, ticktext=[f"{t:g} %" for t in ticks]
    )
    chart.update_layout(margin=MARGIN, bargap=0.12)
    return chart


def _step(top: float) -> float:
    if not top > 0:
        return 1.0
    size = 10.0 ** np.floor(np.log10(top / 2))
    return float(size * max(k for k in (1, 2, 5) if size * k <= top / 2))
