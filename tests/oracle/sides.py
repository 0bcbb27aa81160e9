"""What one side of a pair is like on its own."""

from __future__ import annotations

import numpy as np

from core.moments import Moments
from core.stats import FloatArray, Histogram, SideStats
from metrics.decoding import Chunk, is_integer
from metrics.formats import Format
from metrics.histograms import (
    counted,
    significand_bits,
    value_bins,
    value_histogram,
)
from oracle.moments import moments, scaled


def side_stats(
    chunk: Chunk,
    values: FloatArray,
    finite: FloatArray,
    number_format: Format,
    known: Moments | None,
) -> SideStats:
    """Statistics of one side: its chunk as stored, in float64, and the finite part of the latter.

    `known` are the moments of the finite part where the caller has them already.
    """
    nonfinite = values if finite.size < values.size else finite[:0]
    histogram = value_histogram(finite)
    low, high = _bounds(finite)
    return SideStats(
        finite=finite.size,
        nan=int(np.count_nonzero(np.isnan(nonfinite))),
        positive_inf=int(np.count_nonzero(nonfinite == np.inf)),
        negative_inf=int(np.count_nonzero(nonfinite == -np.inf)),
        zero=_count_between(histogram, 0, 0),
        subnormal=_subnormals(histogram, number_format),
        saturated=_saturated(chunk, finite, number_format, low, high),
        minimum=low,
        maximum=high,
        moments=known or moments(scaled(finite, max(-low, high) if finite.size else 0.0)),
        values=histogram,
        significand=counted(np.bincount(significand_bits(finite), minlength=1)),
    )


def _bounds(finite: FloatArray) -> tuple[float, float]:
    """Minimum and maximum; a zero is +0, for which of two zeros is met depends on the block."""
    if not finite.size:
        return np.inf, -np.inf
    return float(finite.min()) + 0.0, float(finite.max()) + 0.0


def _count_between(histogram: Histogram, low: int, high: int) -> int:
    magnitudes = np.abs(histogram.bins)
    return int(histogram.counts[(magnitudes >= low) & (magnitudes <= high)].sum())


def _subnormals(histogram: Histogram, number_format: Format) -> int:
    """Smallest normals are powers of two, so a bin edge: the histogram counts exactly."""
    if not number_format.smallest_normal:
        return 0
    first_normal = int(value_bins(np.array([number_format.smallest_normal]))[0])
    return _count_between(histogram, 1, first_normal - 1)


def _saturated(
    chunk: Chunk, finite: FloatArray, number_format: Format, low: float, high: float
) -> int:
    if number_format.kind == "bool" or (
        high < number_format.largest and low > number_format.lowest
    ):
        return 0
    values = chunk if is_integer(chunk) else finite  # integers as such: float64 would round them
    over = np.count_nonzero(values >= number_format.largest)
    under = np.count_nonzero(values <= number_format.lowest) if number_format.lowest else 0
    return int(over + under)
