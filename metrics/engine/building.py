"""From raw sums, counts and tables to `PairStats`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.moments import Moments, PairMoments
from core.records import maker_of
from core.stats import AxisProfile, Extreme, Histogram, PairStats, SideStats
from core.wide import Wide
from metrics.engine import layout as at
from metrics.engine.plan import Plan
from metrics.engine.workspace import Space

Floats = NDArray[np.float64]

_moments, _pair_moments = maker_of(Moments), maker_of(PairMoments)
_extreme_at, _axis, _side_stats = maker_of(Extreme), maker_of(AxisProfile), maker_of(SideStats)
_pair_stats = maker_of(PairStats)

_ADDED = [
    *(at.FINITE, at.NAN_BOTH, at.INF_EQUAL, at.EQUAL, at.FLIPS, at.MISMATCHES),
    *range(at.SIDE_A, at.SIDE_B + 5),
]


def built(
    plan: Plan, spaces: Sequence[Space], count: int, sums: Floats, profile: Floats
) -> PairStats:
    """The statistics of a pair from what each thread counted, and from the sums of all."""
    counts, extremes, small, histograms = _together(spaces)
    values_a, values_b, joint, ulp, bits_a, bits_b = histograms
    s = sums.tolist()
    a, b, e = int(s[at.K_A]), int(s[at.K_B]), int(s[at.K_E])
    of = Wide.of
    n = int(s[at.N])
    moments = _pair_moments(
        _moments(n, of(s[at.MEAN_A], a), of(s[at.M2_A], 2 * a)),
        _moments(n, of(s[at.MEAN_B], b), of(s[at.M2_B], 2 * b)),
        _moments(n, of(s[at.MEAN_E], e), of(s[at.M2_E], 2 * e)),
        of(s[at.CO_B], a + b),
        of(s[at.CO_E], a + e),
        of(s[at.DOT_B], a + b),
        of(s[at.DOT_E], a + e),
        of(s[at.ABS_A], a),
        of(s[at.ABS_E], e),
    )
    finite, nan_both, inf_equal = counts[at.FINITE], counts[at.NAN_BOTH], counts[at.INF_EQUAL]
    return _pair_stats(
        plan.dtype,
        count,
        finite,
        nan_both,
        inf_equal,
        counts[at.EQUAL] + nan_both + inf_equal,
        counts[at.FLIPS],
        counts[at.MISMATCHES] + count - finite - nan_both - inf_equal,
        moments,
        _extreme(plan, counts[at.WORST_AT], extremes[at.WORST : at.WORST + 3]),
        _extreme(plan, counts[at.ULP_AT], extremes[at.ULP : at.ULP + 3]),
        _side(0, counts, extremes, small, s, moments.reference, values_a, bits_a),
        _side(1, counts, extremes, small, s, moments.candidate, values_b, bits_b),
        ulp,
        joint,
        _axes(plan, profile),
    )


def _together(
    spaces: Sequence[Space],
) -> tuple[list[int], list[float], list[int], list[Histogram]]:
    first = spaces[0]
    if len(spaces) == 1:
        return first.counts.tolist(), first.extremes.tolist(), first.small, first.histograms
    counts = [s.counts.tolist() for s in spaces]
    total = counts[0]
    for i in _ADDED:
        total[i] = sum(each[i] for each in counts)
    extremes = [s.extremes.tolist() for s in spaces]
    merged = [
        *_first_largest(counts, extremes, at.WORST_AT, at.WORST, total),
        *_first_largest(counts, extremes, at.ULP_AT, at.ULP, total),
    ]
    for i in (at.MIN_A, at.MAX_A, at.MIN_B, at.MAX_B):
        pick = min if i in (at.MIN_A, at.MIN_B) else max
        merged.append(pick(each[i] for each in extremes))
    small = [sum(each) for each in zip(*(s.small for s in spaces), strict=True)]
    columns = zip(*(s.histograms for s in spaces), strict=True)
    return total, merged, small, [Histogram.merged(parts) for parts in columns]


def _first_largest(
    counts: list[list[int]], extremes: list[list[float]], index: int, value: int, total: list[int]
) -> list[float]:
    """The largest of each thread's extremes and of equal ones the earliest."""

    def rank(i: int) -> tuple[bool, int, float, int]:
        exact = counts[i][at.LARGEST_ULP] % (1 << 64) if value == at.ULP else 0
        return counts[i][index] >= 0, exact, extremes[i][value], -counts[i][index]

    best = max(range(len(counts)), key=rank)
    total[index] = counts[best][index]
    return extremes[best][value : value + 3]


def _extreme(plan: Plan, index: int, values: list[float]) -> Extreme:
    if index < 0:
        return Extreme()
    return _extreme_at(values[0], index // plan.parts, values[1], values[2])


def _side(
    which: int,
    counts: list[int],
    extremes: list[float],
    small: list[int],
    sums: list[float],
    shared: Moments,
    values: Histogram,
    bits: Histogram,
) -> SideStats:
    finite, nan, plus, minus, saturated = counts[at.SIDE_A + 5 * which : at.SIDE_B + 5 * which]
    low, high = extremes[at.MIN_A + 2 * which : at.MIN_A + 2 * which + 2]
    own = at.OWN_A + 4 * which
    moments = shared
    if finite != shared.count:
        k = int(sums[own + 3])
        moments = _moments(finite, Wide.of(sums[own + 1], k), Wide.of(sums[own + 2], 2 * k))
    return _side_stats(
        finite,
        nan,
        plus,
        minus,
        small[2 * which],
        small[2 * which + 1],
        saturated,
        low,
        high,
        moments,
        values,
        bits,
    )


def _axes(plan: Plan, profile: Floats) -> tuple[AxisProfile, ...]:
    axes = []
    first = 0
    error, reference = int(profile[0, -1]), int(profile[1, -1])
    for length in plan.lengths:
        piece = profile[:, first : first + length]
        axes.append(_axis(piece[0], piece[1], piece[2], error, reference))
        first += length
    return tuple(axes)
