"""How far one distribution of values has moved from the other.

All compare the histograms of the finite values of each side and are blind to order: a candidate
that holds the reference's values in any other order scores 0 throughout. They are for data without
pairs (another batch, another step); for pairs, read the error family first. Bins are those of
`metrics.histograms`, 16 to the octave; JS and PSI regroup them to 2, so that rounding to a coarse
format does not look like drift.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from core.stats import IntArray, PairStats
from metrics.histograms import aligned, quantile, regrouped, value_centres
from metrics.ratios import float_ratio
from metrics.registry import metric

_PER_OCTAVE = 2


def _counts(stats: PairStats) -> tuple[IntArray, IntArray]:
    """Counts of both sides over the half octaves that either one occupies."""
    coarse = [
        regrouped(side.values, per_octave=_PER_OCTAVE)
        for side in (stats.reference, stats.candidate)
    ]
    _, reference, candidate = aligned(*coarse)
    return reference, candidate


def _defined(stats: PairStats) -> bool:
    return bool(stats.reference.finite and stats.candidate.finite)


@metric("JS divergence", unit="bits", ideal=0.0)
def js_divergence(stats: PairStats) -> float:
    """Jensen-Shannon divergence of the two distributions, in bits.

    Formula: ½ Σ p log2(p/m) + ½ Σ q log2(q/m), m = (p + q)/2, over half octaves.
    Range: [0, 1]; of two samples of one distribution about (K − 1)/(8 ln 2)·(1/n + 1/m), K bins.
    NaN: a side has no finite element.
    Blind to: order, and moves within half an octave.
    Source: Lin 1991, Divergence measures based on the Shannon entropy.
    """
    if not _defined(stats):
        return math.nan
    reference, candidate = _counts(stats)
    p, q = reference / reference.sum(), candidate / candidate.sum()
    middle = (p + q) / 2
    return min(1.0, max(0.0, (_relative_entropy(p, middle) + _relative_entropy(q, middle)) / 2))


def _relative_entropy(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    held = p > 0
    return float((p[held] * np.log2(p[held] / q[held])).sum())


@metric("KS distance", unit="1", ideal=0.0)
def ks(stats: PairStats) -> float:
    """Kolmogorov-Smirnov distance: the largest gap between the two cumulative distributions.

    Formula: max |F_a − F_b| at the edges of the fine bins.
    Range: [0, 1]; two samples of one distribution stay below 1.36·√(1/n + 1/m) in 95 % of cases.
    NaN: a side has no finite element.
    Blind to: order, tails, and moves within a bin (up to 1/16 of a value).
    Source: the two-sample Kolmogorov-Smirnov statistic, of binned values.
    """
    if not _defined(stats):
        return math.nan
    _, reference, candidate = aligned(stats.reference.values, stats.candidate.values)
    return float(np.abs(_gaps(reference, candidate)).max())


def _gaps(reference: IntArray, candidate: IntArray) -> NDArray[np.float64]:
    """F_a − F_b after each bin."""
    upto = np.cumsum(reference), np.cumsum(candidate)
    gaps: NDArray[np.float64] = upto[0] / upto[0][-1] - upto[1] / upto[1][-1]
    return gaps


@metric("PSI", unit="1", ideal=0.0)
def psi(stats: PairStats) -> float:
    """Population stability index: the symmetric Kullback-Leibler divergence.

    Formula: Σ (p − q) ln(p/q) over half octaves, p = (count + ½)/(n + K/2) (Jeffreys), K bins.
    Range: [0, ∞); above 0.1 is commonly called a shift, above 0.25 a large one; of two samples of
    one distribution about (K − 1)·(1/n + 1/m).
    NaN: a side has no finite element.
    Blind to: order, and moves within half an octave.
    Source: Siddiqi 2006, Credit Risk Scorecards; smoothing after Jeffreys.
    """
    if not _defined(stats):
        return math.nan
    p, q = ((counts + 0.5) / (counts.sum() + counts.size / 2) for counts in _counts(stats))
    return max(0.0, float(((p - q) * np.log(p / q)).sum()))


@metric("Wasserstein-1", unit="data", ideal=0.0)
def wasserstein_1(stats: PairStats) -> float:
    """How far values must move on average to turn one distribution into the other.

    Formula: ∫ |F_a − F_b| dx, every value standing at the middle of its bin.
    Range: [0, ∞).
    NaN: a side has no finite element.
    Blind to: order, and moves within a bin (up to 1/16 of a value).
    Source: the earth mover's distance in one dimension.
    """
    if not _defined(stats):
        return math.nan
    bins, reference, candidate = aligned(stats.reference.values, stats.candidate.values)
    gaps = np.abs(_gaps(reference, candidate))[:-1]
    with np.errstate(over="ignore"):
        return float((gaps * np.diff(value_centres(bins)))[gaps > 0].sum())


@metric("Wasserstein-1 / std", unit="1", ideal=0.0)
def wasserstein_1_relative(stats: PairStats) -> float:
    """Wasserstein-1 in standard deviations of the reference.

    Formula: W1 / std(reference).
    Range: [0, ∞]; infinite when the reference is constant and the candidate is elsewhere.
    NaN: a side has no finite element.
    Blind to: order, and moves within a bin (up to 1/16 of a value).
    Source: the earth mover's distance in one dimension.
    """
    return float_ratio(wasserstein_1(stats), stats.reference.std)


def _quantile_shift(stats: PairStats, share: float) -> float:
    moved = quantile(stats.candidate, share) - quantile(stats.reference, share)
    return float_ratio(moved, stats.reference.std)


@metric("Shift of the 1 % quantile", unit="1", ideal=0.0)
def quantile_shift_p01(stats: PairStats) -> float:
    """How far the low end moved, in standard deviations of the reference.

    Formula: (Q_b(1 %) − Q_a(1 %)) / std(reference), quantiles read from the fine bins.
    Range: [−∞, ∞]; infinite when the reference is constant and the candidate is elsewhere.
    NaN: a side has no finite element.
    Blind to: order; quantiles are known to 1/16 of their value.
    Source: quantiles of the value histogram.
    """
    return _quantile_shift(stats, 0.01)


@metric("Shift of the median", unit="1", ideal=0.0)
def quantile_shift_median(stats: PairStats) -> float:
    """How far the middle moved, in standard deviations of the reference.

    Formula: (Q_b(50 %) − Q_a(50 %)) / std(reference), quantiles read from the fine bins.
    Range: [−∞, ∞]; infinite when the reference is constant and the candidate is elsewhere.
    NaN: a side has no finite element.
    Blind to: order; quantiles are known to 1/16 of their value.
    Source: quantiles of the value histogram.
    """
    return _quantile_shift(stats, 0.50)


@metric("Shift of the 99 % quantile", unit="1", ideal=0.0)
def quantile_shift_p99(stats: PairStats) -> float:
    """How far the high end moved, in standard deviations of the reference.

    Formula: (Q_b(99 %) − Q_a(99 %)) / std(reference), quantiles read from the fine bins.
    Range: [−∞, ∞]; infinite when the reference is constant and the candidate is elsewhere.
    NaN: a side has no finite element.
    Blind to: order; quantiles are known to 1/16 of their value.
    Source: quantiles of the value histogram.
    """
    return _quantile_shift(stats, 0.99)
