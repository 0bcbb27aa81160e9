"""Stages of the pass over pairs that fit float32: float32, float16, bfloat16, 8-bit floats.

Each stage is a plain loop over one block; what the compiler does not turn into vector instructions
by itself stands in `narrow_lanes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.engine.jit import bits_of_float, inlined, ones, trailing_zeros
from metrics.engine.loading import Floats32
from metrics.engine.narrow_lanes import JOINT_FIRST, JOINT_WIDTH, VALUE_SHIFT

Words = NDArray[np.uint32]

MAGNITUDE = np.uint32(0x7FFFFFFF)
NORMAL, INFINITE = np.uint32(0x00800000), np.uint32(0x7F800000)
ZERO, ONE = np.uint32(0), np.uint32(1)
TOP_SHIFT, TOPS, OCTAVES = np.uint32(VALUE_SHIFT), 8192, 23
TINY_ROWS = 255  # rows of the joint table before those of subnormals


@inlined
def scan(values: Floats32, count: int) -> tuple[float, float, int, int]:
    """Smallest and largest of finite values; bits of the smallest nonzero and largest magnitude."""
    words = values.view(np.uint32)
    least, top = MAGNITUDE, ZERO
    low, high = np.float32(np.inf), np.float32(-np.inf)
    for i in range(count):
        magnitude = np.uint32(words[i] & MAGNITUDE)
        below = np.uint32(magnitude - ONE)  # zero becomes the largest
        least = below if below < least else least
        top = magnitude if magnitude > top else top
        low = values[i] if values[i] < low else low
        high = values[i] if values[i] > high else high
    return np.float64(low), np.float64(high), np.int64(least) + 1, np.int64(top)


@inlined
def tally_values(values: Floats32, count: int, tables: Any, spread: bool) -> None:
    """Count sign, exponent and top four significand bits; normal values and zeros.

    In four tables by turns, if spread: a run of one key does not wait for itself.
    """
    words = values.view(np.uint32)
    t, u, v, w = tables[0], tables[1], tables[2], tables[3]
    whole = count - count % 4 if spread else 0
    for i in range(0, whole, 4):
        t[words[i] >> TOP_SHIFT] += ONE
        u[words[i + 1] >> TOP_SHIFT] += ONE
        v[words[i + 2] >> TOP_SHIFT] += ONE
        w[words[i + 3] >> TOP_SHIFT] += ONE
    for i in range(whole, count):
        t[words[i] >> TOP_SHIFT] += ONE


@inlined
def tally(keys: Words, count: int, tables: Any, spread: bool) -> None:
    """Count keys, in four tables by turns if spread."""
    t, u, v, w = tables[0], tables[1], tables[2], tables[3]
    whole = count - count % 4 if spread else 0
    for i in range(0, whole, 4):
        t[keys[i]] += ONE
        u[keys[i + 1]] += ONE
        v[keys[i + 2]] += ONE
        w[keys[i + 3]] += ONE
    for i in range(whole, count):
        t[keys[i]] += ONE


@inlined
def apart(masks: NDArray[np.uint64], count: int) -> int:
    """Set bits of the masks of a block."""
    found = 0
    for k in range((count + 63) // 64):
        found += ones(masks[k])
    return found


@inlined
def move_values(
    a: Floats32, b: Floats32, masks: NDArray[np.uint64], count: int, table: Any
) -> None:
    """Where the keys of both sides differ, take that of the reference off and add the other."""
    x, y = a.view(np.uint32), b.view(np.uint32)
    for k in range((count + 63) // 64):
        left = masks[k]
        while left:
            i = 64 * k + trailing_zeros(left)
            left &= left - np.uint64(1)
            table[x[i] >> TOP_SHIFT] -= ONE
            table[y[i] >> TOP_SHIFT] += ONE


@inlined
def tally_subnormals(values: Floats32, count: int, table: Words, marks: Words) -> None:
    """As `tally_values` and `count_significands`, for a block that holds subnormals."""
    words = values.view(np.uint32)
    for i in range(count):
        magnitude = np.uint32(words[i] & MAGNITUDE)
        if magnitude == ZERO or magnitude >= NORMAL:
            table[words[i] >> TOP_SHIFT] += ONE
            mark = np.int64(trailing_zeros(np.uint64(np.uint32(magnitude | NORMAL))))
            marks[mark] += ONE
            continue
        octave = 0
        while (magnitude >> np.uint32(octave + 1)) != 0:
            octave += 1
        step = ((np.int64(magnitude) << 4) >> octave) & 15
        sign = np.int64(words[i] >> np.uint32(31))
        table[TOPS + (sign * OCTAVES + octave) * 16 + step] += ONE
        marks[23 - octave + np.int64(trailing_zeros(np.uint64(magnitude)))] += ONE


@inlined
def joint_keys_with_subnormals(a: Floats32, b: Floats32, count: int, keys: Words) -> None:
    """Rows by the exponent of the reference, columns by that of the error."""
    words = a.view(np.uint32)
    for i in range(count):
        magnitude = np.uint32(words[i] & MAGNITUDE)
        row = np.int64(magnitude >> np.uint32(23))
        if ZERO < magnitude < NORMAL:
            row = np.int64(TINY_ROWS)
            while (magnitude >> np.uint32(row - TINY_ROWS)) != 0:
                row += np.int64(1)
        error = np.float64(b[i]) - np.float64(a[i])
        own = (np.int64(bits_of_float(error)) >> 52) & 0x7FF
        keys[i] = np.uint32(row * JOINT_WIDTH + (own if own else JOINT_FIRST))
