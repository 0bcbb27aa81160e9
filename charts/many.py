"""The error path of several candidates, one below the other, on one axis."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analysis.verdict import LIMIT
from charts.axes import scale_for
from charts.execution import thinned
from charts.names import for_html
from charts.template import figure
from charts.tokens import MARKS, Theme, faded
from core.numbers import times_floor
from language import _

ROW = 84  # pixels a candidate
_POINTS = 600


def paths(tables: Mapping[str, pd.DataFrame], *, theme: Theme) -> go.Figure:
    """Points of every output by candidate; rows of `tables` come from `execution.on_path`."""
    chart = figure(theme, height=ROW * len(tables) + 40)
    every = pd.concat([rows["times_floor"] for rows in tables.values()])
    scale = scale_for(every[every.notna()], in_floors=True)
    share = 1.0 / len(tables)
    for n, (label, rows) in enumerate(tables.items()):
        axis = "" if n == 0 else str(n + 1)
        low = 1 - (n + 1) * share
        drawn = rows[rows["times_floor"].notna()].copy()
        drawn["y"] = scale.clipped(drawn["times_floor"])
        _points(chart, drawn, axis, label, theme)
        chart.layout[f"yaxis{axis}"] = {
            "domain": [low + 0.12 * share, low + share], "type": "log", "range": scale.range,
            "tickvals": scale.ticks[::2], "ticktext": scale.labels[::2], "anchor": "x",
        }  # fmt: skip
        chart.add_shape(
            type="rect", xref="paper", x0=0, x1=1, yref=f"y{axis}", y0=scale.low, y1=LIMIT,
            fillcolor=theme.surface_2, line={"width": 0}, layer="below",
        )  # fmt: skip
        chart.add_annotation(
            xref="paper", x=0.004, yref="paper", y=low + share, xanchor="left", yanchor="top",
            text=f"<b>{for_html(label, 60)}</b>", showarrow=False,
            font={"size": 12, "color": theme.text},
        )  # fmt: skip
    chart.update_xaxes(showticklabels=False, ticks="", title_text=_("execution order"))
    return chart


def _points(chart: go.Figure, rows: pd.DataFrame, axis: str, label: str, theme: Theme) -> None:
    loud = rows["verdict"].isin(("fault", "watch"))
    quiet = thinned(rows[~loud], _POINTS)
    for some, look in (
        (quiet, {"size": 4, "color": faded(theme.reference, 0.6)}),
        (rows[rows["verdict"] == "watch"], _mark("watch", 10, theme.watch_mark)),
        (rows[rows["verdict"] == "fault"], _mark("fault", 12, theme.fault)),
    ):
        chart.add_scatter(
            x=some["x"], y=some["y"], yaxis=f"y{axis}", mode="markers", marker=look,
            customdata=_hover(some, label), selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 1}},
            hovertemplate="<b>%{customdata[2]}</b><br>%{customdata[3]}<br>"
            + f"{_('click to open')}<extra></extra>",
        )  # fmt: skip


def _mark(verdict: str, size: int, colour: str) -> dict[str, object]:
    return {"size": size, "color": colour, "symbol": MARKS[verdict].symbol}  # type: ignore[index]


def _hover(rows: pd.DataFrame, label: str) -> np.ndarray:
    names = [for_html(str(operator)) for operator in rows["operator"]]
    values = [
        _("{label}: {times} floor", label=for_html(label, 60), times=times_floor(v))
        for v in rows["times_floor"]
    ]
    tensors = rows["tensor"].astype(str)
    labels = np.full(len(rows), label, object)
    return np.stack([labels, tensors, np.array(names, object), np.array(values, object)], axis=1)
