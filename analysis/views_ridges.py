"""Distributions of one tensor through the layers and through the steps, on one axis each."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.views_distributions import OCTAVES, PER_OCTAVE, spread_over, symlog_ticks
from core.stats import AxisProfile, FloatArray, PairStats, SideStats
from metrics.histograms import coarse_value_bins, quantile

TAIL = 0.001
SHARES = (0.01, 0.25, 0.5, 0.75, 0.99)
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")
STANDS_OUT = 6.0  # times the median channel's RMS: an outlier channel, as LLM.int8() counts them


@dataclass(frozen=True, slots=True, eq=False)
class Ridges:
    """Shares of each side's values in shared bins: `edges` (n + 1,), (tensors, n) for each side.

    `ticks` as in `Curves`.
    """

    edges: FloatArray
    reference: FloatArray
    candidate: FloatArray
    ticks: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Health:
    """What a format does to one side: shares of the finite elements.

    `saturated`: at the largest value of the format; `subnormal`: below its smallest normal one;
    `peak`: largest magnitude over the root mean square, NaN without values.
    """

    saturated: float
    subnormal: float
    nonfinite: int
    peak: float


def pattern(operator: str) -> str:
    """The operator without the numbers of its blocks: what repeats through the layers."""
    return _NUMBER.sub("*", operator)


def ridges(held: Sequence[PairStats], *, symlog: bool, bins: int = 96) -> Ridges | None:
    """The distributions of several tensors over one axis; None when no value is finite."""
    sides = [side for stats in held for side in (stats.reference, stats.candidate)]
    finite = [side for side in sides if side.finite]
    if not finite:
        return None
    edges, ticks, shares = _symlog(sides) if symlog else _linear(sides, finite, bins)
    return Ridges(edges, shares[0::2], shares[1::2], ticks)


def bands(held: Sequence[PairStats]) -> tuple[FloatArray, FloatArray]:
    """The quantiles `SHARES` of both sides, (tensors, shares) each; NaN where nothing is finite."""
    found = [
        [[quantile(side, share) for share in SHARES] for side in (s.reference, s.candidate)]
        for s in held
    ]
    both = np.array(found, np.float64).reshape(len(held), 2, len(SHARES))
    return both[:, 0], both[:, 1]


def moved_from(before: PairStats, after: PairStats) -> tuple[PairStats, PairStats]:
    """Two steps of one tensor as drift sees them: the reference from one to the other, and the
    candidate.
    """
    return (
        PairStats(before.dtype, reference=before.reference, candidate=after.reference),
        PairStats(before.dtype, reference=before.candidate, candidate=after.candidate),
    )


def health(side: SideStats) -> Health:
    """Saturation, subnormals and the peak of one side."""
    energy = float((side.moments.energy / side.moments.count).sqrt()) if side.finite else math.nan
    finite = side.finite or math.nan
    return Health(
        side.saturated / finite,
        side.subnormal / finite,
        side.nan + side.positive_inf + side.negative_inf,
        side.max_abs / energy if energy else math.nan,
    )


def outlier_channels(stats: PairStats, axis: int = -1) -> dict[int, float]:
    """Channels of the reference whose RMS is far above the median's: index -> times the median.

    Most extreme first; empty when the profile of the axis was not kept.
    """
    if not stats.axes:
        return {}
    profile: AxisProfile = stats.axes[axis]
    norm = profile.reference_norm
    middle = float(np.median(norm)) if norm.size else 0.0
    if not middle > 0:
        return {}
    beyond = np.flatnonzero(norm > STANDS_OUT * middle)
    order = beyond[np.argsort(-norm[beyond], kind="stable")]
    return {int(i): float(norm[i] / middle) for i in order}


def lasting(found: Sequence[dict[int, float]], *, least: int = 2) -> list[tuple[int, int]]:
    """Channels that stand out in several tensors: (index, in how many), most lasting first."""
    seen = Counter(index for each in found for index in each)
    return [(index, n) for index, n in seen.most_common() if n >= least]


_Axis = tuple[FloatArray, tuple[tuple[float, float], ...], NDArray[np.float64]]


def _linear(sides: Sequence[SideStats], finite: Sequence[SideStats], bins: int) -> _Axis:
    low = min(quantile(side, TAIL) for side in finite)
    high = max(quantile(side, 1 - TAIL) for side in finite)
    if not high > low:
        reach = abs(low) / 2 or 0.5
        low, high = low - reach, high + reach
    edges = low + (high / bins - low / bins) * np.arange(bins + 1, dtype=np.float64)
    shares = np.stack([spread_over(side.values, edges)[0] for side in sides])
    return edges, (), shares


def _symlog(sides: Sequence[SideStats]) -> _Axis:
    codes = [coarse_value_bins(side.values.bins, per_octave=PER_OCTAVE) for side in sides]
    top = max((int(np.abs(c).max()) for c in codes if c.size), default=1) or 1
    base = max(0, top - OCTAVES * PER_OCTAVE)
    reach = top - base
    shares = np.zeros((len(sides), 2 * reach + 1))
    for row, side, code in zip(shares, sides, codes, strict=True):
        place = np.sign(code) * np.maximum(np.abs(code) - base, 0) + reach
        row += np.bincount(place, weights=side.values.counts, minlength=row.size) / max(
            1, side.values.total
        )
    edges = np.arange(2 * reach + 2, dtype=np.float64) - reach - 0.5
    return edges, symlog_ticks(base, reach), shares
