"""Error along execution order: where the two runs part, and who adds error on the way.

Reads the pair table (one row per pair, see `analysis.table`); draws at most `MOST_POINTS` points,
reduced by maximum, never by sampling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analysis.verdict import LIMIT
from charts import axes
from charts.execution import marks, stream, thinned
from charts.names import for_html, shorten
from charts.template import PATH_HEIGHT, figure, message
from charts.tokens import MARKS, Theme, faded
from core.numbers import error, times_floor
from language import _

MOST_POINTS = 1200  # of a curve or a cloud: a screen has few more pixels across
LABELLED = 5  # findings are labelled when there are at most so many


@dataclass(frozen=True, slots=True)
class Quantity:
    """What the y axis shows: a column of the table, its name, and whether it is in times floor."""

    column: str
    label: str
    in_floors: bool


def error_path(
    rows: pd.DataFrame, quantity: Quantity, *, first: int | None, theme: Theme
) -> go.Figure:
    """Points for every output, a line through the repeated blocks' outputs, findings on top.

    `rows` comes from `execution.on_path`; `first` is the pair of the first divergence. The first
    column of every point's customdata is its tensor.
    """
    drawn = rows[rows[quantity.column].notna()].copy()
    if drawn.empty:
        return message(theme, _why_empty(rows, quantity), height=PATH_HEIGHT)
    scale = axes.scale_for(drawn[quantity.column], in_floors=quantity.in_floors)
    drawn["y"] = scale.clipped(drawn[quantity.column])
    chart = figure(theme, height=PATH_HEIGHT)
    _band(chart, scale, quantity, theme)
    _points(chart, drawn, quantity, theme)
    _line(chart, drawn, quantity, theme)
    _findings(chart, drawn, quantity, theme)
    _divergence(chart, drawn, first, theme)
    _axes(chart, rows, scale)
    return chart


def undrawn(rows: pd.DataFrame, quantity: Quantity) -> str:
    """What the chart leaves out or clips, in words; empty when nothing."""
    values = rows[quantity.column]
    missing, compared = int(values.isna().sum()), rows["problem"] == ""
    uncompared = int((values.isna() & ~compared).sum())
    parts = [
        _("{n} uncompared not drawn", n=uncompared) if uncompared else "",
        _("{n} without a value not drawn", n=missing - uncompared) if missing > uncompared else "",
    ]
    if quantity.in_floors:
        equal, beyond = int((values == 0).sum()), int(np.isinf(values).sum())
        parts.append(_("{n} without error at the lower edge", n=equal) if equal else "")
        beyond_edge = _("{n} non-finite on one side at the upper edge", n=beyond)
        parts.append(beyond_edge if beyond else "")
    return "; ".join(part for part in parts if part)


def has_line(rows: pd.DataFrame) -> bool:
    """Whether the repeated blocks themselves were recorded, so that there is a line to draw."""
    return len(stream(rows)) > 1


def _why_empty(rows: pd.DataFrame, quantity: Quantity) -> str:
    if rows.empty:
        return _("No tensor of this direction was recorded.")
    label = quantity.label.lower()
    return _("None of the {n} outputs has a value for {metric}.", n=len(rows), metric=label)


def _hover(rows: pd.DataFrame, quantity: Quantity) -> np.ndarray:
    """Columns: tensor, its name made safe, then one line of the quantity and its companions."""
    template = _("total {times} floor"), _("added here {times} floor")
    total, added = (
        [said.replace("{times}", times_floor(v)) for v in rows[column]]
        for said, column in zip(template, ("times_floor", "added"), strict=True)
    )
    raw = "relative_l2" if quantity.in_floors else quantity.column
    label = _("relative L2") if quantity.in_floors else quantity.label
    third = [f"{label} {error(v)}" for v in rows[raw]]
    lines = ["<br>".join(line) for line in zip(total, added, third, strict=True)]
    names = [
        f"{for_html(operator)} · {for_html(slot)}"
        for operator, slot in zip(rows["operator"], rows["slot"], strict=True)
    ]
    return np.stack([rows["tensor"].astype(str), names, lines], axis=1)


def _template() -> str:
    return f"<b>%{{customdata[1]}}</b><br>%{{customdata[2]}}<br>{_('click to open')}<extra></extra>"


def _scatter(chart: go.Figure, rows: pd.DataFrame, quantity: Quantity, **look: object) -> None:
    chart.add_scatter(
        x=rows["x"],
        y=rows["y"],
        customdata=_hover(rows, quantity),
        hovertemplate=_template(),
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
        **look,
    )


def _points(chart: go.Figure, rows: pd.DataFrame, quantity: Quantity, theme: Theme) -> None:
    quiet = rows[~rows["verdict"].isin(("fault", "watch"))]
    fill = faded(theme.reference, 0.6)
    hollow = {"size": 5, "color": theme.bg, "line": {"width": 1, "color": theme.reference}}
    looks = ((False, "outputs", {"size": 4.5, "color": fill}), (True, "inputs", hollow))
    for given, name, marker in looks:
        some = thinned(quiet[quiet["given"] == given], MOST_POINTS)
        if len(some) or not given:
            _scatter(chart, some, quantity, mode="markers", marker=marker, name=name)


def _line(chart: go.Figure, rows: pd.DataFrame, quantity: Quantity, theme: Theme) -> None:
    outputs = stream(rows)
    if len(outputs) > 1:
        line = {"color": theme.text, "width": 2}
        outputs = thinned(outputs, MOST_POINTS)
        _scatter(chart, outputs, quantity, mode="lines", line=line, name="blocks")


def _findings(chart: go.Figure, rows: pd.DataFrame, quantity: Quantity, theme: Theme) -> None:
    found = rows[rows["verdict"].isin(("fault", "watch"))]
    for verdict, size, colour in (("watch", 13, theme.watch_mark), ("fault", 15, theme.fault)):
        marker = {
            "size": size,
            "symbol": MARKS[verdict].symbol,  # type: ignore[index]
            "color": colour,
            "line": {"width": 2, "color": theme.bg},
        }
        some = thinned(found[found["verdict"] == verdict], MOST_POINTS)
        if len(some):
            _scatter(chart, some, quantity, mode="markers", marker=marker, name=verdict)
    if len(found) <= LABELLED:
        _labels(chart, rows, found, theme, quantity)


def _labels(
    chart: go.Figure, rows: pd.DataFrame, found: pd.DataFrame, theme: Theme, quantity: Quantity
) -> None:
    for row in found.to_dict("records"):
        fault = row["verdict"] == "fault"
        left = row["x"] > 0.5 * len(rows)
        name = for_html(_brief(row["operator"], row["block"]))
        value = (times_floor if quantity.in_floors else error)(row[quantity.column])
        chart.add_annotation(
            x=row["x"],
            y=np.log10(row["y"]) if chart.layout.yaxis.type == "log" else row["y"],
            text=f"<b>{name}, {value}</b>" if fault else name,
            showarrow=False,
            xanchor=("right" if left else "left") if fault else "center",
            xshift=(-14 if left else 14) if fault else 0,
            yshift=0 if fault else 18,
            font={"size": 13 if fault else 12, "color": theme.fault if fault else theme.watch},
        )


def _brief(operator: str, block: int) -> str:
    """`24 down_proj`: the block's number and the last segment, enough to tell a small mark by."""
    last = operator.rpartition(".")[2]
    return f"{block} {last}" if block >= 0 and last != str(block) else shorten(operator, 24)


