"""From dense tables to sparse histograms; the tables are left empty for the next pair."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine import layout as at
from metrics.engine.jit import borrowed, inlined, kernel
from metrics.engine.layout import JOINT_CODE
from metrics.engine.loading import Ints
from metrics.engine.planes import read_marks
from metrics.engine.tables import is_held, joint_bins, take, values


@inlined
def _significands(
    planes: Any, marks: Ints, zero: int, padded: int, bins: Ints, tally: Ints, n: int
) -> int:
    """Mark k stands for 24 - k bits; zeros are marked as if they needed one."""
    totals = np.empty(32, np.int64)
    read_marks(planes, totals)
    for k in range(24):
        totals[k] += np.int64(marks[k])
        marks[k] = np.uint32(0)
    totals[23] -= zero + padded
    if zero:
        bins[n], tally[n] = 0, zero
        n += 1
    for k in range(23, -1, -1):
        if totals[k]:
            bins[n], tally[n] = 24 - k, totals[k]
            n += 1
    return n


@inlined
def _ulps(planes: Any, finite: int, huge: int, bins: Ints, tally: Ints, n: int) -> int:
    """Mark k stands for bin k + 1, and mark 0 for bin 33 too."""
    totals = np.empty(33, np.int64)
    read_marks(planes, totals)
    totals[0] -= huge
    totals[32] = huge
    zero = finite - totals.sum()
    if zero:
        bins[n], tally[n] = 0, zero
        n += 1
    for k in range(33):
        if totals[k]:
            bins[n], tally[n] = k + 1, totals[k]
            n += 1
    return n


@inlined
def _gather_values(tops: Any, lanes: int, low: int, high: int, form: Ints) -> None:
    """Add what was counted for both sides at once to each side's own table, and clear it."""
    half = form[at.HALF]
    for sign in range(2):
        _gathered(tops, lanes, sign * half)
        for e in range(max(low, 1), high + 1):
            _gathered(tops, lanes, sign * half + 16 * e)


@inlined
def _gathered(tops: Any, lanes: int, start: int) -> None:
    shared = tops[2]
    if not is_held(shared, lanes, start):
        return
    for lane in range(lanes):
        a, b = tops[0, lane, start : start + 16], tops[1, lane, start : start + 16]
        both = shared[lane, start : start + 16]
        for i in range(16):
            a[i] += both[i]
            b[i] += both[i]
            both[i] = np.uint32(0)


@inlined
def _column_zero(bins: Ints, tally: Ints, first: int, last: int) -> int:
    """Elements of joint bins whose error is zero."""
    found = 0
    for i in range(first, last):
        if bins[i] % JOINT_CODE == 0:
            found += tally[i]
    return found


@inlined
def _small(bins: Ints, tally: Ints, first: int, last: int, normal: int) -> tuple[int, int]:
    """Zeros and subnormals among value bins."""
    zero = subnormal = 0
    for i in range(first, last):
        if bins[i] == 0:
            zero += tally[i]
        elif abs(bins[i]) < normal:
            subnormal += tally[i]
    return zero, subnormal


@inlined
def _values_and_joint(
    tops: Any, joint: Any, lanes: tuple[int, int], form: Ints, counts: Ints,
    bins: Ints, tally: Ints, ends: Ints,
) -> int:  # fmt: skip
    """The first three histograms, with the counts of zeros and subnormals; where they end."""
    n = 0
    for side in range(2):
        seen = at.SEEN_A + 2 * side
        low, high = counts[seen], counts[seen + 1]
        first = n
        n = values(tops[side], lanes[0], form, low, high, bins, tally, n)
        ends[side] = n
        small = _small(bins, tally, first, n, form[at.NORMAL_A + side])
        ends[6 + 2 * side], ends[7 + 2 * side] = small
    n = joint_bins(joint, lanes[1], form, counts, bins, tally, n)
    ends[2] = n
    return n


@kernel
def collect_narrow(
    tops: Any,
    joint: Any,
    planes: Any,
    marks: Any,
    form: Ints,
    counts: Ints,
    bins: Ints,
    tally: Ints,
    ends: Ints,
) -> None:
    """All six histograms one after the other; `ends` tells where each ends, then small counts.

    Values of reference and candidate, joint, ulp, significands of reference and candidate.
    """
    tops, joint, marks = borrowed(tops), borrowed(joint), borrowed(marks)
    bins, tally, counts = borrowed(bins), borrowed(tally), borrowed(counts)
    planes = borrowed(planes)
    # What was counted for both sides by the reference's keys stands in the candidate's table too.
    low = min(counts[at.SEEN_A], counts[at.SEEN_B])
    high = max(counts[at.SEEN_A + 1], counts[at.SEEN_B + 1])
    counts[at.SEEN_B], counts[at.SEEN_B + 1] = low, high
    lanes = 4 if counts[at.SPREAD] else 1
    _gather_values(tops, lanes, low, high, form)
    joint[0, form[at.COLUMN]] -= np.uint32(counts[at.HOLES])
    n = _values_and_joint(tops, joint, (lanes, lanes), form, counts, bins, tally, ends)
    counts[at.EQUAL] += _column_zero(bins, tally, ends[1], n)
    n = _ulps(planes[2], counts[at.SINCE], counts[at.ULP_HUGE], bins, tally, n)
    ends[3] = n
    for side in range(2):
        zero, padded = ends[6 + 2 * side], counts[at.PADDED_A + side]
        n = _significands(planes[side], marks[side], zero, padded, bins, tally, n)
        ends[4 + side] = n
    counts[at.HOLES : at.SPREAD + 1] = 0


@inlined
def _small_table(table: Any, bins: Ints, tally: Ints, n: int) -> int:
    for k in range(table.shape[1]):
        found = take(table, 2, k)
        if found:
            bins[n], tally[n] = k, found
            n += 1
    return n


@kernel
def collect_wide(
    tops: Any,
    joint: Any,
    bits: Any,
    ulps: Any,
    form: Ints,
    counts: Ints,
    bins: Ints,
    tally: Ints,
    ends: Ints,
) -> None:
    """As `collect_narrow`, with tables of significand bits and ulp bins."""
    tops, joint = borrowed(tops), borrowed(joint)
    bins, tally, counts = borrowed(bins), borrowed(tally), borrowed(counts)
    n = _values_and_joint(tops, joint, (2, 1), form, counts, bins, tally, ends)
    n = _small_table(ulps, bins, tally, n)
    ends[3] = n
    for side in range(2):
        n = _small_table(bits[side], bins, tally, n)
        ends[4 + side] = n
