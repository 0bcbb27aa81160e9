"""Ulp errors against counting bit patterns."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import TensorPair, of, tensor_pairs

from core.stats import FloatArray, IntArray
from metrics import METRICS
from metrics.formats import FORMATS, Format, format_of
from metrics.histograms import ulp_bins, ulp_upper_edges
from metrics.ulps import ordinals, ulp_distance

SMALL = (
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float16",
    "bfloat16",
)
NATIVE = {"float16": np.int16, "float32": np.int32, "float64": np.int64}


def every_value(dtype: str) -> FloatArray:
    """All finite values of a narrow format, ascending, both zeros merged into one."""
    numpy_type = np.dtype(getattr(ml_dtypes, dtype, dtype))
    bits = np.arange(1 << (8 * numpy_type.itemsize))
    patterns = bits.astype(np.uint8 if numpy_type.itemsize == 1 else np.uint16)
    with np.errstate(invalid="ignore"):
        values = patterns.view(numpy_type).astype(np.float64)
    return np.unique(values[np.isfinite(values)])


def counted_bits(values: FloatArray, dtype: str) -> IntArray:
    """Places by sign and magnitude of the bit pattern of an IEEE format."""
    bits = values.astype(dtype).view(NATIVE[dtype]).astype(object)
    mask = int(np.iinfo(NATIVE[dtype]).max)
    return np.array([-(b & mask) if b < 0 else b for b in bits], object)


@pytest.mark.parametrize("dtype", SMALL)
def test_every_two_neighbours_of_a_narrow_format_are_one_ulp_apart(dtype: str) -> None:
    values = every_value(dtype)
    places = ordinals(values, format_of(dtype))
    assert np.array_equal(np.diff(places), np.ones(values.size - 1))
    assert places[values == 0] == 0
    assert np.array_equal(
        ulp_distance(values[:-1], values[1:], format_of(dtype)), np.ones(values.size - 1)
    )


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_any_two_values_of_an_8_bit_format_are_as_far_apart_as_values_lie_between(
    dtype: str,
) -> None:
    values = every_value(dtype)
    a, b = (side.ravel() for side in np.meshgrid(values, values))
    wanted = np.abs(np.subtract.outer(np.arange(values.size), np.arange(values.size))).ravel()
    assert np.array_equal(ulp_distance(a, b, format_of(dtype)), wanted)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_halves_between_neighbours_round_to_even_as_a_cast_does(dtype: str) -> None:
    values = every_value(dtype)
    halves = (values[:-1] + values[1:]) / 2
    numpy_type = np.dtype(getattr(ml_dtypes, dtype, dtype))
    cast = halves.astype(np.float32).astype(numpy_type).astype(np.float64)  # all fit float32
    assert np.array_equal(ordinals(halves, format_of(dtype)), ordinals(cast, format_of(dtype)))


def test_rounding_to_bfloat16_happens_once() -> None:
    value = 1 + 2.0**-8 + 2.0**-30  # just above a half: by way of float32 it would be a tie
    above = np.array([1 + 2.0**-7])
    assert ulp_distance(np.array([value]), above, format_of("bfloat16"))[0] == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(data=st.data())
def test_ulp_distance_is_the_distance_of_bit_patterns(dtype: str, data: st.DataObject) -> None:
    width = 32 if dtype == "float32" else 64
    finite = st.floats(allow_nan=False, allow_infinity=False, width=width)
    values = [np.array(data.draw(st.lists(finite, min_size=4, max_size=4))) for _ in range(2)]
    a, b = (counted_bits(side, dtype) for side in values)
    distance = ulp_distance(values[0], values[1], format_of(dtype))
    assert distance.tolist() == [abs(int(y) - int(x)) for x, y in zip(a, b, strict=True)]


def test_tf32_drops_thirteen_bits_of_float32() -> None:
    step = 2.0**-10
    a = np.array([1.0, 1.0, 1.0 + step])
    b = np.array([1.0 + step, 1.0 + step / 4, 1.0 + 3 * step])
    assert ulp_distance(a, b, format_of("tf32")).tolist() == [1, 0, 2]


def test_beyond_the_largest_value_the_grid_goes_on() -> None:
    saturated = ulp_distance(np.array([448.0]), np.array([1000.0]), format_of("float8_e4m3fn"))
    assert saturated[0] == 10  # 480, 512, then eight steps of 64 to 1024


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_ulp_bins_are_0_1_2_then_powers_of_two(distances: list[int]) -> None:
    bins = ulp_bins(np.array(distances, np.uint64)).tolist()
    assert bins == [0 if d == 0 else 1 + (d - 1).bit_length() for d in distances]
    edges = ulp_upper_edges(np.array(bins, np.int64))
    assert all(d <= edge for d, edge in zip(distances, map(int, edges), strict=True))
    assert all(d > edge / 2 for d, edge in zip(distances, map(int, edges), strict=True) if d > 1)


def test_ulp_bins_hold_just_below_powers_of_two() -> None:
    top = np.array([2**k + d for k in range(2, 64) for d in (-1, 0, 1)], np.uint64)
    wanted = [1 + (int(d) - 1).bit_length() for d in top]
    assert ulp_bins(top).tolist() == wanted


@given(pair=tensor_pairs(dtypes=("float16", "float32", "int32", "uint8")))
def test_ulp_metrics_follow_from_the_distances(pair: TensorPair) -> None:
    stats = pair.stats()
    a, b = (side.astype(np.float64) for side in (pair.reference, pair.candidate))
    keep = np.isfinite(a) & np.isfinite(b)
    if not keep.any():
        assert math.isnan(METRICS["ulp_max"](stats))
        return
    number_format: Format = FORMATS[stats.dtype]
    distance = np.sort(ulp_distance(a[keep], b[keep], number_format).astype(np.float64))
    assert METRICS["ulp_max"](stats) == distance[-1]
    assert METRICS["ulp_within_1"](stats) == np.mean(distance <= 1)
    exact = distance[math.ceil(0.99 * distance.size) - 1]
    p99 = METRICS["ulp_p99"](stats)
    assert exact <= p99 <= max(2 * exact, exact) if exact > 2 else p99 == exact


def test_the_largest_ulp_error_is_found_where_it_is() -> None:
    a = np.ones(100_000, np.float32)
    b = a.copy()
    b[77_777] = np.nextafter(np.float32(1), np.float32(2))
    stats = of(a, b).stats()
    assert (stats.max_ulp.value, stats.max_ulp.index) == (1, 77_777)
    assert stats.max_ulp.candidate == float(b[77_777])
    assert stats.ulp.bins.tolist() == [0, 1]
    assert stats.ulp.counts.tolist() == [99_999, 1]


def test_one_element_in_a_hundred_does_not_move_the_99_percent_ulp_error() -> None:
    a = np.ones(100, np.float32)
    b = a.copy()
    b[7] = 2
    assert METRICS["ulp_p99"](of(a, b).stats()) == 0
    b[8] = 2
    assert METRICS["ulp_p99"](of(a, b).stats()) == 2.0**23
