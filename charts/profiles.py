"""Error along one axis of a tensor: by token, by channel, by head."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analysis.verdict import LIMIT
from analysis.views_distributions import AxisCurve, Concentration
from charts.axes import scale_for
from charts.histograms import MARGIN, tick
from charts.template import HISTOGRAM_HEIGHT, figure, message
from charts.tokens import Theme, colour_at, ember_position
from core.numbers import count, error, times_floor

BARS = 160  # up to so many indexes are bars, more are a line


def axis_profile(curve: AxisCurve | None, *, name: str, floor: float, theme: Theme) -> go.Figure:
    """Relative L2 error of every index, in units of the floor where there is one."""
    if curve is None:
        return message(theme, f"The {name} axis is too long to keep.", height=HISTOGRAM_HEIGHT)
    chart = figure(theme, height=HISTOGRAM_HEIGHT)
    in_floors = floor > 0
    values = curve.relative_l2 / floor if in_floors else curve.relative_l2
    top = _top(values)
    drawn = np.where(np.isinf(values), top, values)
    hover = [
        [_indexes(curve, k, name), times_floor(v) + " floor" if in_floors else error(v), error(r)]
        for k, (v, r) in enumerate(zip(values, curve.relative_l2, strict=True))
    ]
    look = {
        "x": curve.index, "y": drawn, "customdata": hover,
        "hovertemplate": "<b>%{customdata[0]}</b><br>total %{customdata[1]}"
        "<br>relative L2 %{customdata[2]}<extra></extra>",
    }  # fmt: skip
    if len(curve.index) <= BARS:
        colours = [colour_at(theme.ember, _place(v, in_floors)) for v in drawn]
        chart.add_bar(**look, marker={"color": colours, "line": {"width": 0}})
        chart.update_layout(bargap=0.1 if len(curve.index) < 40 else 0)
    else:
        chart.add_scatter(**look, mode="lines", line={"color": theme.text, "width": 1})
    if in_floors:
        chart.add_shape(
            type="rect", xref="paper", x0=0, x1=1, y0=0, y1=LIMIT,
            fillcolor=theme.surface_2, line={"width": 0}, layer="below",
        )  # fmt: skip
    _axes(chart, curve, drawn, in_floors=in_floors)
    return chart


def title(name: str, found: Concentration | None) -> str:
    """What the profile shows, as a finding: `By token: 12 and 57 stand out, 34× the median`."""
    if found is None:
        return f"By {name}: not kept, the axis is too long"
    if found.even:
        spread = "even" if found.ratio < 2 else f"up to {_times(found.ratio)} the median"
        return f"By {name}: {spread}"
    names = ", ".join(str(i) for i in found.outliers)
    verb = "stands" if len(found.outliers) == 1 else "stand"
    times = f"{_times(found.ratio)} the median" if np.isfinite(found.ratio) else "alone"
    return f"By {name}: {names} {verb} out, {times}"


def _times(ratio: float) -> str:
    return times_floor(ratio) if np.isfinite(ratio) else "infinitely many times"


def _indexes(curve: AxisCurve, k: int, name: str) -> str:
    start, stop, index = int(curve.start[k]), int(curve.stop[k]) - 1, int(curve.index[k])
    return f"{name} {index}" + (f", worst of {start}–{stop}" if stop > start else "")


def _top(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) * 1.2 if finite.size and finite.max() > 0 else 1.0


def _place(value: float, in_floors: bool) -> float:
    if np.isnan(value):
        return 0.0
    return ember_position(value) if in_floors else 0.0


def _axes(chart: go.Figure, curve: AxisCurve, drawn: np.ndarray, *, in_floors: bool) -> None:
    finite = drawn[np.isfinite(drawn)]
    scale = scale_for(
        pd.Series([0.0, float(finite.max()) if finite.size else 1.0]), in_floors=False
    )
    suffix = "×" if in_floors else ""
    chart.update_yaxes(
        range=[0, scale.high],
        tickvals=scale.ticks,
        ticktext=[tick(t) + suffix for t in scale.ticks],
    )
    last = curve.length - 1
    step = max(1, 2 ** round(np.log2(max(1, curve.length / 4))))
    ticks = [*range(0, max(1, last - step // 2), step), last] if last else [0]
    chart.update_xaxes(range=[-0.5, last + 0.5], tickvals=ticks, ticktext=[count(t) for t in ticks])
    chart.update_layout(margin=MARGIN)
