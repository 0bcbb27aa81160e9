"""How far each tensor's distribution moved, along execution order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from charts.axes import scale_for
from charts.execution import marks
from charts.names import for_html
from charts.template import figure, message
from charts.tokens import Theme, faded
from core.numbers import error
from language import _

HEIGHT = 220
MOST_POINTS = 2000


def moved(rows: pd.DataFrame, *, column: str, label: str, chosen: int, theme: Theme) -> go.Figure:
    """One point a tensor, the chosen one ringed; the first column of customdata is the tensor.

    `rows` has `x`, the position in execution order, and `block`. Beyond `MOST_POINTS` the largest
    of every stretch is kept. Values without a logarithm stand at the lower edge.
    """
    known = rows[rows[column].notna()]
    if known.empty:
        return message(
            theme, _("{label} is undefined for every tensor.", label=label), height=HEIGHT
        )
    scale = scale_for(known[column].abs(), in_floors=False)
    drawn = _thinned(known, known[column].abs())
    chart = figure(theme, height=HEIGHT)
    for some, look in ((drawn, _point(theme)), (known[known["pair"] == chosen], _ring(theme))):
        chart.add_scatter(
            x=some["x"],
            y=scale.clipped(some[column].abs()),
            mode="markers",
            marker=look,
            customdata=_hover(some, column, label),
            hovertemplate="<b>%{customdata[1]}</b><br>%{customdata[2]}<br>"
            + f"{_('click to show it')}<extra></extra>",
            selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 1}},
        )
    at, text, title = marks(rows)
    margin = max(1.0, 0.01 * len(rows))
    chart.update_yaxes(
        type=scale.kind, range=scale.range, tickvals=scale.ticks, ticktext=scale.labels
    )
    chart.update_xaxes(
        range=[-margin, len(rows) - 1 + margin], tickvals=at, ticktext=text, title_text=title
    )
    return chart


def _point(theme: Theme) -> dict[str, object]:
    return {"size": 5, "color": faded(theme.text, 0.55)}


def _ring(theme: Theme) -> dict[str, object]:
    return {"size": 11, "color": theme.candidate, "line": {"width": 3, "color": theme.accent}}


def _thinned(rows: pd.DataFrame, size: pd.Series) -> pd.DataFrame:
    if len(rows) <= MOST_POINTS:
        return rows
    stretch = np.arange(len(rows)) * MOST_POINTS // len(rows)
    return rows.loc[size.groupby(stretch).idxmax()]


def _hover(rows: pd.DataFrame, column: str, label: str) -> np.ndarray:
    names = [
        f"{for_html(operator)} · {for_html(slot)}"
        for operator, slot in zip(rows["operator"], rows["slot"], strict=True)
    ]
    lines = [
        f"{label} {error(value)}<br>{_('elements')} {elements:,}"
        for value, elements in zip(rows[column], rows["elements"], strict=True)
    ]
    return np.stack([rows["tensor"].astype(str), names, lines], axis=1)
