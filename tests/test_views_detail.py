"""Curves beyond the plain histogram, against the elements they are of."""

from __future__ import annotations

import numpy as np
import pytest
from memory_runs import run_of

from analysis.views_detail import BIN_WIDTH, cumulative, density, error_octaves, octaves, quantiles
from analysis.views_ridges import (
    SHARES,
    bands,
    health,
    lasting,
    moved_from,
    outlier_channels,
    pattern,
    ridges,
)
from analysis.views_unpaired import unpaired
from core.comparison import Tolerance
from core.stats import PairStats
from metrics import METRICS, accumulator


def stats_of(a: np.ndarray, b: np.ndarray, dtype: str = "float32") -> PairStats:
    gathered = accumulator(Tolerance(0, 0), dtype=dtype, dtypes=(dtype, dtype), shape=a.shape)
    gathered.add(a.ravel(), b.ravel())
    return gathered.stats()


def pair(shape: tuple[int, ...] = (200, 64)) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    a = rng.standard_normal(shape).astype(np.float32)
    b = (a + 0.01 * rng.standard_normal(shape)).astype(np.float32)
    b[::2] = a[::2]
    a[0, 0] = b[0, 0] = 0
    return a, b


def test_exponents_count_every_value_once_and_zeros_apart():
    a, b = pair()
    found = octaves(stats_of(a, b))
    want = np.floor(np.log2(np.abs(a[a != 0])))
    for exponent, share in zip(found.exponent, found.reference, strict=True):
        assert share * a.size == pytest.approx((want == exponent).sum())
    assert found.zero[0] == pytest.approx(1 / a.size)


def test_the_cumulative_curve_is_right_at_every_edge():
    a, b = pair()
    value, share = cumulative(stats_of(a, b)).reference
    for v, s in zip(value[::10], share[::10], strict=True):
        assert s == pytest.approx((a <= v).mean(), abs=2 / a.size)
    assert share[-1] == 1


def test_quantiles_are_known_to_a_bin():
    a, b = pair()
    found = quantiles(stats_of(a, b))
    true = np.quantile(a.astype(float), found.share)
    clear = np.abs(true) > 0.1
    assert np.allclose(found.reference[clear], true[clear], rtol=1.5 * BIN_WIDTH)


def test_errors_are_counted_by_power_of_two_with_those_without_any():
    a, b = pair()
    found = error_octaves(stats_of(a, b))
    e = np.abs(b.astype(np.float64) - a)
    assert found.zero == (e == 0).sum()
    assert found.zero + found.counts.sum() == found.total == a.size
    for exponent, n in zip(found.exponent, found.counts, strict=True):
        assert n == (np.floor(np.log2(e[e > 0])) == exponent).sum()


def test_error_against_magnitude_holds_every_element_that_has_both():
    a, b = pair()
    b[0, 0] = 1.0  # an error where the reference is zero
    found = density(stats_of(a, b))
    assert found.counts.sum() + found.no_error + found.no_size == a.size
    assert found.no_size == 1


def test_nothing_finite_and_no_error_leave_nothing_to_draw():
    none = stats_of(np.full((4, 4), np.nan, np.float32), np.full((4, 4), np.nan, np.float32))
    assert octaves(none) is cumulative(none) is quantiles(none) is None
    assert error_octaves(none) is density(none) is None
    same = np.ones((4, 4), np.float32)
    assert density(stats_of(same, same)) is None
    assert error_octaves(stats_of(same, same)).zero == 16


@pytest.mark.parametrize("symlog", [False, True])
def test_ridges_share_one_axis_and_hold_nearly_all_values(symlog):
    a, b = pair()
    found = ridges([stats_of(a, b), stats_of(3 * a, 3 * b)], symlog=symlog)
    assert found.reference.shape == found.candidate.shape == (2, found.edges.size - 1)
    assert (found.reference.sum(axis=1) > 0.99).all()
    wide = [np.flatnonzero(row > 0.001).size for row in found.reference]
    assert wide[1] > wide[0] or symlog
    nan = np.full((2, 2), np.nan, np.float32)
    assert ridges([stats_of(nan, nan)], symlog=symlog) is None


def test_bands_are_the_quantiles_of_each_side():
    a, _ = pair()
    reference, candidate = bands([stats_of(a, 2 * a)])
    assert reference.shape == candidate.shape == (1, len(SHARES))
    assert candidate[0, -1] == pytest.approx(2 * reference[0, -1], rel=2 * BIN_WIDTH)


def test_channels_that_stand_out_are_named_and_followed_through_layers():
    a, b = pair()
    a[:, 37] *= 40
    found = [outlier_channels(stats_of(a, b)), outlier_channels(stats_of(a, b)), {}]
    assert list(found[0]) == [37]
    assert found[0][37] > 20
    assert lasting(found) == [(37, 2)]
    assert lasting(found, least=3) == []


def test_health_counts_saturated_subnormal_and_odd_values():
    a = np.array([65504, 1.0, 1e-6, np.nan, np.inf], np.float16)
    found = health(stats_of(a, a, "float16").reference)
    assert found.saturated == found.subnormal == pytest.approx(1 / 3)
    assert found.nonfinite == 2
    assert found.peak == pytest.approx(np.sqrt(3), rel=1e-3)


def test_operators_of_one_pattern_differ_in_their_numbers_alone():
    assert pattern("model.layers.11.mlp") == pattern("model.layers.2.mlp") == "model.layers.*.mlp"
    assert pattern("conv1.weight") == "conv1.weight"


def test_steps_are_compared_side_by_side_within_each_run():
    a, b = pair()
    ours, theirs = moved_from(stats_of(a, b), stats_of(2 * a, b))
    assert METRICS["ks"](ours) > 0.1
    assert METRICS["ks"](theirs) == 0


def test_pairs_of_different_shapes_have_a_distribution_each(monkeypatch):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((40, 16)).astype(np.float32), rng.standard_normal(900)
    a[:, 5] *= 100
    runs = run_of({"m:forward_output.0": a})
    other = run_of({"m:forward_output.0": b.astype(np.float32)})
    name = "m:forward_output.0"
    (found,) = unpaired(runs, other, pairs=((3, name, name),))
    assert found.number == 3
    assert found.seen == found.total == (640, 900)
    assert found.stats.reference.finite == 640
    assert found.stats.candidate.maximum == pytest.approx(b.max(), rel=1e-6)
    assert list(outlier_channels(found.stats)) == [5]
    monkeypatch.setattr("analysis.views_unpaired.SAMPLE", 256)
    monkeypatch.setattr("analysis.views_unpaired._CHUNK", 64)
    (part,) = unpaired(runs, other, pairs=((3, name, name),))
    assert part.seen == (256, 256)
    assert outlier_channels(part.stats) == {}
