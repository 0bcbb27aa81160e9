"""From dense tables to sparse histograms; the tables are left empty for the next pair."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine import layout as at
from metrics.engine.jit import borrowed, inlined, kernel
from metrics.engine.layout import JOINT_CODE
from metrics.engine.loading import Ints
from metrics.engine.planes import read_marks


@inlined
def _take(table: Any, index: int) -> int:
    held = table[0, index]
    for i in range(1, table.shape[0]):
        held |= table[i, index]
    if not held:
        return 0
    found = np.uint32(0)  # a table may hold what another must be lessened by
    for i in range(table.shape[0]):
        found = np.uint32(found + table[i, index])
        table[i, index] = np.uint32(0)
    return np.int64(found)


@inlined
def _values(table: Any, form: Ints, low: int, high: int, bins: Ints, tally: Ints, n: int) -> int:
    """Bins of one side, ascending: from the most negative to the most positive."""
    half, first, octaves, tiny = form[at.HALF], form[at.FIRST], form[at.OCTAVES], form[at.TINY]
    start = max(low, 1) * 16
    for t in range(high * 16 + 15, start - 1, -1):
        found = _take(table, half + t)
        if found:
            bins[n], tally[n] = -(t + first), found
            n += 1
    subnormal = low == 0
    if subnormal:
        for t in range(octaves * 16 - 1, -1, -1):
            found = _take(table, 2 * half + octaves * 16 + t)
            if found:
                bins[n], tally[n] = -(t + tiny), found
                n += 1
    found = _take(table, 0) + _take(table, half)
    if found:
        bins[n], tally[n] = 0, found
        n += 1
    if subnormal:
        for t in range(octaves * 16):
            found = _take(table, 2 * half + t)
            if found:
                bins[n], tally[n] = t + tiny, found
                n += 1
    for t in range(start, high * 16 + 16):
        found = _take(table, t)
        if found:
            bins[n], tally[n] = t + first, found
            n += 1
    return n


@inlined
def _row(
    joint: Any, start: int, code: int, last: int, offset: int, bins: Ints, tally: Ints, n: int
) -> int:
    for c in range(last + 1):
        found = _take(joint, start + c)
        if found:
            bins[n], tally[n] = code * JOINT_CODE + (c + offset if c else 0), found
            n += 1
    return n


@inlined
def _joint(joint: Any, form: Ints, counts: Ints, bins: Ints, tally: Ints, n: int) -> int:
    """Rows by exponent, those of subnormals as `form` says; ascending."""
    width, offset, octaves = form[at.WIDTH], form[at.CODE], form[at.OCTAVES]
    tiny, normal = form[at.TINY_ROW], form[at.NORMAL_ROW]
    last = counts[at.SEEN_E + 1]
    n = _row(joint, 0, 0, last, offset, bins, tally, n)
    low, high = counts[at.SEEN_A], counts[at.SEEN_A + 1]
    if low == 0:
        for r in range(1, octaves + 1):
            n = _row(joint, (r + tiny) * width, r + offset, last, offset, bins, tally, n)
    for r in range(max(low, 1), high + 1):
        code = r + octaves + offset
        n = _row(joint, (r + normal) * width, code, last, offset, bins, tally, n)
    return n


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
def _gather_values(tops: Any, low: int, high: int, form: Ints) -> None:
    """Add what was counted for both sides at once to each side's own table, and clear it."""
    half = form[at.HALF]
    own, shared = tops[:2], tops[2]
    for sign in range(2):
        for key in range(sign * half + low * 16, sign * half + high * 16 + 16):
            found = shared[0, key] | shared[1, key] | shared[2, key] | shared[3, key]
            if found:
                for lane in range(4):
                    own[0, lane, key] += shared[lane, key]
                    own[1, lane, key] += shared[lane, key]
                    shared[lane, key] = np.uint32(0)


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
    tops: Any, joint: Any, form: Ints, counts: Ints, bins: Ints, tally: Ints, ends: Ints
) -> int:
    """The first three histograms, with the counts of zeros and subnormals; where they end."""
    n = 0
    for side in range(2):
        seen = at.SEEN_A + 2 * side
        first = n
        n = _values(tops[side], form, counts[seen], counts[seen + 1], bins, tally, n)
        ends[side] = n
        small = _small(bins, tally, first, n, form[at.NORMAL_A + side])
        ends[6 + 2 * side], ends[7 + 2 * side] = small
    n = _joint(joint, form, counts, bins, tally, n)
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
    low, high = min(counts[at.SEEN_A], counts[at.SEEN_B]), max(
        counts[at.SEEN_A + 1], counts[at.SEEN_B + 1]
    )
    _gather_values(tops, min(low, high), high, form)
    joint[0, 0] -= np.uint32(counts[at.HOLES])
    n = _values_and_joint(tops, joint, form, counts, bins, tally, ends)
    counts[at.EQUAL] += _column_zero(bins, tally, ends[1], n)
    n = _ulps(planes[2], counts[at.SINCE], counts[at.ULP_HUGE], bins, tally, n)
    ends[3] = n
    for side in range(2):
        zero, padded = ends[6 + 2 * side], counts[at.PADDED_A + side]
        n = _significands(planes[side], marks[side], zero, padded, bins, tally, n)
        ends[4 + side] = n
    counts[at.HOLES : at.SINCE + 1] = 0


@inlined
def _small_table(table: Any, bins: Ints, tally: Ints, n: int) -> int:
    for k in range(table.shape[1]):
        found = _take(table, k)
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
    n = _values_and_joint(tops, joint, form, counts, bins, tally, ends)
    n = _small_table(ulps, bins, tally, n)
    ends[3] = n
    for side in range(2):
        n = _small_table(bits[side], bins, tally, n)
        ends[4 + side] = n
