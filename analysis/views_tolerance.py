"""How many elements another tolerance would refuse, from the joint histogram: no new pass.

The histogram knows of each element between which powers of two its |reference| and its |error| lie.
For most that decides; the rest are bracketed, and estimated as spread evenly in both logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.stats import FloatArray, PairStats
from metrics.histograms import joint_exponents

_STEPS = (np.arange(8) + 0.5) / 8  # places within an octave


@dataclass(frozen=True, slots=True)
class Refused:
    """Elements outside a tolerance: surely, by estimate, and at most; of `total`.

    Elements that are not finite on one side only, or differ there, are among all three.
    """

    surely: int
    likely: float
    at_most: int
    total: int


def refused(stats: PairStats, *, atol: float, rtol: float) -> Refused:
    """The elements with |error| > atol + rtol · |reference|."""
    size, error = joint_exponents(stats.joint.bins)
    counts = stats.joint.counts
    low, high = (_allowed(size + more, atol, rtol) for more in (0, 1))
    with np.errstate(over="ignore"):
        surely = np.exp2(error) > high
        never = np.isneginf(error) | (np.exp2(error + 1) <= low)
    open_ = ~surely & ~never
    share = _share(size[open_], error[open_], atol, rtol)
    base = stats.unmatched_nonfinite + int(counts[surely].sum())
    return Refused(
        surely=base,
        likely=base + float((share * counts[open_]).sum()),
        at_most=base + int(counts[open_].sum()),
        total=stats.count,
    )


def _allowed(exponent: FloatArray, atol: float, rtol: float) -> FloatArray:
    """Error allowed at |reference| = 2^exponent; -inf stands for zero."""
    with np.errstate(over="ignore", invalid="ignore"):
        part = rtol * np.exp2(exponent) if rtol else np.zeros(exponent.shape)
    return np.asarray(atol + part, np.float64)


def _share(size: FloatArray, error: FloatArray, atol: float, rtol: float) -> FloatArray:
    """Share of each bin's elements that are refused if both logarithms are spread evenly."""
    sizes = _allowed(size[:, None] + _STEPS, atol, rtol)
    with np.errstate(over="ignore"):
        errors = np.exp2(error[:, None] + _STEPS)
    beyond = errors[:, None, :] > sizes[:, :, None]
    return np.asarray(beyond.mean(axis=(1, 2)), np.float64)
