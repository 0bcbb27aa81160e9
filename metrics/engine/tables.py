"""Bins out of dense tables, ascending; the tables are left empty.

A table is (lanes, bins): its first `lanes` rows were counted in, their sum is what a bin holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine import layout as at
from metrics.engine.jit import inlined
from metrics.engine.layout import JOINT_CODE
from metrics.engine.loading import Ints


@inlined
def take(table: Any, lanes: int, index: int) -> int:
    held = np.uint32(0)
    for i in range(lanes):
        held = np.uint32(held | table[i, index])
    if not held:
        return 0
    found = np.uint32(0)  # a table may hold what another must be lessened by
    for i in range(lanes):
        found = np.uint32(found + table[i, index])
        table[i, index] = np.uint32(0)
    return np.int64(found)


@inlined
def is_held(table: Any, lanes: int, start: int) -> bool:
    """Whether any of sixteen bins was hit."""
    held = np.uint32(0)
    for lane in range(lanes):
        row = table[lane, start : start + 16]
        for i in range(16):
            held = np.uint32(held | row[i])
    return held != 0


@inlined
def _taken_down(
    table: Any, lanes: int, start: int, code: int, bins: Ints, tally: Ints, n: int
) -> int:
    """Sixteen bins from the last to the first; the first has the negative of `code`."""
    if is_held(table, lanes, start):
        for i in range(15, -1, -1):
            found = take(table, lanes, start + i)
            if found:
                bins[n], tally[n] = -(code + i), found
                n += 1
    return n


@inlined
def _taken_up(
    table: Any, lanes: int, start: int, code: int, bins: Ints, tally: Ints, n: int
) -> int:
    """Sixteen bins from the first, which has this code, to the last."""
    if is_held(table, lanes, start):
        for i in range(16):
            found = take(table, lanes, start + i)
            if found:
                bins[n], tally[n] = code + i, found
                n += 1
    return n


@inlined
def values(
    table: Any, lanes: int, form: Ints, low: int, high: int, bins: Ints, tally: Ints, n: int
) -> int:
    """Bins of one side, ascending: from the most negative to the most positive."""
    half, first, octaves, tiny = form[at.HALF], form[at.FIRST], form[at.OCTAVES], form[at.TINY]
    subnormal = low == 0
    for e in range(high, max(low, 1) - 1, -1):
        n = _taken_down(table, lanes, half + 16 * e, first + 16 * e, bins, tally, n)
    for e in range(octaves - 1 if subnormal else -1, -1, -1):
        n = _taken_down(table, lanes, 2 * half + (octaves + e) * 16, tiny + 16 * e, bins, tally, n)
    found = take(table, lanes, 0) + take(table, lanes, half)
    if found:
        bins[n], tally[n] = 0, found
        n += 1
    for e in range(octaves if subnormal else 0):
        n = _taken_up(table, lanes, 2 * half + 16 * e, tiny + 16 * e, bins, tally, n)
    for e in range(max(low, 1), high + 1):
        n = _taken_up(table, lanes, 16 * e, first + 16 * e, bins, tally, n)
    return n


@inlined
def _row(
    joint: Any, lanes: int, start: int, code: int, last: int, offset: int,
    bins: Ints, tally: Ints, n: int,
) -> int:  # fmt: skip
    found = take(joint, lanes, start)
    if found:
        bins[n], tally[n] = code * JOINT_CODE, found
        n += 1
    for c in range(0, last + 1, 16):  # the first is empty by now
        n = _taken_up(joint, lanes, start + c, code * JOINT_CODE + c + offset, bins, tally, n)
    return n


@inlined
def joint_bins(
    joint: Any, lanes: int, form: Ints, counts: Ints, bins: Ints, tally: Ints, n: int
) -> int:
    """Rows by exponent, those of subnormals as `form` says; ascending."""
    width, offset, octaves = form[at.WIDTH], form[at.CODE], form[at.OCTAVES]
    start, tiny, normal = form[at.COLUMN], form[at.TINY_ROW], form[at.NORMAL_ROW]
    last = counts[at.SEEN_E + 1]
    n = _row(joint, lanes, start, 0, last, offset, bins, tally, n)
    low, high = counts[at.SEEN_A], counts[at.SEEN_A + 1]
    if low == 0:
        for r in range(1, octaves + 1):
            row = start + (r + tiny) * width
            n = _row(joint, lanes, row, r + offset, last, offset, bins, tally, n)
    for r in range(max(low, 1), high + 1):
        code = r + octaves + offset
        row = start + (r + normal) * width
        n = _row(joint, lanes, row, code, last, offset, bins, tally, n)
    return n
