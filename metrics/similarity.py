"""Whether candidate and reference point the same way, and how they differ in size.

All are over the elements finite on both sides. Angles come from Σa², Σb², Σe² and Σa·e by
Lagrange's identity, Σa²·Σb² − (Σa·b)² = Σa²·Σe² − (Σa·e)², so that nothing cancels where two
tensors nearly agree.
"""

from __future__ import annotations

import math

from core.stats import PairStats
from core.wide import Wide
from metrics.error import relative_l2
from metrics.ratios import ratio, root_ratio
from metrics.registry import metric

_RESOLUTION = 2.0**-46  # of a remainder of two equal float64 sums, in units of the sums


@metric("Cosine distance", unit="1", ideal=0.0)
def cosine_distance(stats: PairStats) -> float:
    """1 − cos of the angle between reference and candidate, exact for the smallest angles.

    Formula: sin² / (1 + cos), sin² = (Σa²·Σe² − (Σa·e)²) / (Σa²·Σb²); 1 − cos where cos ≤ 0.
    Range: [0, 2].
    NaN: exactly one side is all zeros, or no element is finite on both; 0 when both are all zeros.
    Blind to: scale: a candidate doubled throughout scores 0.
    Source: Lagrange's identity.
    """
    m = stats.moments
    a, b, e = m.reference.energy, m.candidate.energy, m.error.energy
    if stats.finite and not a and not b:
        return 0.0
    return _angle_distance(a, b, e, m.dot_candidate, m.dot_error)


@metric("Pearson distance", unit="1", ideal=0.0)
def pearson_distance(stats: PairStats) -> float:
    """1 − correlation of reference and candidate, exact for the smallest distances.

    Formula: as the cosine distance, of a − mean(a) and b − mean(b).
    Range: [0, 2].
    NaN: either side is constant, or no element is finite on both.
    Blind to: scale and offset.
    Source: Pearson's correlation coefficient (PCC); Lagrange's identity.
    """
    m = stats.moments
    a, b, e = m.reference.m2, m.candidate.m2, m.error.m2
    return _angle_distance(a, b, e, m.co_candidate, m.co_error)


def _angle_distance(a: Wide, b: Wide, e: Wide, dot: Wide, dot_error: Wide) -> float:
    """From |a|², |b|², |e|², a·b and a·e; NaN when a or b is zero."""
    if not a or not b:
        return math.nan
    cosine = float(dot / (a.sqrt() * b.sqrt()))
    if cosine <= 0:
        return min(2.0, 1 - cosine)
    gram = a * e - dot_error * dot_error if e < b else a * b - dot * dot
    return max(0.0, float(gram / (a * b))) / (1 + min(1.0, cosine))


@metric("SQNR", unit="dB", ideal=math.inf)
def sqnr_db(stats: PairStats) -> float:
    """Signal to quantisation noise: energy of the reference over that of the error, in decibels.

    Formula: 10 log10(Σa² / Σe²).
    Range: [−∞, ∞]; infinite when equal; bf16 storage alone gives 55.6, fp16 73.7, e4m3 31.5.
    NaN: no element is finite on both sides.
    Blind to: what relative L2 is blind to: it is the same number on another scale.
    Source: signal-to-quantisation-noise ratio.
    """
    return -20 * _log10(relative_l2(stats))


def _log10(value: float) -> float:
    return math.log10(value) if value else -math.inf


@metric("Best-fit scale", unit="1", ideal=1.0)
def best_fit_scale(stats: PairStats) -> float:
    """The factor by which the reference comes nearest to the candidate.

    Formula: α = 1 + Σa·e / Σa², which minimises Σ(b − α·a)².
    Range: (−∞, ∞); 2, ½, 1/√d or 1/N name a forgotten factor.
    NaN: the reference is all zeros, or no element is finite on both sides.
    Blind to: everything but scale; read it beside the best-fit residual.
    Source: linear least squares through the origin.
    """
    m = stats.moments
    energy = m.reference.energy
    return 1 + float(m.dot_error / energy) if energy else math.nan


@metric("Best-fit residual", unit="1", ideal=0.0)
def best_fit_residual(stats: PairStats) -> float:
    """Relative L2 error that is left after the best-fit scale.

    Formula: √((Σe² − (Σa·e)² / Σa²) / Σa²); less than 1e-7 of relative L2 counts as 0, for the sums
    cannot tell it from their own rounding.
    Range: [0, relative L2]; far below relative L2 means the error is a change of scale.
    NaN: the reference is all zeros and the candidate is not, or no element is finite on both sides.
    Blind to: scale.
    Source: linear least squares through the origin.
    """
    m = stats.moments
    energy, error = m.reference.energy, m.error.energy
    if not stats.finite or (not energy and error):
        return math.nan
    if not error:
        return 0.0
    left = error - m.dot_error * m.dot_error / energy
    return root_ratio(left, energy) if error * _RESOLUTION < left else 0.0


@metric("Norm ratio", unit="1", ideal=1.0)
def norm_ratio(stats: PairStats) -> float:
    """Size of the candidate against that of the reference.

    Formula: √(Σb² / Σa²).
    Range: [0, ∞]; 1 when both sides are all zeros, infinite when only the reference is.
    NaN: no element is finite on both sides.
    Blind to: direction: two different tensors of equal norm score 1.
    Source: ratio of L2 norms.
    """
    if not stats.finite:
        return math.nan
    a, b = stats.moments.reference.energy, stats.moments.candidate.energy
    return ratio(b.sqrt(), a.sqrt()) if a or b else 1.0
