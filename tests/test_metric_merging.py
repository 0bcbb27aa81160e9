"""Parts of a pair merge to the whole: exactly where integers, to rounding where floats."""

import functools
import math
import operator
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import TensorPair, of, tensor_pairs

from core.comparison import Tolerance
from core.moments import Moments, PairMoments
from core.stats import FloatArray, Histogram, PairStats, SideStats
from core.wide import Wide
from metrics import pair_stats

MERGED_EXACTLY = [
    f.name for f in fields(PairStats) if f.name not in ("moments", "axes", "reference", "candidate")
]
SIDE_EXACTLY = [f.name for f in fields(SideStats) if f.name != "moments"]


SLACK = 1e-9


def near(a: Wide, b: Wide, scale: Wide, slack: float) -> bool:
    """Equal to a small part of the size of what was summed."""
    return a == b or abs(float((a - b) / scale)) <= slack


def assert_same_moments(a: Moments, b: Moments, slack: float = SLACK) -> None:
    size = a.energy if a.energy else Wide.of(1.0)
    assert a.count == b.count
    assert near(a.energy, b.energy, size, slack)
    assert near(a.m2, b.m2, size, slack)
    assert near(a.mean * a.mean * a.count, b.mean * b.mean * b.count, size, slack)


def alike(a: FloatArray, b: FloatArray, slack: float) -> bool:
    """Equal norms; squares a hundred decades below the largest may lose digits or vanish."""
    return bool(np.allclose(a, b, rtol=slack, atol=1e-100 * b.max(initial=0)))


def assert_equal(a: object, b: object, name: str) -> None:
    """Equal as printed; of histograms the failure shows the bins that differ."""
    if isinstance(a, Histogram) and isinstance(b, Histogram):
        ours, theirs = (dict(zip(h.bins.tolist(), h.counts.tolist(), strict=True)) for h in (a, b))
        keys = sorted(ours.keys() | theirs.keys())
        apart = {k: (ours.get(k), theirs.get(k)) for k in keys if ours.get(k) != theirs.get(k)}
        assert apart == {}, name
    else:
        assert repr(a) == repr(b), name


def assert_same(a: PairStats, b: PairStats, slack: float = SLACK) -> None:
    for name in MERGED_EXACTLY:
        assert_equal(getattr(a, name), getattr(b, name), name)
    for side in ("reference", "candidate"):
        x, y = getattr(a, side), getattr(b, side)
        for name in SIDE_EXACTLY:
            assert_equal(getattr(x, name), getattr(y, name), f"{side}.{name}")
        assert_same_moments(x.moments, y.moments, slack)
    assert_same_pair_moments(a.moments, b.moments, slack)
    for axis, other in zip(a.axes, b.axes, strict=True):
        assert alike(axis.error_norm, other.error_norm, slack)
        assert alike(axis.reference_norm, other.reference_norm, slack)
        assert np.array_equal(axis.max_abs_error, other.max_abs_error)


def assert_same_pair_moments(a: PairMoments, b: PairMoments, slack: float) -> None:
    for side in ("reference", "candidate", "error"):
        assert_same_moments(getattr(a, side), getattr(b, side), slack)
    one = Wide.of(1.0)
    for other in ("candidate", "error"):
        size = a.reference.energy.sqrt() * getattr(a, other).energy.sqrt()
        for kind in ("co", "dot"):
            name = f"{kind}_{other}"
            assert near(getattr(a, name), getattr(b, name), size if size else one, slack), name
    assert near(a.abs_reference, b.abs_reference, a.abs_reference, slack)
    assert near(a.abs_error, b.abs_error, a.abs_error, slack)


