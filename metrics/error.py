"""How far the candidate lies from the reference, element by element.

All but the mismatch fraction are over the elements finite on both sides; a non-finite value on one
side only is counted by the non-finite family and is always a mismatch.
"""

from __future__ import annotations

import math

from core.stats import PairStats
from metrics.ratios import float_ratio, ratio, root_ratio, share
from metrics.registry import metric


@metric("Max |error|", unit="data", ideal=0.0)
def max_abs_error(stats: PairStats) -> float:
    """Largest distance of any element from its reference.

    Formula: max |e|, e = candidate − reference.
    Range: [0, ∞]; infinite when the difference leaves float64.
    NaN: no element is finite on both sides.
    Blind to: how many elements are wrong, and the scale of the tensor.
    Source: the L∞ norm of the error.
    """
    return stats.max_abs_error.value if stats.finite else math.nan


@metric("Mean |error|", unit="data", ideal=0.0)
def mean_abs_error(stats: PairStats) -> float:
    """Average distance of an element from its reference.

    Formula: Σ|e| / n.
    Range: [0, ∞).
    NaN: no element is finite on both sides.
    Blind to: a few large errors among many small ones.
    Source: mean absolute error (MAE).
    """
    return float(stats.moments.abs_error / stats.finite) if stats.finite else math.nan


@metric("RMS error", unit="data", ideal=0.0)
def rmse(stats: PairStats) -> float:
    """Root mean square of the error.

    Formula: √(Σe² / n).
    Range: [0, ∞).
    NaN: no element is finite on both sides.
    Blind to: the scale of the tensor; small elements are outvoted by large ones.
    Source: root-mean-square error.
    """
    return float((stats.moments.error.energy / stats.finite).sqrt()) if stats.finite else math.nan


@metric("Bias", unit="data", ideal=0.0)
def bias(stats: PairStats) -> float:
    """Average signed error: what a missing offset or a one-sided rounding leaves.

    Formula: Σe / n.
    Range: (−∞, ∞).
    NaN: no element is finite on both sides.
    Blind to: errors that cancel.
    Source: mean error.
    """
    return float(stats.moments.error.mean) if stats.finite else math.nan


@metric("Relative L2", unit="1", ideal=0.0)
def relative_l2(stats: PairStats) -> float:
    """Energy of the error against that of the reference: the main number of magnitude.

    Formula: √(Σe² / Σa²), a = reference.
    Range: [0, ∞]; one rounding to a format of unit roundoff u costs 0.4247 u. Infinite when the
    reference is all zeros and the candidate is not.
    NaN: no element is finite on both sides.
    Blind to: errors confined to small channels or few elements.
    Source: normwise relative error, Higham, Accuracy and Stability of Numerical Algorithms, §1.2.
    """
    if not stats.finite:
        return math.nan
    return root_ratio(stats.moments.error.energy, stats.moments.reference.energy)


@metric("Relative L∞", unit="1", ideal=0.0)
def relative_linf(stats: PairStats) -> float:
    """Largest error against the largest finite value of the reference.

    Formula: max |e| / max |a|.
    Range: [0, ∞]; infinite when the reference is all zeros and the candidate is not.
    NaN: no element is finite on both sides.
    Blind to: everything but the worst element, and to errors of small elements.
    Source: normwise relative error in the L∞ norm.
    """
    return float_ratio(max_abs_error(stats), stats.reference.max_abs)


@metric("Relative L1", unit="1", ideal=0.0)
def relative_l1(stats: PairStats) -> float:
    """Sum of distances against the sum of magnitudes of the reference.

    Formula: Σ|e| / Σ|a|.
    Range: [0, ∞]; infinite when the reference is all zeros and the candidate is not.
    NaN: no element is finite on both sides.
    Blind to: a few large errors among many small ones.
    Source: normwise relative error in the L1 norm.
    """
    if not stats.finite:
        return math.nan
    return ratio(stats.moments.abs_error, stats.moments.abs_reference)


@metric("Mismatch fraction", unit="1", ideal=0.0)
def mismatch_fraction(stats: PairStats) -> float:
    """Share of all elements outside tolerance, unmatched NaN and infinities included.

    Formula: #{|e| > atol + rtol·|a| or unmatched non-finite} / count; booleans: #{b ≠ a} / count.
    Range: [0, 1].
    NaN: the tensor is empty.
    Blind to: by how much a mismatch misses; depends on the tolerance of the comparison.
    Source: the rule of numpy.isclose.
    """
    return share(stats.mismatches, stats.count)
