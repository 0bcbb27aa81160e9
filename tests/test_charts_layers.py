"""Heat maps and the icicle as data: which trace, which colour, which words."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_views_layers import blocks, rows

from analysis.views_layers import block_grid, metric_grid, stack_of
from analysis.views_tree import tree
from charts.heatmap import (
    MOST_PIXELS,
    MOST_ROWS,
    ROW_PIXELS,
    Metric,
    block_heatmap,
    metric_heatmap,
    position,
    scale_ends,
    shades,
)
from charts.icicle import icicle
from charts.tokens import DARK, LIGHT

L2 = Metric("Relative L2", 0.0)


def grid_of(table):
    return block_grid(
        table, stack_of(table["operator"]), by="operator", metric="relative_l2", max_rows=MOST_ROWS
    )


def faulty():
    """16 operators: a fault at 1, watch at 6, inherited after, one uncompared, one NaN addition."""
    verdict = ["rounding"] * 16
    verdict[1], verdict[6], verdict[7], verdict[8], verdict[9] = (
        "fault", "watch", "inherited", "uncompared", "fault",
    )  # fmt: skip
    added = [0.5] * 16
    added[1], added[6], added[7], added[8], added[9] = 100.0, 7.0, 5.0, math.nan, math.nan
    total = [1.0] * 16
    total[1], total[7], total[8], total[9] = 100.0, 50.0, math.nan, math.inf
    return grid_of(rows(blocks(), verdict=verdict, added=added, times_floor=total))


def at(grid, pair):
    return tuple(np.argwhere(grid.pair == pair)[0])


def test_colour_is_spent_on_fault_and_watch_and_all_else_is_grey_by_total():
    grid = faulty()
    grey, ember = shades(grid, "both")
    assert ember[at(grid, 1)] == pytest.approx(2)
    assert ember[at(grid, 6)] == pytest.approx(math.log10(7))
    assert grey[at(grid, 7)] == pytest.approx(math.log10(50))
    assert ember[at(grid, 9)] == 3  # non-finite on one side: the last stop
    assert np.isnan(ember).sum() == 13
    assert (np.isnan(grey) ^ np.isnan(ember)).sum() == 15
    assert np.isnan(grey[at(grid, 8)])
    assert np.isnan(ember[at(grid, 8)])


def test_the_view_of_added_colours_whatever_adds_and_leaves_the_rest_neutral():
    grid = faulty()
    grey, ember = shades(grid, "added")
    assert ember[at(grid, 7)] == pytest.approx(math.log10(5))
    assert np.nanmax(grey) == 0


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_a_block_map_has_marks_hover_and_an_outline(theme):
    grid = faulty()
    chart = block_heatmap(
        grid, colour="both", metric=L2, at="model.layers.0", title="layers", theme=theme
    )
    names = [trace.name for trace in chart.data]
    assert names == [
        "uncompared",
        "grey",
        "ember",
        "fault marks",
        "watch marks",
        "uncompared marks",
    ]
    assert [len(chart.data[i].text) for i in (3, 4, 5)] == [2, 1, 1]
    assert all(trace.hoverinfo == "skip" for trace in chart.data[3:])
    assert all((t.xgap, t.ygap) == (2, 2) for t in chart.data[:3])
    name, lines = chart.data[1].customdata[at(grid, 1)]
    assert name == "model.layers.0.attn"
    assert lines == "total 100× floor, fault<br>added here 100× floor<br>Relative L2 0.00100"
    assert "–" in chart.data[1].customdata[at(grid, 9)][1]
    (outline,) = chart.layout.shapes
    assert (outline.x0, outline.x1, outline.line.color) == (-0.5, 0.5, theme.accent)
    assert list(chart.layout.yaxis.ticktext) == ["attn.q", "attn", "mlp.up", "mlp"]


def test_a_raw_metric_stays_grey_and_states_its_scale():
    grid = grid_of(rows(blocks(), relative_l2=[10.0**-n for n in range(16)]))
    chart = block_heatmap(grid, colour="metric", metric=L2, at="", title="layers", theme=LIGHT)
    assert [trace.name for trace in chart.data] == ["uncompared", "grey"]
    assert np.nanmax(chart.data[1].z) == 3
    assert scale_ends(grid, L2) == "1.00e−15 – 1.00"


def test_a_map_never_has_more_rows_than_its_height_can_show():
    table = rows(blocks(parts=tuple(f"op{i}" for i in range(300))))
    chart = block_heatmap(grid_of(table), colour="both", metric=L2, at="", title="", theme=LIGHT)
    assert chart.layout.height <= MOST_PIXELS
    assert len(chart.data[1].z) <= (MOST_PIXELS - 60) / ROW_PIXELS


@pytest.mark.parametrize(
    ("values", "ideal", "places", "ends"),
    [
        ([0.0, 1e-4, 1e-2], 0.0, [0, 0, 3], "1.00e−4 – 0.0100"),
        ([1.0, 1.1, 0.0], 1.0, [0, 0, 3], "0.100 – 1.00"),
        ([60.0, 20.0, math.inf], math.inf, [0, 3, 0], "60.0 – 20.0"),
        ([0.0, 0.0], 0.0, [0, 0], "all ideal"),
        ([math.nan], 0.0, [math.nan], "undefined"),
        ([math.inf, 1.0], 0.0, [3, 0], "1.00 – 1.00"),
    ],
)
def test_a_column_is_placed_on_its_own_stated_scale(values, ideal, places, ends):
    place, said = position(np.array(values), ideal)
    assert place.tolist() == pytest.approx(places, abs=1e-9, nan_ok=True)
    assert said == ends


def test_a_metric_map_says_each_columns_scale_below_its_name():
    table = rows(
        ["a.x", "a.y"], relative_l2=[0.1, 0.001], verdict=["fault", "rounding"], added=[50, 1]
    )
    names = {"times_floor": 0.0, "added": 0.0, "relative_l2": 0.0}
    grid = metric_grid(table, "a", by="operator", metrics=names, max_rows=9)
    labels = [Metric("total", 0.0), Metric("added here", 0.0), L2]
    chart = metric_heatmap(grid, metrics=labels, at="", theme=LIGHT)
    assert list(chart.layout.xaxis.ticktext)[2].endswith("Relative L2<br>0.00100 –<br>0.100")
    ember = next(t for t in chart.data if t.name == "ember").z
    assert not np.isnan(ember[0][1])
    assert np.isnan(ember).sum() == 5
    assert len(next(t for t in chart.data if t.name == "fault marks").text) == 1


def test_hostile_names_stay_text_in_every_label():
    table = rows([f"layers.{n}.<b>x</b>" for n in range(3)])
    chart = block_heatmap(grid_of(table), colour="both", metric=L2, at="", title="", theme=LIGHT)
    assert chart.layout.yaxis.ticktext[0] == "&lt;b&gt;x&lt;/b&gt;"
    assert "<b>x" not in str(chart.data[1].customdata)
    assert "<b>x" not in icicle(tree(table, ""), theme=LIGHT, height=300).to_json()


def test_an_icicle_has_ids_for_clicks_and_colours_by_added():
    verdict = ["rounding"] * 16
    verdict[4] = "fault"
    added = [0.5] * 16
    added[4] = 1000.0
    nodes = tree(rows(blocks(), verdict=verdict, added=added), "")
    (trace,) = icicle(nodes, theme=LIGHT, height=300).data
    assert len(set(trace.ids)) == len(nodes) <= 500
    assert trace.ids[0] == "."
    fill = dict(zip(trace.ids, trace.marker.colors, strict=True))
    assert fill["model.layers.1.attn.q"] == LIGHT.ember[-1]
    assert fill["model.layers.1"] == LIGHT.surface_1
    assert fill["model.layers.0.attn.q"] == LIGHT.inherited[0]


def test_nothing_to_show_is_said_in_the_charts_place():
    empty = rows(blocks()).iloc[:0]
    assert "Nothing" in icicle((), theme=LIGHT, height=300).layout.annotations[0].text
    grid = metric_grid(empty, "", by="module", metrics={"relative_l2": 0.0}, max_rows=9)
    assert metric_heatmap(grid, metrics=[L2], at="", theme=LIGHT).layout.annotations
