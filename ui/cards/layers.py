"""The heat map and the inside of a module; a click opens the tensor or drills into the module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pandas as pd
import streamlit as st

from analysis.views_layers import Grid, block_grid, metric_grid, place_grid
from analysis.views_rows import has_inside, worst_first
from analysis.views_tree import Node, tree
from charts.heatmap import MOST_ROWS, Colour, Metric, block_heatmap, metric_heatmap, scale_ends
from charts.icicle import icicle
from charts.tokens import Theme
from metrics import METRICS
from ui import chart, clicks, url
from ui.cards.scope import Scope
from ui.frame import View
from ui.markup import heading

_METRIC_COLUMNS = (
    "times_floor", "added", "relative_l2", "cosine_distance", "max_abs_error", "ulp_p99",
    "mismatch_fraction", "nonfinite_mismatch", "js_divergence",
)  # fmt: skip
_NAMED = {"added": Metric("added here", 0.0), "times_floor": Metric("total", 0.0)}
_TITLES = {
    "metric": "Error by module and metric",
    "layer": "Error by operator and layer",
    "rank": "Error by place and rank",
    "step": "Error by place and step",
}
_TABLE = ["verdict", "operator", "slot", "added", "times_floor", "relative_l2", "cosine_distance"]


def heat(view: View, scope: Scope) -> int:
    """The heat map of the scope with its colour keys and its numbers as a table; its height."""
    by_metric = scope.across == "metric" or (scope.stack is None and scope.across == "layer")
    grid = _grid(view, scope, by_metric=by_metric)
    title = _TITLES["metric" if by_metric else scope.across]
    with st.container(horizontal=True, vertical_alignment="center", key="head-heat"):
        st.html(heading(title, _aside(grid), _keys(scope, grid, view.theme)))
        chart.as_table(scope.held[_TABLE], key="heat-table")
    figure = (
        metric_heatmap(grid, metrics=_metrics(view), at="", theme=view.theme)
        if by_metric
        else block_heatmap(
            grid, colour=_colour(scope), metric=_metric(scope), at=scope.at,
            title=_columns_title(scope), theme=view.theme,
        )
    )  # fmt: skip
    operators = view.table["operator"].astype(str)

    def opened(row: int, column: int) -> None:
        pair = int(grid.pair[row, column])
        if pair >= 0:
            open_path(view.table, operators, str(grid.path[row, column]), pair)

    clicks.heatmap(figure, key="heat", alt=title, on_cell=opened)
    return int(figure.layout.height)


def inside(view: View, scope: Scope, *, height: int) -> None:
    """The subtree of the place as an icicle."""
    place = scope.at or "the model"
    nodes = tree(scope.held, scope.at)
    with st.container(horizontal=True, vertical_alignment="center", key="head-inside"):
        st.html(heading(f"Inside {place}", "height = elements, colour = added"))
        chart.as_table(_boxes(nodes), key="inside-table")
    operators = view.table["operator"].astype(str)

    def opened(path: str) -> None:
        if path == (scope.at or "."):
            url.put(at=scope.at.rpartition(".")[0] or None, p=None)
        elif not path.endswith("…"):
            worst = worst_first(scope.held[scope.held["operator"] == path])
            pair = int(worst["pair"].to_list()[0]) if len(worst) else -1
            open_path(view.table, operators, path, pair)

    figure = icicle(nodes, theme=view.theme, height=height)
    clicks.icicle(figure, key="icicle", alt=f"Inside {place}", on_box=opened)


def open_path(table: pd.DataFrame, operators: pd.Series, path: str, pair: int) -> None:
    """Drill into a module that holds operators, else open the tensor of the pair. In a callback."""
    if has_inside(operators, path) or pair < 0:
        url.put(at=path, p=None)
    else:
        url.go_after("tensor", t=table["tensor"].iat[pair])


def _boxes(nodes: Sequence[Node]) -> pd.DataFrame:
    columns = ["path", "elements", "added", "total", "verdict", "inside"]
    return pd.DataFrame([[getattr(n, c) for c in columns] for n in nodes], columns=columns)


def _grid(view: View, scope: Scope, *, by_metric: bool) -> Grid:
    if by_metric:
        return _metric_grid(view, scope)
    metric = scope.colour if scope.colour in METRICS else "relative_l2"
    if scope.across in ("rank", "step"):
        place: Literal["rank", "step"] = "rank" if scope.across == "rank" else "step"
        return place_grid(scope.held, place, by=scope.by, metric=metric, max_rows=MOST_ROWS)
    return _block_grid(scope, metric)


def _columns_title(scope: Scope) -> str:
    if scope.across in ("rank", "step"):
        return scope.across
    return scope.stack.prefix.rpartition(".")[2] if scope.stack else ""


def _block_grid(scope: Scope, metric: str) -> Grid:
    if scope.stack is None:
        raise ValueError("no repeated blocks")
    return block_grid(scope.every, scope.stack, by=scope.by, metric=metric, max_rows=MOST_ROWS)


def _metric_grid(view: View, scope: Scope) -> Grid:
    return metric_grid(
        scope.held, scope.at, by=scope.by, max_rows=MOST_ROWS,
        metrics={name: _of(name).ideal for name in _columns(view)},
    )  # fmt: skip


def _columns(view: View) -> list[str]:
    metric = METRICS.get(view.metric)
    chosen = [view.metric] if metric is not None and metric.ideal is not None else []
    return list(dict.fromkeys([*_METRIC_COLUMNS, *chosen]))


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
    folded = f"; a row is the worst of up to {grid.folded} operators" if grid.folded > 1 else ""
    return f"click a cell to open it{folded}"


def _keys(scope: Scope, grid: Grid, theme: Theme) -> str:
    if scope.colour in METRICS:
        metric = _metric(scope)
        return (
            f"<span>{metric.label} {_ramp(theme.inherited, 96)} {scale_ends(grid, metric)}</span>"
        )
    quiet = ("inherited", theme.inherited, 64)
    if scope.colour == "added":
        quiet = ("adds ≤ 2×", theme.ember[:1] * 2, 12)
    ramps = "".join(
        f"<span>{name} {_ramp(stops, width)}</span>"
        for name, stops, width in (quiet, ("added here", theme.ember, 64))
    )
    return f"{ramps}<span>1× to 1000× floor</span>"


def _ramp(stops: tuple[str, ...], width: int) -> str:
    return (
        f'<i class="px-ramp" style="width:{width}px;'
        f'background:linear-gradient(90deg,{",".join(stops)})"></i>'
    )
