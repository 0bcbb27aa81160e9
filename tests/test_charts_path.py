"""The error path as data: what it shows, in what order, and what it says it leaves out."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import fakes
import numpy as np
import pandas as pd
import pytest

from charts import axes, execution
from charts.names import for_html
from charts.path import LABELLED, MOST_POINTS, Quantity, error_path, has_line, undrawn
from charts.sparkline import sparkline
from charts.tokens import DARK, LIGHT

FLOORS = Quantity("times_floor", "Times floor", in_floors=True)
RAW = Quantity("relative_l2", "Relative L2", in_floors=False)


@pytest.fixture
def rows() -> pd.DataFrame:
    compared = fakes.comparison()
    return execution.on_path(fakes.table(compared, fakes.judgement(compared)), "forward")


def drawn(figure, name: str):
    """The trace of that name."""
    return next(trace for trace in figure.data if trace.name == name)


def test_outputs_stand_in_execution_order(rows: pd.DataFrame) -> None:
    assert list(rows["operator"])[:3] == ["model.embed_tokens", *fakes.operators()[1:3]]
    assert list(rows["x"]) == list(range(len(rows)))


def test_the_repeated_blocks_are_found_whatever_they_are_called() -> None:
    names = pd.Series(["emb", "enc.block.0.a", "enc.block.1.a.conv.3", "enc.block.1", "head"])
    assert list(execution.blocks(names)) == [-1, 0, 1, 1, -1]
    assert list(execution.blocks(pd.Series(["a", "b.0"]))) == [-1, -1]


def test_inputs_are_not_on_the_path_but_faulty_parameters_are() -> None:
    infos = [
        fakes.tensor("a", 0, slot="input", id="i"),
        fakes.tensor("a", 1, id="o"),
        fakes.tensor("a", 2, slot="parameter", pass_="parameter", argument="weight", id="w"),
        fakes.tensor("a", 3, pass_="backward", id="g"),
    ]
    compared = fakes.comparison(pairs=tuple(map(fakes.pair, infos)))
    table = fakes.table(compared, fakes.judgement(compared))
    assert list(execution.on_path(table, "forward")["tensor"]) == ["o"]
    table.loc[2, "verdict"] = "fault"
    assert list(execution.on_path(table, "forward")["tensor"]) == ["o", "w"]
    assert list(execution.on_path(table, "backward")["tensor"]) == ["g"]
    assert execution.directions(table) == ["forward", "backward"]


def test_the_fault_is_a_labelled_diamond_at_the_dotted_line(rows: pd.DataFrame) -> None:
    first = fakes.operators().index(fakes.FAULT)
    figure = error_path(rows, FLOORS, first=first, theme=LIGHT)
    fault = drawn(figure, "fault")
    assert (fault.marker.symbol, fault.marker.color) == ("diamond", LIGHT.fault)
    assert list(fault.y) == [113.0]
    assert any("113×" in note.text for note in figure.layout.annotations)
    dotted = [shape for shape in figure.layout.shapes if shape.type == "line"]
    assert [shape.x0 for shape in dotted] == list(fault.x)


def test_the_line_joins_the_outputs_of_the_blocks_only(rows: pd.DataFrame) -> None:
    line = drawn(error_path(rows, FLOORS, first=None, theme=LIGHT), "blocks")
    assert [tensor[0] for tensor in line.customdata] == [
        f"step0/rank0/model.layers.{n}/forward_output.0" for n in range(fakes.LAYERS)
    ]
    assert has_line(rows)
    assert not has_line(rows[rows["block"] < 0])


def test_a_point_carries_its_tensor_for_the_click(rows: pd.DataFrame) -> None:
    figure = error_path(rows, FLOORS, first=None, theme=DARK)
    found = {str(data[0]) for trace in figure.data for data in trace.customdata}
    assert found == set(rows.loc[rows["times_floor"].notna(), "tensor"])


def test_what_is_not_drawn_is_counted(rows: pd.DataFrame) -> None:
    rows.loc[rows.index[0], "times_floor"] = 0.0
    rows.loc[rows.index[1], "times_floor"] = math.inf
    text = undrawn(rows, FLOORS)
    assert "1 uncompared not drawn" in text
    assert "1 without error at the lower edge" in text
    assert "1 non-finite on one side at the upper edge" in text
    assert undrawn(rows.iloc[2:-1], FLOORS) == ""


def test_zero_and_infinity_are_drawn_at_the_edges(rows: pd.DataFrame) -> None:
    rows["times_floor"] = [0.0, math.inf, *[1.0] * (len(rows) - 2)]
    figure = error_path(rows, FLOORS, first=None, theme=LIGHT)
    low, high = (10.0**edge for edge in figure.layout.yaxis.range)
    ys = np.concatenate([np.asarray(t.y, float) for t in figure.data])
    assert ys.min() == pytest.approx(low)
    assert ys.max() == pytest.approx(high)


def test_a_raw_metric_has_no_floor_band(rows: pd.DataFrame) -> None:
    figure = error_path(rows, RAW, first=None, theme=LIGHT)
    assert not [shape for shape in figure.layout.shapes if shape.type == "rect"]
    assert not any("rounding" in note.text for note in figure.layout.annotations)


def test_an_empty_path_says_why(rows: pd.DataFrame) -> None:
    nothing = rows.assign(times_floor=math.nan)
    (note,) = error_path(nothing, FLOORS, first=None, theme=LIGHT).layout.annotations
    assert "has a value" in note.text
    (note,) = error_path(rows.iloc[:0], FLOORS, first=None, theme=LIGHT).layout.annotations
    assert "No tensor" in note.text


def test_many_points_are_reduced_by_maximum() -> None:
    rows = pd.DataFrame({"y": np.arange(10_000.0) % 97})
    rows.loc[4321, "y"] = 1e6
    kept = execution.thinned(rows, MOST_POINTS)
    assert len(kept) <= MOST_POINTS
    assert 1e6 in set(kept["y"])


def test_many_findings_go_without_labels(rows: pd.DataFrame) -> None:
    rows["verdict"] = "fault"
    figure = error_path(rows, FLOORS, first=None, theme=LIGHT)
    assert len(rows) > LABELLED
    assert len(figure.layout.annotations) == 1  # the floor band's


def test_a_hostile_name_stays_text(rows: pd.DataFrame) -> None:
    rows["operator"] = fakes.HOSTILE
    figure = error_path(rows, FLOORS, first=None, theme=LIGHT)
    for trace in figure.data:
        assert all("<img" not in str(data) for data in trace.customdata)
        assert "img" not in trace.hovertemplate
    assert all("<img" not in note.text for note in figure.layout.annotations)
    assert for_html(fakes.HOSTILE)[:8] in str(figure.data[0].customdata[0])


@pytest.mark.parametrize(
    ("values", "in_floors", "kind"),
    [
        ([0.5, 3.0, 113.0], True, "log"),
        ([0.0, 0.0], True, "log"),
        ([1e-7, 1e-3], False, "log"),
        ([-1.0, 5.0], False, "linear"),
        ([40.0, 60.0], False, "linear"),
        ([0.0], False, "linear"),
        ([3.0], False, "linear"),
        ([math.inf], False, "linear"),
    ],
)
def test_an_axis_holds_its_values_with_a_few_ticks(
    values: list[float], in_floors: bool, kind: str
) -> None:
    series = pd.Series(values)
    scale = axes.scale_for(series, in_floors=in_floors)
    assert scale.kind == kind
    assert scale.low < scale.high
    assert 2 <= len(scale.ticks) <= 8
    assert len(scale.ticks) == len(scale.labels)
    clipped = scale.clipped(series)
    assert ((clipped >= scale.low) & (clipped <= scale.high)).all()


def test_ticks_are_round_numbers() -> None:
    log = axes.scale_for(pd.Series([1e-7, 1e-2]), in_floors=False)
    assert log.labels == ["1e−7", "1e−6", "1e−5", "1e−4", "0.001", "0.01"]
    assert axes.scale_for(pd.Series([-20.0, 40.0]), in_floors=False).labels == [
        "−20", "0", "20", "40"
    ]  # fmt: skip
    floors = axes.scale_for(pd.Series([1.0, 113.0]), in_floors=True)
    assert floors.labels == ["0.1×", "1×", "10×", "100×"]


@pytest.mark.parametrize("values", [[], [math.nan], [1.0], [0.0, math.inf], list(range(5000))])
def test_a_sparkline_is_valid_svg_of_bounded_size(values: list[float]) -> None:
    svg = sparkline(values, LIGHT)
    ET.fromstring(svg)
    assert len(svg) < 10_000
    assert "nan" not in svg