@given(pair=tensor_pairs(), data=st.data())
def test_any_split_merges_to_the_whole(pair: TensorPair, data: st.DataObject) -> None:
    size = pair.reference.size
    cuts = sorted(data.draw(st.lists(st.integers(0, size), max_size=4)))
    parts = [pair.stats(a, b) for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    assert_same(pair.stats(), functools.reduce(operator.add, parts))
    assert_same(pair.stats(), PairStats.merged(parts))


@given(pair=tensor_pairs())
def test_statistics_of_nothing_change_nothing(pair: TensorPair) -> None:
    stats = pair.stats()
    assert_same(stats, PairStats(stats.dtype) + stats)
    assert_same(stats, stats + PairStats(stats.dtype))


def test_statistics_in_different_formats_do_not_merge() -> None:
    with pytest.raises(ValueError, match="float32"):
        PairStats("float32") + PairStats("bfloat16")


def test_blocks_within_a_chunk_and_chunks_give_the_same() -> None:
    rng = np.random.default_rng(8)
    a = rng.standard_normal(200_001).astype(np.float32)
    b = (a + 1e-3 * rng.standard_normal(a.size)).astype(np.float32)
    b[[5, 70_000, 140_000]] = np.nan, np.inf, 9
    pair = TensorPair(a, b, (3, 66_667))
    assert_same(
        pair.stats(),
        PairStats.merged([pair.stats(i, i + 30_011) for i in range(0, a.size, 30_011)]),
    )
    assert pair.stats().max_abs_error.index == 140_000


def test_the_same_chunking_is_bit_identical() -> None:
    rng = np.random.default_rng(8)
    a, b = rng.standard_normal((2, 100_000))
    assert repr(of(a, b).stats()) == repr(of(a.copy(), b.copy()).stats())


def test_of_equally_large_errors_the_first_is_named_whatever_the_order_of_merging() -> None:
    pair = of([0.0] * 6, [0.0, 2, 1, 2, -2, 0])
    parts = [pair.stats(4, 6), pair.stats(0, 2), pair.stats(2, 4)]
    assert PairStats.merged(parts).max_abs_error.index == 1


def test_a_minimum_of_zeros_has_no_sign_that_depends_on_the_cut() -> None:
    pair = of([0.0, 0, 0, -0.0], [0.0, 0, 0, -0.0])
    assert repr((pair.stats(0, 1) + pair.stats(1)).reference.minimum) == "0.0"
    assert repr(pair.stats().reference.minimum) == "0.0"


def test_a_constant_has_no_spread_however_it_is_cut() -> None:
    pair = of([0.1] * 1000, [0.3] * 1000)
    stats = pair.stats(0, 333) + pair.stats(333)
    assert (stats.reference.std, stats.candidate.mean) == (0, 0.3)


def test_chunks_that_cannot_be_of_one_tensor_are_refused() -> None:
    a = np.zeros(4, np.float32)
    names = {"dtype": "float32", "dtypes": ("float32", "float32"), "tolerance": Tolerance(0, 0)}
    with pytest.raises(ValueError, match="one length"):
        pair_stats(a, a[:3], shape=(4,), **names)
    with pytest.raises(ValueError, match="do not fit"):
        pair_stats(a, a, shape=(4,), start=1, **names)


WIDE = st.floats(allow_nan=False, allow_infinity=False)


@given(WIDE, WIDE)
def test_a_wide_float_calculates_as_float64_does(x: float, y: float) -> None:
    a, b = Wide.of(x), Wide.of(y)
    assert float(a) == x
    assert (a < b) == (x < y)
    if math.isfinite(x + y):
        assert float(a + b) == x + y
    if math.isfinite(x * y) and abs(x * y) > 1e-300:
        assert float(a * b) == x * y
    if y and 1e-300 < abs(x) / abs(y) < 1e300:
        assert float(a / b) == x / y
    assert float(Wide.of(abs(x)).sqrt()) == math.sqrt(abs(x))


def test_a_wide_float_goes_on_where_float64_ends() -> None:
    huge, tiny = Wide.of(1e300), Wide.of(1e-300)
    assert float(huge * huge * tiny * tiny) == pytest.approx(1)
    assert float((huge * huge).sqrt()) == pytest.approx(1e300)
    assert float(tiny * tiny) == 0
    assert float(-(huge * huge)) == -math.inf
