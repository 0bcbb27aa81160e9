"""The coding of histograms, and what is read from them."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import SPECIAL, TensorPair, of, tensor_pairs

from core.stats import Histogram
from metrics import METRICS
from metrics.histograms import (
    joint_bins,
    joint_exponents,
    joint_histogram,
    quantile,
    regrouped,
    significand_bits,
    tally,
    value_bins,
    value_centres,
    value_edges,
    value_histogram,
)

FINITE = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(SPECIAL), st.floats(-8, 8)
)
ARRAYS = st.lists(FINITE, max_size=30).map(lambda values: np.array(values, np.float64))


@given(ARRAYS)
def test_value_bins_rise_with_the_value_and_are_odd(values: np.ndarray) -> None:
    values = np.sort(values)
    bins = value_bins(values)
    assert (np.diff(bins) >= 0).all()
    assert np.array_equal(value_bins(-values), -bins)
    assert np.array_equal(bins == 0, values == 0)


@given(ARRAYS)
def test_a_value_lies_in_its_bin_and_the_bin_is_a_sixteenth_wide(values: np.ndarray) -> None:
    low, high = value_edges(value_bins(values))
    assert ((low <= values) & (values <= high)).all()
    near = np.minimum(np.abs(low), np.abs(high))
    normal = near >= 2.0**-1018  # below, the bins of float64 subnormals have fewer values than 16
    assert (high - low <= near / 16)[normal].all()
    centres = value_centres(value_bins(values))
    assert (np.abs(centres - values) <= np.abs(values) / 32)[normal].all()


def test_there_are_sixteen_bins_from_each_power_of_two_to_the_next() -> None:
    powers = np.ldexp(1.0, np.arange(-1074, 1024))
    assert np.array_equal(np.diff(value_bins(powers)), np.full(powers.size - 1, 16))


@given(ARRAYS)
def test_counting_bits_gives_the_histogram_of_the_bins(values: np.ndarray) -> None:
    assert value_histogram(values) == tally(value_bins(values))


@given(ARRAYS, ARRAYS)
def test_joint_bins_hold_both_exponents(a: np.ndarray, e: np.ndarray) -> None:
    a, e = a[: min(a.size, e.size)], e[: min(a.size, e.size)]
    exponents = joint_exponents(joint_bins(a, e))
    for values, found in zip((a, e), exponents, strict=True):
        wanted = [math.frexp(v)[1] - 1 if v else -math.inf for v in values]
        assert found.tolist() == wanted
    assert joint_histogram(a, e) == tally(joint_bins(a, e))


@given(ARRAYS)
def test_significand_bits_are_those_of_the_odd_part(values: np.ndarray) -> None:
    def needed(value: float) -> int:
        numerator = abs(value.as_integer_ratio()[0])
        return (numerator // (numerator & -numerator)).bit_length() if numerator else 0

    assert significand_bits(values).tolist() == [needed(float(v)) for v in values]


def test_bfloat16_values_in_float32_need_at_most_eight_bits() -> None:
    values = np.random.default_rng(1).standard_normal(5000).astype(np.float32)
    coarse = (values.view(np.uint32) & 0xFFFF0000).view(np.float32)
    stats = of(values, coarse).stats()
    assert stats.candidate.significand.bins.max() == 8
    assert stats.reference.significand.bins.max() == 24


@given(st.lists(st.integers(-50, 50)), st.lists(st.integers(-(2**40), 2**40)))
def test_histograms_add_as_their_elements_do(a: list[int], b: list[int]) -> None:
    first, second = (np.array(keys, np.int64) for keys in (a, b))
    together = tally(np.concatenate([first, second]))
    assert tally(first) + tally(second) == together
    assert Histogram.merged([tally(first), Histogram.empty(), tally(second)]) == together
    assert together.total == len(a) + len(b)
    assert (np.diff(together.bins) > 0).all()


@given(ARRAYS)
def test_regrouping_keeps_every_count_and_its_sign(values: np.ndarray) -> None:
    coarse = regrouped(value_histogram(values), per_octave=1)
    nonzero = values[values != 0]
    octaves = np.sign(nonzero) * (np.frexp(np.abs(nonzero))[1] + 1074)
    keys = np.concatenate([octaves, np.zeros(values.size - nonzero.size)]).astype(np.int64)
    assert coarse == tally(keys)


@given(ARRAYS, st.floats(0, 1))
def test_a_quantile_is_right_to_a_sixteenth(values: np.ndarray, share: float) -> None:
    assume(values.size)
    found = quantile(of(values, values, np.float64).stats().reference, share)
    exact = np.quantile(values, share, method="inverted_cdf")
    slack = abs(exact) / 16 + (5e-324 if abs(exact) < 1e-300 else 0)
    assert values.min() <= found <= values.max()
    assert abs(found - exact) <= slack or abs(share * values.size % 1) < 1e-9


def test_the_quantile_of_a_constant_is_the_constant_and_of_nothing_undefined() -> None:
    assert quantile(of([0.3] * 5, [0.3] * 5).stats().reference, 0.5) == 0.3
    assert math.isnan(quantile(of([math.nan], [1.0]).stats().reference, 0.5))


def definitions(a: np.ndarray, b: np.ndarray) -> dict[str, float]:
    """Drift metrics from sorted values and plain loops, each value standing for its bin."""
    fine = [value_bins(side) for side in (a, b)]
    places = sorted(set(fine[0].tolist()) | set(fine[1].tolist()))
    coarse = [np.sign(f) * ((np.abs(f) + 7) // 8) for f in fine]
    held = sorted(set(coarse[0].tolist()) | set(coarse[1].tolist()))
    js = psi = ks = distance = 0.0
    for k in held:
        p, q = (float(np.mean(c == k)) for c in coarse)
        for x in (p, q):
            js += x * math.log2(2 * x / (p + q)) / 2 if x else 0.0
        p, q = ((np.sum(c == k) + 0.5) / (c.size + len(held) / 2) for c in coarse)
        psi += (p - q) * math.log(p / q)
    for k, after in zip(places, [*places[1:], None], strict=True):
        gap = abs(float(np.mean(fine[0] <= k)) - float(np.mean(fine[1] <= k)))
        ks = max(ks, gap)
        if after is not None and gap > 1e-12:
            ends = value_centres(np.array([k, after], np.int64))
            distance += gap * float(ends[1] - ends[0])
    return {"js_divergence": js, "psi": psi, "ks": ks, "wasserstein_1": distance}


@given(
    pair=tensor_pairs(dtypes=("float32", "float16", "int32", "bool"), nonfinite=False, min_size=1)
)
def test_drift_metrics_are_their_definitions(pair: TensorPair) -> None:
    stats = pair.stats()
    a, b = (side.astype(np.float64) for side in (pair.reference, pair.candidate))
    for name, wanted in definitions(a, b).items():
        assert METRICS[name](stats) == pytest.approx(wanted, rel=1e-9, abs=1e-12), name


def test_drift_in_numbers_one_knows() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(50_000), rng.standard_normal(50_000) + 0.5
    stats = of(a, b).stats()
    assert METRICS["wasserstein_1"](stats) == pytest.approx(0.5, abs=0.02)
    assert METRICS["wasserstein_1_relative"](stats) == pytest.approx(0.5, abs=0.02)
    assert METRICS["quantile_shift_median"](stats) == pytest.approx(0.5, abs=0.03)
    assert METRICS["quantile_shift_p01"](stats) == pytest.approx(0.5, abs=0.1)
    assert METRICS["quantile_shift_p99"](stats) == pytest.approx(0.5, abs=0.1)
    assert METRICS["ks"](stats) == pytest.approx(math.erf(0.25 / math.sqrt(2)), abs=0.02)


def test_two_samples_of_one_distribution_stay_at_the_noise_their_help_names() -> None:
    rng = np.random.default_rng(0)
    n = 20_000
    stats = of(rng.standard_normal(n), rng.standard_normal(n)).stats()
    bins = regrouped(stats.reference.values, per_octave=2).bins.size
    assert METRICS["ks"](stats) < 1.36 * math.sqrt(2 / n)
    assert METRICS["js_divergence"](stats) < 2 * (bins - 1) / 8 / math.log(2) * 2 / n
    assert METRICS["psi"](stats) < 2 * (bins - 1) * 2 / n


def test_shuffled_values_have_no_drift_but_all_the_error() -> None:
    values = np.random.default_rng(2).standard_normal(1000)
    stats = of(values, values[::-1]).stats()
    drift = [m for m in METRICS.values() if m.family == "drift"]
    assert [m(stats) for m in drift] == [0] * len(drift)
    assert METRICS["relative_l2"](stats) > 1
