"""Histograms and axis profiles of one pair's statistics, at the resolution of a small chart."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.stats import AxisProfile, Histogram, PairStats, SideStats
from metrics.histograms import coarse_value_bins, quantile, ulp_upper_edges, value_edges

FloatArray = NDArray[np.float64]
TAIL = 0.001  # share of the values that may lie beyond either end of a linear axis
OCTAVES = 24  # shown by a symlog axis below the largest magnitude
PER_OCTAVE = 4


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """Both sides' values in shared bins: `edges` (n + 1,) axis positions, shares (n,).

    On a linear axis a position is a value; on a symlog axis it counts quarter octaves from zero,
    and `ticks` are (position, value). `outside` is the share of each side's finite values beyond
    the axis.
    """

    edges: FloatArray
    reference: FloatArray
    candidate: FloatArray
    ticks: tuple[tuple[float, float], ...]
    outside: tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class UlpBars:
    """Elements by ulp error: bin k holds errors in (upper[k - 1], upper[k]]."""

    upper: FloatArray
    counts: NDArray[np.int64]
    total: int


@dataclass(frozen=True, slots=True, eq=False)
class AxisCurve:
    """Relative L2 error along one axis, at most as many points as asked for.

    Point k is the largest value of indexes `start[k]` to `stop[k] - 1`, found at `index[k]`. inf
    where the reference is all zeros and the candidate is not, NaN where nothing is finite.
    """

    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    index: NDArray[np.int64]
    relative_l2: FloatArray
    length: int


@dataclass(frozen=True, slots=True)
class Concentration:
    """Where along an axis the error energy sits.

    `outliers` are the indexes that stand out, worst first, `share` the part of the squared error
    they carry, `others` how many more stand out, `even` whether none does.
    """

    outliers: tuple[int, ...]
    share: float
    ratio: float  # worst relative L2 over the median
    others: int = 0

    @property
    def even(self) -> bool:
        """Whether no index stands out."""
        return not self.outliers


def value_curves(stats: PairStats, *, symlog: bool = False, bins: int = 121) -> Curves | None:
    """Both sides' distributions over one axis; None when no value is finite."""
    sides = stats.reference, stats.candidate
    if not any(side.finite for side in sides):
        return None
    return _symlog(sides) if symlog else _linear(sides, bins)


def ulp_bars(stats: PairStats) -> UlpBars | None:
    """The ulp histogram with its empty bins in between; None without any."""
    if not stats.ulp.total:
        return None
    last = int(stats.ulp.bins[-1])
    counts = np.zeros(last + 1, np.int64)
    counts[stats.ulp.bins] = stats.ulp.counts
    return UlpBars(ulp_upper_edges(np.arange(last + 1)), counts, stats.ulp.total)


