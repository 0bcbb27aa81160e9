"""Errors counted in representable values and in bits.

An ulp is the spacing of the coarser logical format of the two sides; both are rounded to that
format first. For integers it is 1.
"""

from __future__ import annotations

import math

import numpy as np

from core.stats import PairStats
from metrics.error import relative_l2
from metrics.histograms import ulp_upper_edges
from metrics.ratios import share
from metrics.registry import metric

_RMS_ROUNDING = 0.4247


@metric("Equal fraction", unit="1", ideal=1.0)
def equal_fraction(stats: PairStats) -> float:
    """Share of all elements that are the same value on both sides.

    Formula: #{b = a, or both NaN} / count; −0 equals +0.
    Range: [0, 1].
    NaN: the tensor is empty.
    Blind to: the size of a difference; NaN payloads and signs of zero.
    Source: equality of IEEE 754, with NaN equal to NaN.
    """
    return share(stats.equal, stats.count)


@metric("Max ulp error", unit="ulp", ideal=0.0)
def ulp_max(stats: PairStats) -> float:
    """Largest number of representable steps between an element and its reference.

    Formula: max |ord(b) − ord(a)|, ord = place among the format's values; the grid goes on beyond
    the largest finite value.
    Range: [0, 2^64); exact to 2^53.
    NaN: no element is finite on both sides.
    Blind to: what a step is worth: near zero, harmless errors span many.
    Source: ulp as a distance of ordered bit patterns, Goldberg 1991, §1.2.
    """
    return stats.max_ulp.value if stats.finite else math.nan


@metric("99 % ulp error", unit="ulp", ideal=0.0)
def ulp_p99(stats: PairStats) -> float:
    """Ulp error that 99 % of the elements do not exceed, as the upper edge of its log2 bin.

    Formula: smallest of 0, 1, 2, 4, 8, … with at least 99 % of the elements at or below it.
    Range: [0, 2^64].
    NaN: no element is finite on both sides.
    Blind to: the worst 1 %; up to a factor of 2 too high from 3 on.
    Source: quantile of the ulp histogram.
    """
    if not stats.finite:
        return math.nan
    upto = np.cumsum(stats.ulp.counts)
    at = int(np.argmax(100 * upto >= 99 * upto[-1]))
    return float(ulp_upper_edges(stats.ulp.bins[at : at + 1])[0])


@metric("Within 1 ulp", unit="1", ideal=1.0)
def ulp_within_1(stats: PairStats) -> float:
    """Share of the elements that are equal or next to their reference in the coarser format.

    Formula: #{ulp error ≤ 1} / n over the elements finite on both sides.
    Range: [0, 1].
    NaN: no element is finite on both sides.
    Blind to: how far the others are.
    Source: ulp histogram, bins 0 and 1.
    """
    return share(int(stats.ulp.counts[stats.ulp.bins <= 1].sum()), stats.finite)


@metric("Effective bits", unit="bits", ideal=math.inf)
def effective_bits(stats: PairStats) -> float:
    """Significand bits of a format whose single rounding would leave the same relative L2 error.

    Formula: −log2(relative L2 / 0.4247).
    Range: [−∞, ∞]; bf16 storage gives 8, fp16 and TF32 11, fp32 24; infinite when equal.
    NaN: no element is finite on both sides.
    Blind to: the cause: accumulated, inherited and planted errors all count as rounding.
    Source: rms relative error of rounding to nearest, 0.4247 u, for a log-uniform significand.
    """
    error = relative_l2(stats) / _RMS_ROUNDING
    return -math.log2(error) if error else math.inf


@metric("Sign flips", unit="elements", ideal=0.0)
def sign_flips(stats: PairStats) -> float:
    """Number of elements that are positive on one side and negative on the other.

    Formula: #{a·b < 0} over the elements finite on both sides.
    Range: [0, count].
    NaN: never.
    Blind to: zeros; a flip of a value near zero counts as much as any.
    Source: count.
    """
    return stats.sign_flips
