"""The array-level tests that detectors are made of."""

import numpy as np
import pytest
from finding_sites import normal, rng
from hypothesis import given
from hypothesis import strategies as st

from analysis.findings.discrepancy import Discrepancy
from analysis.findings.inside.masks import mask_parts, variations
from analysis.findings.profiles import aligned, bounding_block, first_power_of_two
from analysis.findings.ratios import meanings
from analysis.findings.rounding import (
    accumulator_bits,
    narrowest_format,
    operand_bits,
    output_bits,
    round_to,
    significand_bits,
)
from analysis.findings.search import best_value
from analysis.findings.transforms import (
    factor,
    multipliers,
    nearest_slices,
    same_multiset,
    slope_on,
)
from core.runs import Array


def off(expected: Array, observed: Array, floor: float = 1e-3) -> Discrepancy:
    variance = np.full(expected.shape, floor**2)
    return Discrepancy(expected, observed, variance, np.ones(expected.shape, bool))


def noisy(values: Array, seed: int = 9) -> Array:
    return values + 1e-3 * rng(seed).standard_normal(values.shape)


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [("bfloat16", 8), ("float16", 11), ("tf32", 11), ("float8_e4m3fn", 4), ("float32", 24)],
)
def test_significand_bits_are_those_of_the_format(dtype: str, bits: int) -> None:
    assert significand_bits(round_to(rng().standard_normal(4096), dtype)) == bits


def test_the_narrowest_format_holds_the_values_and_chance_decides_nothing() -> None:
    x = rng().standard_normal(400)
    assert narrowest_format(round_to(x, "bfloat16")) == "bfloat16"
    assert narrowest_format(round_to(x, "float16")) == "float16"
    assert narrowest_format(round_to(x, "float32")) is None
    assert narrowest_format(round_to(x, "bfloat16")[:20]) is None


@pytest.mark.parametrize("length", [256, 1024])
def test_bits_of_output_operands_and_accumulator_are_read_from_the_error(length: int) -> None:
    x, w = rng(1).standard_normal((64, length)), rng(2).standard_normal((64, length))
    exact, energy = x @ w.T, (x**2) @ (w**2).T
    rounded = round_to(exact, "bfloat16") - exact
    assert output_bits(rounded, exact) == pytest.approx(8, abs=0.2)
    operands = round_to(x, "tf32") @ round_to(w, "tf32").T - exact
    assert operand_bits(operands, energy) == pytest.approx(11, abs=0.2)
    total = np.zeros_like(exact)
    for k in range(length):
        total = round_to(total + x[:, k, None] * w[:, k], "bfloat16")
    assert accumulator_bits(total - exact, energy, length) == pytest.approx(8, abs=0.4)


def test_a_hypothesis_counts_only_when_the_residual_falls_to_the_floor() -> None:
    expected = normal(40, 40)
    error = off(expected, noisy(1.5 * expected))
    assert error.fit(1.5 * expected).accepted
    assert not error.fit(1.45 * expected).accepted  # shrunk by ten, but a tenth is left
    assert not error.fit(expected).accepted


def test_an_error_below_the_floor_is_matched_as_a_signal() -> None:
    expected, signal = normal(200, 100), 5e-4 * normal(200, 100, seed=4)
    error = off(expected, noisy(expected + signal))
    assert error.ratio < 1.3
    assert error.fit(expected + signal).accepted
    assert not error.fit(expected + 5e-4 * normal(200, 100, seed=5)).accepted


def test_a_prediction_that_misplaces_non_finite_values_explains_nothing() -> None:
    expected = normal(20, 20)
    observed = expected.copy()
    observed[3, 4] = np.inf
    error = off(expected, observed)
    assert not error.fit(expected + 1).accepted
    assert np.isinf(error.remaining(expected))
    assert error.wrong()[3, 4]


def test_factors_are_found_whole_by_row_and_by_channel() -> None:
    x = normal(30, 50)
    rows, channels = 1 + rng(1).random((30, 1)), 1 + rng(2).random((1, 50))
    assert factor(off(x, noisy(1.7 * x))).item() == pytest.approx(1.7, abs=1e-3)
    np.testing.assert_allclose(factor(off(x, noisy(rows * x)), (1,)), rows, atol=2e-3)
    np.testing.assert_allclose(factor(off(x, noisy(channels * x)), (0,)), channels, atol=2e-3)