def axis_curve(profile: AxisProfile, *, points: int = 2000) -> AxisCurve | None:
    """Relative L2 error per index, reduced by maximum; None when the axis was too long to keep."""
    value = relative_l2(profile)
    if not value.size:
        return None
    size = -(-value.size // points)
    start = np.arange(0, value.size, size)
    stop = np.minimum(start + size, value.size)
    order = np.where(np.isnan(value), -np.inf, value)
    index = np.array([a + int(order[a:b].argmax()) for a, b in zip(start, stop, strict=True)])
    return AxisCurve(start, stop, index, value[index], value.size)


def relative_l2(profile: AxisProfile) -> FloatArray:
    """Relative L2 error of each index: 0 where both are zero, inf where only the reference is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = profile.error_norm / profile.reference_norm
    return np.where(profile.sq_error == 0, 0.0, ratio)


def concentration(profile: AxisProfile, *, most: int = 4, times: float = 3.0) -> Concentration:
    """The indexes whose relative error is beyond `times` the median, if they are few.

    Where more than a tenth of the indexes (or more than `most`) stand out, or a third of a short
    axis, there are no outliers but a pattern.
    """
    value = relative_l2(profile)
    finite = value[np.isfinite(value)]
    middle = float(np.median(finite)) if finite.size else math.nan
    peak = float(np.nanmax(value)) if np.isfinite(middle) else math.nan
    ratio = peak / middle if middle else math.inf if peak > 0 else 1.0
    beyond = np.flatnonzero(np.isinf(value) | (value > times * middle))
    total = float(profile.sq_error.sum())
    few = min(max(most, value.size / 10), value.size / 3)
    if not beyond.size or not total or beyond.size > few:
        return Concentration((), 0.0, ratio)
    worst = beyond[np.argsort(-value[beyond], kind="stable")]
    share = float(profile.sq_error[worst[:most]].sum()) / total
    named = tuple(int(i) for i in worst[:most])
    return Concentration(named, share, ratio, worst.size - len(named))


def _linear(sides: tuple[SideStats, SideStats], bins: int) -> Curves:
    held = [side for side in sides if side.finite]
    low = min(quantile(side, TAIL) for side in held)
    high = max(quantile(side, 1 - TAIL) for side in held)
    if not high > low:  # constant: an axis around the one value
        reach = abs(low) / 2 or 0.5
        low, high = low - reach, high + reach
    step = high / bins - low / bins
    edges: FloatArray = low + step * np.arange(bins + 1, dtype=np.float64)
    shares = [spread_over(side.values, edges) for side in sides]
    return Curves(edges, shares[0][0], shares[1][0], (), (shares[0][1], shares[1][1]))


def spread_over(histogram: Histogram, edges: FloatArray) -> tuple[FloatArray, float]:
    """Shares of a value histogram over linear bins, each source bin spread evenly; and the rest."""
    if not histogram.total:
        return np.zeros(edges.size - 1), 0.0
    low, high = value_edges(histogram.bins)
    knots = np.unique(np.concatenate([low, high]))
    rise = np.zeros(knots.size)
    wide = high > low
    np.add.at(rise, np.searchsorted(knots, high[wide]), histogram.counts[wide])
    below = np.interp(edges, knots, np.cumsum(rise), left=0.0)
    counts = np.diff(below)
    for value, count in zip(low[~wide], histogram.counts[~wide], strict=True):  # the zero bin
        place = int(np.searchsorted(edges, value, side="right")) - 1
        if 0 <= place < counts.size:
            counts[place] += count
    shares = counts / histogram.total
    return shares, max(0.0, 1.0 - float(shares.sum()))


def _symlog(sides: tuple[SideStats, SideStats]) -> Curves:
    codes = [coarse_value_bins(side.values.bins, per_octave=PER_OCTAVE) for side in sides]
    top = max((int(np.abs(c).max()) for c in codes if c.size), default=1) or 1
    base = max(0, top - OCTAVES * PER_OCTAVE)
    reach = top - base
    shares = []
    for side, code in zip(sides, codes, strict=True):
        place = np.sign(code) * np.maximum(np.abs(code) - base, 0) + reach
        counts = np.bincount(place, weights=side.values.counts, minlength=2 * reach + 1)
        shares.append(counts / max(1, side.values.total))
    edges: FloatArray = np.arange(2 * reach + 2, dtype=np.float64) - reach - 0.5
    return Curves(edges, shares[0], shares[1], symlog_ticks(base, reach), (0.0, 0.0))


def symlog_ticks(base: int, reach: int) -> tuple[tuple[float, float], ...]:
    """Powers of ten in view, thinned to two a side, and zero."""
    first = (base + np.arange(1, reach + 1) - 1) * (16 // PER_OCTAVE) + 1
    low, _ = value_edges(first.astype(np.int64))
    tens = [10.0**k for k in range(-307, 308) if low[0] <= 10.0**k <= low[-1]]
    places = [(float(np.searchsorted(low, ten, side="right")), ten) for ten in tens]
    places = [(at, ten) for at, ten in places if at > reach / 5]  # clear of the zero
    places = places[:: -(-len(places) // 2) or 1] if len(places) > 2 else places
    return (*((-at, -ten) for at, ten in reversed(places)), (0.0, 0.0), *places)
