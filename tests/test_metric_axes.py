"""Profiles along every axis, for stretches that start and end anywhere."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.axes import LONGEST_AXIS
from strategies import TensorPair, of, tensor_pairs

from core.stats import PairStats


def wanted(pair: TensorPair, first: int, last: int) -> list[tuple[np.ndarray, ...]]:
    """Profiles of a stretch by index arithmetic over the whole tensor."""
    a, b = (side.astype(np.float64) for side in (pair.reference, pair.candidate))
    counts = np.isfinite(a) & np.isfinite(b)
    counts[:first] = counts[last:] = False
    a, e = np.where(counts, a, 0), np.where(counts, b - a, 0)
    a, e = a.reshape(pair.shape), e.reshape(pair.shape)
    profiles = []
    for axis in range(len(pair.shape)):
        others = tuple(i for i in range(len(pair.shape)) if i != axis)
        peaks = np.abs(e).max(axis=others, initial=0)
        profiles.append(((e**2).sum(axis=others), (a**2).sum(axis=others), peaks))
    return profiles


def assert_profiles(stats: PairStats, profiles: list[tuple[np.ndarray, ...]]) -> None:
    assert len(stats.axes) == len(profiles)
    for axis, (sq_error, sq_reference, peaks) in zip(stats.axes, profiles, strict=True):
        assert np.allclose(axis.sq_error, sq_error, rtol=1e-12, atol=0)
        assert np.allclose(axis.sq_reference, sq_reference, rtol=1e-12, atol=0)
        assert np.array_equal(axis.max_abs_error, peaks)


@given(pair=tensor_pairs(dtypes=("float32", "float16")), data=st.data())
def test_a_stretch_has_the_profiles_of_its_own_elements(
    pair: TensorPair, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, pair.reference.size))
    last = data.draw(st.integers(first, pair.reference.size))
    with np.errstate(invalid="ignore"):
        profiles = wanted(pair, first, last)
    assert_profiles(pair.stats(first, last), profiles)


@pytest.mark.parametrize(
    "shape",
    [(7, 5, 40), (40, 5, 7), (1, 3, 1, 50), (2, 70_000), (70_000, 2), (3, 1, 20_000), (90_000,)],
)
def test_long_short_and_single_axes_over_several_blocks(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((2, math.prod(shape))).astype(np.float32)
    pair = TensorPair(a, b, shape)
    profiles = [
        tuple(np.zeros(0) for _ in profile) if length > LONGEST_AXIS else profile
        for length, profile in zip(shape, wanted(pair, 0, a.size), strict=True)
    ]
    assert_profiles(pair.stats(), profiles)
    cuts = [0, 1, a.size // 3, a.size // 3 + 1, a.size]
    assert_profiles(PairStats.merged([pair.stats(i, j) for i, j in pairwise(cuts)]), profiles)


def test_energies_at_the_ends_of_float64_neither_overflow_nor_vanish() -> None:
    for scale in (1e300, 1e-300):
        stats = of([[scale, 2 * scale]], [[scale, 2.5 * scale]]).stats()
        assert stats.axes[1].error_norm == pytest.approx([0, 0.5 * scale], rel=1e-12)
        assert stats.axes[1].reference_norm == pytest.approx([scale, 2 * scale], rel=1e-12)


def test_parts_of_different_scale_merge_at_the_larger_one() -> None:
    pair = of([[1e-300, 1e300, 0.0]], [[2e-300, 3e300, 0.0]])
    merged = PairStats.merged([pair.stats(i, i + 1) for i in range(3)])
    assert merged.axes[0].error_norm == pytest.approx([2e300])
    small = pair.stats(0, 1) + pair.stats(2, 3)
    assert small.axes[0].error_norm == pytest.approx([1e-300])


def test_a_scalar_has_no_axes() -> None:
    a = np.ones(1, np.float32)
    assert TensorPair(a, a, ()).stats().axes == ()
