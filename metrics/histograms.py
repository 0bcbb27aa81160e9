"""Coding of the histograms in `PairStats`: which bin a value falls into, and what a bin stands for.

Value bins follow the float itself: sign, exponent and the top four bits of the significand, so 16
bins to the octave, each at most 1/16 of its values wide. No pre-pass for a range is needed and any
two histograms share their edges, so quantiles, Kolmogorov-Smirnov, Jensen-Shannon, PSI and
Wasserstein all come from counts that merge exactly.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from core.stats import FloatArray, Histogram, IntArray, SideStats

BINS_PER_OCTAVE = 16

_LOWEST_EXPONENT = -1074  # floor log2 of the smallest float64 subnormal
_BIAS = 1023
_SMALLEST_NORMAL = 2.0**-1022
_FIRST_NORMAL_BIN = (1 - _BIAS - _LOWEST_EXPONENT) * BINS_PER_OCTAVE + 1
_JOINT_WIDTH = 4096  # codes per row of the joint histogram: more than the exponents of float64
_DENSE = 1 << 20


def tally(keys: IntArray) -> Histogram:
    """Counts of each distinct key."""
    if not keys.size:
        return Histogram.empty()
    low = int(keys.min())
    if int(keys.max()) - low >= _DENSE:
        bins, counts = np.unique(keys, return_counts=True)
        return Histogram(bins.astype(np.int64), counts.astype(np.int64))
    return counted(np.bincount(keys - low), low)


def counted(table: NDArray[np.int64], first: int = 0) -> Histogram:
    """The histogram of a dense table whose entry i counts bin first + i."""
    where = np.flatnonzero(table > 0)
    return Histogram(where + first, table[where].astype(np.int64))


def value_bins(values: FloatArray) -> IntArray:
    """Bin of each finite float64: 0 for ±0, rising with the value, odd in its sign."""
    significand, exponent = np.frexp(np.abs(values))
    octave = exponent.astype(np.int64) - 1 - _LOWEST_EXPONENT
    step = np.floor(significand * (2 * BINS_PER_OCTAVE)).astype(np.int64) - BINS_PER_OCTAVE
    bins = octave * BINS_PER_OCTAVE + step + 1
    return np.where(values == 0, 0, np.where(values < 0, -bins, bins))


def value_histogram(values: FloatArray) -> Histogram:
    """Histogram of finite float64 over `value_bins`, by counting the top 16 bits of each."""
    top = (values.view(np.int64) >> 48) & 0xFFFF
    folded = tally(((top << 1) & 0xFFFF) | (top >> 15))  # the sign last: a short range of keys
    magnitude, negative = folded.bins >> 1, folded.bins & 1
    tiny = magnitude < BINS_PER_OCTAVE  # zeros, or float64 subnormals: their bits hold no octave
    zeros = int(folded.counts[tiny].sum())
    if zeros and np.any(values[np.abs(values) < _SMALLEST_NORMAL]):
        return tally(value_bins(values))
    bins = magnitude - BINS_PER_OCTAVE + _FIRST_NORMAL_BIN
    signed = np.where(negative, -bins, bins)[~tiny]
    order = np.argsort(signed)
    counts = folded.counts[~tiny][order]
    if not zeros:
        return Histogram(signed[order], counts)
    at = int(np.searchsorted(signed[order], 0))
    return Histogram(np.insert(signed[order], at, 0), np.insert(counts, at, zeros))


def value_edges(bins: IntArray) -> tuple[FloatArray, FloatArray]:
    """Lower and upper edge of value bins; the one nearer zero is inside. Bin 0 is 0 to 0."""
    size = np.abs(bins)
    near, far = _magnitude(size), _magnitude(size + 1)
    zero, negative = bins == 0, bins < 0
    low = np.where(zero, 0.0, np.where(negative, -far, near))
    high = np.where(zero, 0.0, np.where(negative, -near, far))
    return low, high


def value_centres(bins: IntArray) -> FloatArray:
    """Midpoints of value bins: within 1/32 of every value in the bin."""
    return np.copysign(_centres()[np.abs(bins)], bins)


@functools.cache
def _centres() -> FloatArray:
    edges = _edges()
    centres = edges[:-1] / 2 + edges[1:] / 2
    centres[0] = 0.0
    return centres


def coarse_value_bins(bins: IntArray, *, per_octave: int) -> IntArray:
    """Value bins regrouped to `per_octave` (1, 2, 4, 8 or 16) bins an octave; 0 stays 0."""
    group = BINS_PER_OCTAVE // per_octave
    coarse: IntArray = np.sign(bins) * ((np.abs(bins) - 1) // group + 1)
    return coarse


def regrouped(values: Histogram, *, per_octave: int) -> Histogram:
    """A value histogram over `coarse_value_bins`."""
    bins = coarse_value_bins(values.bins, per_octave=per_octave)
    if not bins.size:
        return values
    first = np.flatnonzero(np.concatenate([[True], bins[1:] != bins[:-1]]))  # ascending stay so
    return Histogram(bins[first], np.add.reduceat(values.counts, first))


def _magnitude(bins: IntArray) -> FloatArray:
    """Lower edge of positive value bins; the edge past the last one is the largest float64."""
    return _edges()[bins]


@functools.cache
def _edges() -> FloatArray:
    """Lower edges of all bins from 0 on, and the last bin's upper edge twice."""
    last = (_BIAS - _LOWEST_EXPONENT + 1) * BINS_PER_OCTAVE
    octave, step = np.divmod(np.arange(last), BINS_PER_OCTAVE)
    edges = np.ldexp(1.0 + step / BINS_PER_OCTAVE, octave + _LOWEST_EXPONENT)
    largest = np.finfo(np.float64).max
    return np.concatenate([edges[:1], edges, [largest, largest]])