def test_an_added_term_is_found_with_its_multiplicity() -> None:
    x, term = normal(30, 50), normal(1, 50, seed=3)
    assert slope_on(off(x, noisy(x - term)), np.broadcast_to(term, x.shape)) == pytest.approx(
        -1, abs=1e-2
    )


@given(st.lists(st.sampled_from([0, 1, 2]), min_size=4, max_size=4).filter(any))
def test_multiplicities_of_partial_sums_come_out_as_integers(times: list[int]) -> None:
    parts = [normal(20, 20, seed=s) for s in range(4)]
    total = sum(m * p for m, p in zip(times, parts, strict=True))
    found = multipliers(off(sum(parts), noisy(np.asarray(total))), parts)
    np.testing.assert_allclose(found, times, atol=0.01)


def test_the_same_values_in_another_order_are_told_from_other_values() -> None:
    x = normal(20, 30)
    shuffled = rng(1).permutation(x.ravel()).reshape(x.shape)
    assert same_multiset(off(x, noisy(shuffled)))
    assert not same_multiset(off(x, noisy(1.2 * x)))


def test_blocks_that_hold_other_blocks_are_mapped() -> None:
    x = normal(10, 64)
    moved = x.copy()
    moved[:, 16:32] = x[:, 48:64]
    assert [(i, j) for i, j, _ in nearest_slices(off(x, noisy(moved)), -1, 16)] == [(1, 3)]
    assert nearest_slices(off(x, noisy(x)), -1, 16) == []


def test_a_block_of_wrong_elements_has_bounds_and_an_alignment() -> None:
    wrong = np.zeros((2, 32, 96), bool)
    wrong[1, 8:16, 32:64] = True
    block = bounding_block(wrong)
    assert block is not None
    assert block.shape == (1, 8, 32)
    assert block.filled == 1
    assert aligned(block, 2, 96) == 32
    assert bounding_block(np.zeros((3, 3), bool)) is None


def test_an_index_overflow_begins_at_a_power_of_two_and_goes_on_to_the_end() -> None:
    wrong = np.zeros(6000, bool)
    wrong[4096:] = True
    everywhere = np.ones(6000, bool)
    assert first_power_of_two(wrong, everywhere) == 4096
    wrong[5000:] = False
    assert first_power_of_two(wrong, everywhere) is None
    assert first_power_of_two(np.roll(wrong, -700), everywhere) is None


@pytest.mark.parametrize(
    ("slope", "name"),
    [(2.0, "2"), (0.5, "1/2"), (8.0, "√64"), (448 / 240, "448/240"), (1.13863, "0.1 ln 4 + 1")],
)
def test_ratios_have_meanings(slope: float, name: str) -> None:
    assert name in meanings(slope)
    assert meanings(-slope)[0].startswith("−")
    assert meanings(1.0317) == ()


def test_a_number_is_found_between_the_points_of_a_grid() -> None:
    x = normal(40, 40)
    found = best_value(lambda k: k * x, off(x, noisy(3.3 * x)), [0.1, 1.0, 10.0])
    assert found == pytest.approx(3.3, rel=1e-3)


def causal(rows: int, keys: int, window: int = 0) -> Array:
    behind = (np.arange(rows) + keys - rows)[:, None] - np.arange(keys)
    allowed = (behind >= 0) & ((behind < window) if window else True)
    return np.broadcast_to(allowed[None, None], (2, 1, rows, keys)).copy()


def test_a_mask_is_taken_apart_into_diagonal_window_and_padding() -> None:
    mask = causal(24, 24, window=8)
    mask[1, ..., :5] = False
    parts = mask_parts(mask)
    assert parts is not None
    assert parts.causal
    assert parts.window == 8
    assert not parts.padding[1, :5].any()
    assert parts.padding[0].all()
    assert np.array_equal(parts.mask(), mask)


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (causal(24, 24), {"causal_off_by_one"}),
        (causal(24, 24, 8), {"causal_off_by_one", "window_off_by_one"}),
        (causal(1, 24), {"causal_off_by_one", "causal_alignment"}),
    ],
)
def test_only_parts_that_a_mask_has_are_varied(mask: Array, expected: set[str]) -> None:
    parts = mask_parts(mask)
    assert parts is not None
    assert {slug for slug, _, _ in variations(parts)} == expected


def test_a_mask_of_another_make_has_no_parts() -> None:
    assert mask_parts(rng(1).random((2, 1, 24, 24)) > 0.5) is None
