"""Histograms and axis profiles at the resolution of a small chart."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.views_distributions import (
    axis_curve,
    concentration,
    relative_l2,
    ulp_bars,
    value_curves,
)
from core.comparison import Tolerance
from core.stats import AxisProfile
from metrics import pair_stats


def stats(a, b, dtype="float32"):
    a, b = np.asarray(a), np.asarray(b)
    return pair_stats(
        a.ravel(), b.ravel(), Tolerance(0, 0), dtype=dtype, dtypes=(dtype, dtype), shape=a.shape
    )


def profile(error, reference):
    error, reference = np.asarray(error, float), np.asarray(reference, float)
    return AxisProfile(error**2, reference**2, np.abs(error))


@pytest.mark.parametrize("symlog", [False, True])
def test_a_curve_holds_every_value_it_does_not_call_outside(symlog):
    rng = np.random.default_rng(1)
    a = rng.standard_normal(20_000).astype(np.float32)
    curves = value_curves(stats(a, a * np.float32(2)), symlog=symlog)
    for side, outside in zip((curves.reference, curves.candidate), curves.outside, strict=True):
        assert side.sum() + outside == pytest.approx(1, abs=1e-9)
        assert outside < 0.005
    assert len(curves.edges) == len(curves.reference) + 1
    assert (np.diff(curves.edges) > 0).all()


def test_a_linear_curve_follows_the_histogram_of_the_values():
    a = np.random.default_rng(2).standard_normal(200_000).astype(np.float32)
    curves = value_curves(stats(a, a))
    want = np.histogram(a, curves.edges)[0] / a.size
    assert np.abs(curves.reference - want).max() < 0.004


@pytest.mark.parametrize("value", [0.0, 3.0, -1e-30, 1e30])
def test_a_constant_tensor_has_a_curve_with_all_of_it_in_view(value):
    a = np.full(100, value, np.float32)
    for symlog in (False, True):
        curves = value_curves(stats(a, a), symlog=symlog)
        assert curves.reference.sum() == pytest.approx(1, abs=1e-6)


def test_nothing_finite_has_no_curve_and_no_bars():
    nan = np.full(5, np.nan, np.float32)
    assert value_curves(stats(nan, nan)) is None
    assert ulp_bars(stats(nan, nan)) is None
    empty = np.zeros(0, np.float32)
    assert value_curves(stats(empty, empty)) is None


def test_one_side_without_values_leaves_the_other_ones_curve():
    a = np.ones(10, np.float32)
    curves = value_curves(stats(a, np.full(10, np.nan, np.float32)))
    assert curves.reference.sum() == pytest.approx(1)
    assert curves.candidate.sum() == 0


def test_zero_stands_in_the_middle_of_a_log_axis_and_signs_on_either_side():
    curves = value_curves(
        stats(np.array([-8.0, 0.0, 8.0, 8.0]), np.zeros(4), "float64"), symlog=True
    )
    middle = len(curves.reference) // 2
    assert curves.reference[[0, middle, -1]].tolist() == [0.25, 0.25, 0.5]
    assert curves.candidate[middle] == 1
    assert (0.0, 0.0) in curves.ticks


def test_ulp_bars_keep_empty_bins_in_between():
    a = np.ones(4, np.float32)
    b = a.copy()
    b[1] += np.float32(2**-23)
    b[2] += np.float32(2**-23 * 7)
    bars = ulp_bars(stats(a, b))
    assert bars.counts.tolist() == [2, 1, 0, 0, 1]
    assert bars.upper.tolist() == [0, 1, 2, 4, 8]
    assert bars.total == 4


def test_relative_error_of_an_index_is_defined_at_zero():
    assert relative_l2(profile([0, 1, 3], [0, 0, 4])).tolist() == [0, math.inf, 0.75]


def test_a_long_axis_is_reduced_by_its_largest_values():
    error = np.full(10_000, 0.01)
    error[7777] = 5.0
    curve = axis_curve(profile(error, np.ones(10_000)), points=100)
    assert len(curve.index) == 100
    assert 7777 in curve.index
    assert curve.relative_l2.max() == 5.0
    assert curve.start[0] == 0
    assert curve.stop[-1] == curve.length == 10_000
    assert axis_curve(profile([], [])) is None


def test_an_outlier_is_named_with_the_share_of_the_error_it_carries():
    error = np.full(64, 0.01)
    error[12] = 1.0
    found = concentration(profile(error, np.ones(64)))
    assert found.outliers == (12,)
    assert found.share > 0.99
    assert found.ratio == pytest.approx(100)


def test_even_error_and_a_broad_pattern_have_no_outliers():
    assert concentration(profile(np.full(64, 0.1), np.ones(64))).even
    half = np.where(np.arange(64) < 32, 1.0, 0.01)
    assert concentration(profile(half, np.ones(64))).even
    assert concentration(profile(np.zeros(64), np.ones(64))).even
