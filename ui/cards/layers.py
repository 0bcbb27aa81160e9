"""The heat map and the inside of a module; a click opens the tensor or drills into the module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from analysis.views_grid import Grid
from analysis.views_layers import block_grid, metric_grid, place_grid
from analysis.views_rows import has_inside, worst_first
from analysis.views_tree import Node, Size, tree
from charts.heatmap import (
    HERE,
    MOST_ROWS,
    TOTAL,
    Colour,
    Metric,
    block_heatmap,
    metric_heatmap,
    scale_ends,
)
from charts.icicle import icicle
from charts.names import for_html
from core.words import word
from language import _, say, told
from metrics import METRICS
from ui import chart, clicks, url
from ui.cards.scope import METRIC_COLUMNS, Scope, here
from ui.frame import View
from ui.kept import kept
from ui.markup import anchor, heading

_NAMED = {"added": Metric(HERE, 0.0), "times_floor": Metric(TOTAL, 0.0)}
_TITLES = {
    "metric": say("Error by module and metric"),
    "layer": say("Error by operator and layer"),
    "rank": say("Error by place and rank"),
    "step": say("Error by place and step"),
}
_SIZES = {
    "elements": say("height = elements"),
    "order": say("equal heights in execution order"),
    "added": say("height = error added here"),
}
_TABLE = ["verdict", "operator", "slot", "added", "times_floor", "relative_l2", "cosine_distance"]


def heat(view: View, scope: Scope) -> int:
    """The heat map of the scope with its colour keys and its numbers as a table; its height."""
    by_metric = scope.across == "metric" or (scope.stack is None and scope.across == "layer")
    grid, figure = kept(view, "heat", lambda: _heat(view, scope, by_metric=by_metric))
    title = told(_TITLES["metric" if by_metric else scope.across])
    with st.container(horizontal=True, vertical_alignment="center", key="head-heat"):
        st.html(heading(title, _aside(grid), _all_rows(grid, scope) + _keys(scope, grid, view)))
        chart.as_table(scope.held[_TABLE], key="heat-table")

    def opened(row: int, column: int) -> None:
        pair = int(grid.pair[row, column])
        if grid.folded > 1 and grid.spans[row][1] - grid.spans[row][0] > 1:
            first, last = grid.spans[row]
            url.put(span=f"{first}-{last}")
        elif pair >= 0:
            open_path(view.table, str(grid.path[row, column]), pair)

    clicks.heatmap(figure, key="heat", alt=title, on_cell=opened)
    return int(figure.layout.height)


def _heat(view: View, scope: Scope, *, by_metric: bool) -> tuple[Grid, go.Figure]:
    grid = _grid(view, scope, by_metric=by_metric)
    if by_metric:
        return grid, metric_heatmap(grid, metrics=_metrics(view), at="", theme=view.theme)
    return grid, block_heatmap(
        grid, colour=_colour(scope), metric=_metric(scope), at=scope.at,
        title=_columns_title(scope), theme=view.theme,
    )  # fmt: skip


def inside(view: View, scope: Scope, *, height: int) -> None:
    """The subtree of the place as an icicle."""
    title = _("Inside {place}", place=scope.at) if scope.at else _("Inside the model")
    with st.container(horizontal=True, vertical_alignment="center", key="head-inside"):
        head = st.empty()
        size = _size()
        nodes = kept(
            view, "tree",
            lambda: tree(scope.held, scope.at, size=size, metric=_coloured_by(scope)),
        )  # fmt: skip
        chart.as_table(_boxes(nodes), key="inside-table")
    head.html(heading(title, told(_SIZES[size])))

    def opened(path: str) -> None:
        if path == (scope.at or "."):
            url.put(at=scope.at.rpartition(".")[0] or None, p=None)
        elif not path.endswith("…"):
            worst = worst_first(scope.held[scope.held["operator"] == path])
            pair = int(worst["pair"].to_list()[0]) if len(worst) else -1
            open_path(view.table, path, pair)

    metric = _metric(scope) if scope.colour in METRICS else None
    figure = kept(
        view, "icicle",
        lambda: icicle(
            nodes, theme=view.theme, height=height, colour=_colour(scope), metric=metric
        ),
        height,
    )  # fmt: skip
    clicks.icicle(figure, key="icicle", alt=title, on_box=opened)


def open_path(table: pd.DataFrame, path: str, pair: int) -> None:
    """Drill into a module that holds operators, else open the tensor of the pair. In a callback."""
    if has_inside(table["operator"].unique(), path) or pair < 0:
        url.put(at=path, p=None, span=None)
    else:
        url.go_after("tensor", t=table["tensor"].iat[pair])


def _size() -> Size:
    labels = {"elements": _("Elements"), "order": _("Order"), "added": _("Error added")}
    options: dict[str, Size] = {"elements": "elements", "order": "order", "added": "added"}
    return url.choose(
        _("Height of a box"), options, key="size", labels=labels, visible=False, width=130
    )


def _coloured_by(scope: Scope) -> tuple[str, float] | None:
    return (scope.colour, _metric(scope).ideal) if scope.colour in METRICS else None


def _boxes(nodes: Sequence[Node]) -> pd.DataFrame:
    columns = ["path", "elements", "size", "added", say("total"), "value", "verdict", "inside"]
    return pd.DataFrame([[getattr(n, c) for c in columns] for n in nodes], columns=columns)


def _grid(view: View, scope: Scope, *, by_metric: bool) -> Grid:
    if by_metric:
        return _metric_grid(view, scope)
    metric = scope.colour if scope.colour in METRICS else "relative_l2"
    if scope.across in ("rank", "step"):
        place: Literal["rank", "step"] = "rank" if scope.across == "rank" else "step"
        return place_grid(
            scope.held, place, by=scope.by, metric=metric, max_rows=MOST_ROWS, span=scope.span
        )
    return _block_grid(scope, metric)


def _columns_title(scope: Scope) -> str:
    if scope.across in ("rank", "step"):
        return told(word(scope.across))
    return scope.stack.prefix.rpartition(".")[2] if scope.stack else ""


def _block_grid(scope: Scope, metric: str) -> Grid:
    if scope.stack is None:
        raise ValueError("no repeated blocks")
    return block_grid(
        scope.shown, scope.stack, by=scope.by, metric=metric, max_rows=MOST_ROWS, span=scope.span
    )


def _metric_grid(view: View, scope: Scope) -> Grid:
    return metric_grid(
        scope.held, scope.at, by=scope.by, max_rows=MOST_ROWS, span=scope.span,
        metrics={name: _of(name).ideal for name in _columns(view)},
    )  # fmt: skip


def _columns(view: View) -> list[str]:
    metric = METRICS.get(view.metric)
    chosen = [view.metric] if metric is not None and metric.ideal is not None else []
    return list(dict.fromkeys([*METRIC_COLUMNS, *chosen]))


def _metrics(view: View) -> list[Metric]:
    return [_of(name) for name in _columns(view)]


def _of(name: str) -> Metric:
    if name in _NAMED:
        return _NAMED[name]
    ideal = METRICS[name].ideal
    return Metric(METRICS[name].label, 0.0 if ideal is None else ideal)


def _metric(scope: Scope) -> Metric:
    return _of(scope.colour if scope.colour in METRICS else "relative_l2")


def _colour(scope: Scope) -> Colour:
    return "metric" if scope.colour in METRICS else "added" if scope.colour == "added" else "both"


def _aside(grid: Grid) -> str:
    if grid.folded > 1:
        return _("a row is the worst of up to {n}; click a cell to see them", n=grid.folded)
    return _("click a cell to open it")


def _all_rows(grid: Grid, scope: Scope) -> str:
    """Which of its rows the heat map shows, with a way back to all of them (HTML)."""
    if scope.span is None or not grid.spans:
        return ""
    first, last = grid.spans[0][0] + 1, grid.spans[-1][1]
    said = _("rows {first} to {last} of {total}", first=first, last=last, total=grid.total_rows)
    return f"<span>{for_html(said)} {anchor(here(span=None), _('all rows'))}</span>"


def _keys(scope: Scope, grid: Grid, view: View) -> str:
    theme = view.theme
    if scope.colour in METRICS:
        metric = _metric(scope)
        ramp = _ramp(theme.inherited, 96)
        return f"<span>{for_html(told(metric.label))} {ramp} {scale_ends(grid, metric)}</span>"
    quiet = (_("inherited"), theme.inherited, 64)
    if scope.colour == "added":
        quiet = (_("adds ≤ 2×"), theme.ember[:1] * 2, 12)
    ramps = "".join(
        f"<span>{for_html(name)} {_ramp(stops, width)}</span>"
        for name, stops, width in (quiet, (_("added here"), theme.ember, 64))
    )
    return f"{ramps}<span>{for_html(_('1× to 1000× floor'))}</span>"


def _ramp(stops: tuple[str, ...], width: int) -> str:
    return (
        f'<i class="px-ramp" style="width:{width}px;'
        f'background:linear-gradient(90deg,{",".join(stops)})"></i>'
    )
