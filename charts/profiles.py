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
from core.numbers import count, error, share, times_floor
from core.words import word
from language import _, listing, n_

BARS = 160  # up to so many indexes are bars, more are a line


def axis_profile(curve: AxisCurve | None, *, name: str, floor: float, theme: Theme) -> go.Figure:
    """Relative L2 error of every index, in units of the floor where there is one."""
    if curve is None:
        return message(
            theme, _("The {name} axis is too long to keep.", name=name), height=HISTOGRAM_HEIGHT
        )
    chart = figure(theme, height=HISTOGRAM_HEIGHT)
    in_floors = floor > 0
    values = curve.relative_l2 / floor if in_floors else curve.relative_l2
    top = _top(values)
    drawn = np.where(np.isinf(values), top, values)
    hover = [
        [
            int(curve.index[k]),
            _indexes(curve, k, name),
            times_floor(v) if in_floors else error(v),
            error(r),
        ]
        for k, (v, r) in enumerate(zip(values, curve.relative_l2, strict=True))
    ]
    look = {
        "x": curve.index, "y": drawn, "customdata": hover,
        "hovertemplate": "<b>%{customdata[1]}</b><br>"
        + (_("× floor") if in_floors else _("error")) + " %{customdata[2]}<br>"
        + _("relative L2") + " %{customdata[3]}<br>" + _("click to show that slice")
        + "<extra></extra>",
        "selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}},
    }  # fmt: skip
    if len(curve.index) <= BARS:
        colours = [colour_at(theme.ember, _place(v, in_floors)) for v in drawn]
        chart.add_bar(**look, marker={"color": colours, "line": {"width": 0}})
        chart.update_layout(bargap=0.1 if len(curve.index) < 40 else 0)
    else:
        chart.add_scatter(
            **look,
            mode="lines+markers",
            line={"color": theme.text, "width": 1},
            marker={"size": 3, "color": theme.text},
        )
    if in_floors:
        chart.add_shape(
            type="rect", xref="paper", x0=0, x1=1, y0=0, y1=LIMIT,
            fillcolor=theme.surface_2, line={"width": 0}, layer="below",
        )  # fmt: skip
    _axes(chart, curve, drawn, in_floors=in_floors)
    return chart


def title(name: str, found: Concentration | None) -> str:
    """What the profile shows, as a finding: `By channel: 137 carries 62 % of the error energy`."""
    name = word(name)
    if found is None:
        return _("By {name}: not kept, the axis is too long", name=name)
    if found.even and not found.ratio >= 2:
        return _("By {name}: even", name=name)
    if found.even:
        if not np.isfinite(found.ratio):
            return _("By {name}: half of it has no error at all", name=name)
        return _("By {name}: up to {times} the median", name=name, times=times_floor(found.ratio))
    return n_(
        "By {name}: {indexes} carries {share} of the error energy",
        "By {name}: {indexes} carry {share} of the error energy",
        len(found.outliers),
        name=name,
        indexes=listing(map(str, found.outliers)),
        share=share(found.share, 1),
    )


def _indexes(curve: AxisCurve, k: int, name: str) -> str:
    start, stop, index = int(curve.start[k]), int(curve.stop[k]) - 1, int(curve.index[k])
    if stop <= start:
        return f"{name} {index}"
    return _(
        "{name} {index}, worst of {start}–{stop}", name=name, index=index, start=start, stop=stop
    )


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
