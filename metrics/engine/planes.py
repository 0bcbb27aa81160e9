"""Counting one bit in each of many words: carry-save adders over columns of words.

Counter c of bit k is spread over planes: plane p holds, for each of 64 columns of words, the binary
digit p of how many words of the column have bit k. Sixteen words take fifteen full adders, two
instructions each, whatever the data; a table would wait for itself where few bins are hit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from metrics.engine.jit import inlined
from metrics.engine.layout import BLOCK

COLUMNS = BLOCK // 16
PLANES = 48

Words = NDArray[np.uint32]


@inlined
def _sum(a: int, b: int, c: int) -> int:
    return np.uint32(np.uint32(a ^ b) ^ c)


@inlined
def _carry(a: int, b: int, c: int) -> int:
    return np.uint32(np.uint32(a & b) | np.uint32(np.uint32(a ^ b) & c))


@inlined
def add_marks(marks: Words, planes: Words, carry: Words) -> None:
    """Count the bits of a whole block of words; `planes` is (PLANES, COLUMNS)."""
    p0, p1, p2, p3 = planes[0], planes[1], planes[2], planes[3]
    n = COLUMNS
    for j in range(COLUMNS):
        ones, twos, fours, eights = p0[j], p1[j], p2[j], p3[j]
        t0 = _carry(ones, marks[j], marks[j + n])
        ones = _sum(ones, marks[j], marks[j + n])
        t1 = _carry(ones, marks[j + 2 * n], marks[j + 3 * n])
        ones = _sum(ones, marks[j + 2 * n], marks[j + 3 * n])
        f0 = _carry(twos, t0, t1)
        twos = _sum(twos, t0, t1)
        t0 = _carry(ones, marks[j + 4 * n], marks[j + 5 * n])
        ones = _sum(ones, marks[j + 4 * n], marks[j + 5 * n])
        t1 = _carry(ones, marks[j + 6 * n], marks[j + 7 * n])
        ones = _sum(ones, marks[j + 6 * n], marks[j + 7 * n])
        f1 = _carry(twos, t0, t1)
        twos = _sum(twos, t0, t1)
        e0 = _carry(fours, f0, f1)
        fours = _sum(fours, f0, f1)
        t0 = _carry(ones, marks[j + 8 * n], marks[j + 9 * n])
        ones = _sum(ones, marks[j + 8 * n], marks[j + 9 * n])
        t1 = _carry(ones, marks[j + 10 * n], marks[j + 11 * n])
        ones = _sum(ones, marks[j + 10 * n], marks[j + 11 * n])
        f0 = _carry(twos, t0, t1)
        twos = _sum(twos, t0, t1)
        t0 = _carry(ones, marks[j + 12 * n], marks[j + 13 * n])
        ones = _sum(ones, marks[j + 12 * n], marks[j + 13 * n])
        t1 = _carry(ones, marks[j + 14 * n], marks[j + 15 * n])
        ones = _sum(ones, marks[j + 14 * n], marks[j + 15 * n])
        f1 = _carry(twos, t0, t1)
        twos = _sum(twos, t0, t1)
        e1 = _carry(fours, f0, f1)
        fours = _sum(fours, f0, f1)
        p0[j], p1[j], p2[j], p3[j] = ones, twos, fours, _sum(eights, e0, e1)
        carry[j] = _carry(eights, e0, e1)
    _ripple(carry, planes)


@inlined
def _ripple(carry: Words, planes: Words) -> None:
    for p in range(4, PLANES):
        plane = planes[p]
        left = np.uint32(0)
        for j in range(COLUMNS):
            both = np.uint32(plane[j] & carry[j])
            plane[j] = np.uint32(plane[j] ^ carry[j])
            carry[j] = both
            left = np.uint32(left | both)
        if left == 0:
            return


@inlined
def read_marks(planes: Words, totals: NDArray[np.int64]) -> None:
    """Totals of all 32 bits; the planes are cleared."""
    totals[:] = 0
    for p in range(PLANES):
        plane = planes[p]
        held = np.uint32(0)
        for j in range(COLUMNS):
            held = np.uint32(held | plane[j])
        if held == 0:
            continue
        for k in range(32):
            bit = np.uint32(np.uint32(1) << np.uint32(k))
            if held & bit:
                totals[k] += np.int64(_holders(plane, bit)) << p
        plane[:] = 0


@inlined
def _holders(plane: Words, bit: int) -> int:
    found = np.int32(0)
    for j in range(COLUMNS):
        found = np.int32(found + np.int32(np.uint32(plane[j] & bit) != np.uint32(0)))
    return found