def _band(chart: go.Figure, scale: axes.Scale, quantity: Quantity, theme: Theme) -> None:
    chart.update_yaxes(type=scale.kind)
    if not quantity.in_floors:
        return
    chart.add_shape(
        type="rect", xref="paper", x0=0, x1=1, y0=scale.low, y1=LIMIT,
        fillcolor=theme.surface_2, line={"width": 0}, layer="below",
    )  # fmt: skip
    chart.add_annotation(
        xref="paper", x=0.005, y=np.log10(LIMIT), xanchor="left", yanchor="top",
        text=_("explained by rounding, up to {limit}×", limit=f"{LIMIT:g}"), showarrow=False,
        font={"size": 12, "color": theme.muted},
    )  # fmt: skip


def _divergence(chart: go.Figure, rows: pd.DataFrame, first: int | None, theme: Theme) -> None:
    at = rows.loc[rows["pair"] == first, ["x", "verdict"]]
    if at.empty:
        return
    x, verdict = at.iloc[0]
    colour = theme.fault if verdict == "fault" else theme.watch_mark
    chart.add_shape(
        type="line", x0=x, x1=x, yref="paper", y0=0, y1=1, layer="below",
        line={"color": colour, "width": 1, "dash": "dot"},
    )  # fmt: skip


def _axes(chart: go.Figure, rows: pd.DataFrame, scale: axes.Scale) -> None:
    chart.update_yaxes(range=scale.range, tickvals=scale.ticks, ticktext=scale.labels)
    at, text, title = marks(rows)
    margin = max(1.0, 0.01 * len(rows))
    chart.update_xaxes(
        range=[-margin, len(rows) - 1 + margin], tickvals=at, ticktext=text, title_text=title
    )
