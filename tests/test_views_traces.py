"""The same tensor elsewhere: at other steps, in other layers."""

from __future__ import annotations

import math

import pandas as pd

from analysis.views_layers import stack_of
from analysis.views_traces import along, traces


def table(steps=(0, 1, 2), blocks=3):
    rows = [
        {
            "operator": f"m.layers.{n}.up", "slot": "forward_output.0", "rank": rank, "call": 0,
            "step": step, "times_floor": 100.0 * step + 10 * n + (rank or 0),
        }
        for step in steps
        for rank in (None, 1)
        for n in range(blocks)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_several_steps_go_before_layers():
    stack = stack_of(table()["operator"].unique())
    assert along(table(), stack) == "step"
    assert along(table(steps=(4,)), stack) == "layer"
    assert along(table(steps=(4,)), None) is None


def test_a_trace_over_steps_stays_on_its_operator_and_rank():
    every = table()
    shown = every[(every["step"] == 1) & (every["operator"] == "m.layers.2.up")]
    lines = traces(every, shown, over="step", stack=None, column="times_floor")
    assert lines == [(20.0, 120.0, 220.0), (21.0, 121.0, 221.0)]


def test_a_trace_over_layers_stays_at_its_step():
    every = table()
    shown = every[(every["step"] == 1) & (every["operator"] == "m.layers.2.up")]
    stack = stack_of(every["operator"].unique())
    lines = traces(every, shown, over="layer", stack=stack, column="times_floor")
    assert lines == [(100.0, 110.0, 120.0), (101.0, 111.0, 121.0)]


def test_an_unknown_value_stays_unknown_and_calls_give_their_worst():
    every = pd.concat([table((0, 1), 1)] * 2, ignore_index=True)
    every.loc[0, "times_floor"] = 7.0
    every.loc[every["step"] == 1, "times_floor"] = math.nan
    (line, _) = traces(every, every.head(2), over="step", stack=None, column="times_floor")
    assert line[0] == 7.0
    assert math.isnan(line[1])
