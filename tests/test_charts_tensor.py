"""Histograms, profiles, drift and the slice component's bytes as data."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from memory_runs import run_of
from test_views_distributions import profile, stats

from analysis.selection import parse
from analysis.views import slice_view
from analysis.views_distributions import axis_curve, concentration, ulp_bars, value_curves
from charts.drift import moved
from charts.histograms import ulp_histogram, ulp_range, value_histogram
from charts.profiles import axis_profile, title
from charts.tokens import DARK, LIGHT
from ui.slices import Scene, names_of_axes, note, packed

A = np.random.default_rng(0).standard_normal(5000).astype(np.float32)


@pytest.mark.parametrize("symlog", [False, True])
def test_both_sides_are_drawn_as_everywhere_dashed_slate_and_solid_violet(symlog):
    chart = value_histogram(value_curves(stats(A, A), symlog=symlog), theme=LIGHT)
    reference, candidate = chart.data
    assert (reference.line.dash, reference.line.color, reference.fill) == (
        "dash",
        LIGHT.reference,
        "tozeroy",
    )
    assert (candidate.line.dash, candidate.line.color) == (None, LIGHT.candidate)
    assert sum(reference.y) == pytest.approx(100, abs=0.5)
    assert all(str(t).endswith(" %") for t in chart.layout.yaxis.ticktext)
    assert "−" in "".join(chart.layout.xaxis.ticktext)


def test_ulp_bars_are_grey_up_to_one_and_ember_beyond():
    b = A.copy()
    b[:10] += np.abs(A[:10]) * np.float32(0.1)
    bars = ulp_bars(stats(A, b))
    (trace,) = ulp_histogram(bars, theme=DARK).data
    assert set(trace.marker.color[:2]) == {DARK.line_strong}
    assert trace.marker.color[-1] == DARK.ember[-1]
    assert sum(trace.y) == pytest.approx(100)
    assert [ulp_range(bars, k) for k in range(5)] == ["0", "1", "2", "3–4", "5–8"]


def test_missing_distributions_are_said_in_words():
    assert value_histogram(None, theme=LIGHT).layout.annotations[0].text == "No value is finite."
    assert ulp_histogram(None, theme=LIGHT).layout.annotations
    assert axis_profile(None, name="token", floor=1.0, theme=LIGHT).layout.annotations


def test_a_short_axis_is_bars_with_the_floor_as_a_band_and_a_long_one_a_line():
    curve = axis_curve(profile(np.full(8, 0.01), np.ones(8)))
    chart = axis_profile(curve, name="head", floor=0.001, theme=LIGHT)
    assert chart.data[0].type == "bar"
    assert chart.data[0].y[0] == pytest.approx(10)
    assert chart.layout.shapes[0].fillcolor == LIGHT.surface_2
    assert chart.layout.yaxis.ticktext[-1].endswith("×")
    long = axis_curve(profile(np.full(5000, 0.01), np.ones(5000)))
    chart = axis_profile(long, name="token", floor=0.0, theme=LIGHT)
    assert chart.data[0].mode == "lines+markers"
    assert len(chart.data[0].y) <= 2000
    assert not chart.layout.shapes


def test_an_infinite_relative_error_stands_above_the_others():
    curve = axis_curve(profile([0.1, 0.2, 1.0], [1, 1, 0]))
    drawn = axis_profile(curve, name="channel", floor=0.0, theme=LIGHT).data[0].y
    assert np.isfinite(drawn).all()
    assert drawn[2] > max(drawn[:2])


def test_a_profiles_title_names_what_stands_out():
    error = np.full(64, 0.01)
    error[12] = 1.0
    assert title("token", concentration(profile(error, np.ones(64)))) == (
        "By token: 12 carries 99.4 % of the error energy"
    )
    assert title("head", concentration(profile(np.ones(64), np.ones(64)))) == "By head: even"
    assert title("head", None) == "By head: not kept, the axis is too long"


def test_drift_draws_one_point_a_tensor_and_rings_the_chosen():
    n = 3000
    rows = pd.DataFrame(
        {
            "pair": range(n),
            "x": range(n),
            "block": -1,
            "step": None,
            "tensor": [f"t{i}" for i in range(n)],
            "operator": "a.<i>",
            "slot": "o",
            "elements": 5,
            "js_divergence": np.linspace(0, 0.5, n),
        }
    )
    rows.loc[5, "js_divergence"] = math.nan
    points, ring = moved(rows, column="js_divergence", label="JS", chosen=7, theme=LIGHT).data
    assert len(points.x) <= 2000
    assert n - 1 in points.x
    assert list(ring.x) == [7]
    assert ring.customdata[0][0] == "t7"
    assert "<i>" not in str(ring.customdata[0][1])
    rows["js_divergence"] = math.nan
    assert moved(rows, column="js_divergence", label="JS", chosen=7, theme=LIGHT).layout.annotations


def sliced(a, b, selection):
    runs = run_of({"x:forward_output.0": a}), run_of({"x:forward_output.0": b})
    names = {"reference_id": "x:forward_output.0", "candidate_id": "x:forward_output.0"}
    view = slice_view(*runs, **names, selection=selection, dtype="float32", rms=1.0)
    scene = Scene(
        shape=a.shape, dims=names_of_axes((), a.shape), dtypes=("float32", "float32"),
        ulp_dtype="float32", part=parse(selection, a.shape), unit=1e-7, relative_from=6e-8,
        cursor=None, mode="floor", worst=True,
    )  # fmt: skip
    return view, packed(view, scene, LIGHT)


def test_the_slices_bytes_are_a_header_then_the_images():
    a = A[:24].reshape(4, 6)
    b = a + np.float32(0.5)
    b[1, 2] = np.nan
    view, whole = sliced(a, b, ":, :")
    length = int.from_bytes(whole[:4], "little")
    head = json.loads(whole[4 : 4 + length])
    assert (head["height"], head["width"], head["rows"], head["columns"]) == (4, 6, 4, 6)
    assert head["nonfinite"] == [0, 1, 1]
    assert length % 4 == 0
    images = np.frombuffer(whole[4 + length : -24], "<f4").reshape(5, 4, 6)
    assert np.array_equal(images[0], a)
    assert np.array_equal(images[1], view.images.candidate, equal_nan=True)
    flags = np.frombuffer(whole[-24:], np.uint8)
    assert np.flatnonzero(flags).tolist() == [8]
    assert "1 in the candidate, 1 not shared" in note(view)


@pytest.mark.parametrize("shape", [(), (0,), (0, 4)])
def test_scalars_and_empty_tensors_have_bytes_too(shape):
    a = np.zeros(shape, np.float32)
    view, whole = sliced(a, a, ", ".join(":" for _ in shape))
    head = json.loads(whole[4 : 4 + int.from_bytes(whole[:4], "little")])
    assert head["elements"] == a.size
    assert head["limits"] == ([0.0, 0.0] if a.size else [None, None])
    assert ("no elements" in note(view)) is (a.size == 0)


def test_axes_have_the_dumps_names_or_numbers():
    assert names_of_axes(("batch", ""), (1, 2)) == ("batch", "axis 1")
    assert names_of_axes(("batch",), (1, 2)) == ("axis 0", "axis 1")