def quantile(side: SideStats, share: float) -> float:
    """Value below which `share` of a side's finite elements lie, to 1/16; NaN when there are none.

    Linear within the bin that holds the rank, never outside the side's own minimum and maximum.
    """
    if not side.finite:
        return float("nan")
    upto = np.cumsum(side.values.counts)
    rank = share * int(upto[-1])
    at = min(int(np.searchsorted(upto, rank)), upto.size - 1)
    size = abs(int(side.values.bins[at]))
    low, high = _edges()[size : size + 2].tolist() if size else (0.0, 0.0)
    if side.values.bins[at] < 0:
        low, high = -high, -low
    count = int(side.values.counts[at])
    inside = (rank - (int(upto[at]) - count)) / count
    return min(max(low + (high - low) * inside, side.minimum), side.maximum)


def aligned(a: Histogram, b: Histogram) -> tuple[IntArray, IntArray, IntArray]:
    """Bins that either histogram holds, ascending, and both counts over them."""
    if np.array_equal(a.bins, b.bins):
        return a.bins, a.counts, b.counts
    bins = np.union1d(a.bins, b.bins)
    counts = np.zeros((2, bins.size), np.int64)
    for row, part in zip(counts, (a, b), strict=True):
        row[np.searchsorted(bins, part.bins)] = part.counts
    return bins, counts[0], counts[1]


def exponent_codes(values: FloatArray) -> IntArray:
    """Code of floor log2 |value|: 1 … 2098 from 2^-1074 to 2^1023, 0 for zero."""
    biased = (values.view(np.int64) >> 52) & 0x7FF
    codes = biased + (1 - _BIAS - _LOWEST_EXPONENT)
    if not values.size or biased.min() > 0:
        return codes
    zero = values == 0
    if np.count_nonzero(zero) < np.count_nonzero(biased == 0):  # float64 subnormals
        codes = np.frexp(values)[1].astype(np.int64) - _LOWEST_EXPONENT
    return np.where(zero, 0, codes)


def joint_bins(reference: FloatArray, error: FloatArray) -> IntArray:
    """Bin of each element by floor log2 of |reference| and of |error|, with bins for zero."""
    return exponent_codes(reference) * _JOINT_WIDTH + exponent_codes(error)


def joint_exponents(bins: IntArray) -> tuple[FloatArray, FloatArray]:
    """The two exponents of joint bins, of |reference| and of |error|; -inf stands for zero."""
    parts = np.divmod(bins, _JOINT_WIDTH)
    row, column = (np.where(code == 0, -np.inf, code - 1.0 + _LOWEST_EXPONENT) for code in parts)
    return row, column


def joint_histogram(reference: FloatArray, error: FloatArray) -> Histogram:
    """Histogram over `joint_bins`."""
    if not reference.size:
        return Histogram.empty()
    rows, columns = exponent_codes(reference), exponent_codes(error)
    row, column = int(rows.min()), int(columns.min())
    width = int(columns.max()) - column + 1
    packed = tally((rows - row) * width + (columns - column))
    high, low = np.divmod(packed.bins, width)
    return Histogram((high + row) * _JOINT_WIDTH + low + column, packed.counts)


def significand_bits(values: FloatArray) -> IntArray:
    """Significand bits each finite value needs, hidden bit included: 1 for 2^k, 0 for zero.

    A float32 tensor whose values need at most 8 bits holds bfloat16 values.
    """
    bits = values.view(np.int64) & ((1 << 52) - 1) | (1 << 52)
    small = (values.view(np.int64) >> 52) & 0x7FF
    if small.size and small.min() == 0:
        significand = np.ldexp(np.frexp(np.abs(values))[0], 53).astype(np.int64)
        bits = np.where(values == 0, 1 << 53, significand)
    lowest = bits & -bits
    return 53 + _BIAS - (lowest.astype(np.float64).view(np.int64) >> 52)


def ulp_bins(distance: NDArray[np.uint64]) -> IntArray:
    """Log2 bins of ulp errors: 0, 1, 2, 3-4, 5-8, … are bins 0, 1, 2, 3, 4, … up to 65."""
    below = distance - np.uint64(1)
    # Keeps the top bit and drops a run of ones after it: float64 rounds no power of two upwards.
    spread = np.where(distance == 0, 0, below & ~(below >> np.uint64(1)))
    small = not spread.size or int(spread.max()) < 1 << 63  # signed converts ten times faster
    rounded = (spread.view(np.int64) if small else spread).astype(np.float64)
    length = np.where(rounded == 0, 0, (rounded.view(np.int64) >> 52) - _BIAS + 1)
    return np.where(distance == 0, 0, length + 1)


def ulp_upper_edges(bins: IntArray) -> FloatArray:
    """Largest ulp error that each bin holds: 0, 1, 2, 4, 8 and so on."""
    return np.where(bins == 0, 0.0, np.ldexp(1.0, np.maximum(bins - 1, 0)))
