"""Stages of the pass over pairs that fit float32: float32, float16, bfloat16, 8-bit floats.

Each stage is a plain loop over one block; what the compiler does not turn into vector instructions
by itself stands in `narrow_lanes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.engine.jit import bits_of_float, inlined, summing, trailing_zeros
from metrics.engine.loading import Floats, Floats32
from metrics.engine.narrow_lanes import JOINT_FIRST, JOINT_WIDTH, VALUE_SHIFT

Words = NDArray[np.uint32]

MAGNITUDE = np.uint32(0x7FFFFFFF)
NORMAL = np.uint32(0x00800000)
ZERO, ONE = np.uint32(0), np.uint32(1)
TOP_SHIFT, TOPS, OCTAVES = np.uint32(VALUE_SHIFT), 8192, 23
TINY_ROWS = 255  # rows of the joint table before those of subnormals


@summing
def scan(values: Floats32, count: int) -> tuple[int, int, int]:
    """Keys of the bounds, bits of the smallest nonzero magnitude less one."""
    words = values.view(np.uint32)
    low = np.uint32(0xFFFFFFFF)
    least, most = np.int32(0x7FFFFFFF), np.int32(-0x80000000)
    for i in range(count):
        below = np.uint32(np.uint32(words[i] & MAGNITUDE) - ONE)  # zero becomes the largest
        key = np.int32(
            np.int32(words[i]) ^ np.int32(np.uint32(np.int32(words[i]) >> 31) & MAGNITUDE)
        )
        low = below if below < low else low
        least = key if key < least else least
        most = key if key > most else most
    return least, most, low


@inlined
def value_of_key(key: int, cell: Floats32) -> float:
    """The float32 whose ordered bits `scan` found."""
    bits = np.int32(key)
    cell.view(np.int32)[0] = bits ^ np.int32(np.uint32(bits >> 31) & MAGNITUDE)
    return float(cell[0]) + 0.0


@inlined
def tally_values(values: Floats32, count: int, tables: Any) -> None:
    """Count sign, exponent and top four significand bits; normal values and zeros.

    Four tables by turns: a run of one key does not wait for itself.
    """
    words = values.view(np.uint32)
    t, u, v, w = tables[0], tables[1], tables[2], tables[3]
    whole = count - count % 4
    for i in range(0, whole, 4):
        t[words[i] >> TOP_SHIFT] += ONE
        u[words[i + 1] >> TOP_SHIFT] += ONE
        v[words[i + 2] >> TOP_SHIFT] += ONE
        w[words[i + 3] >> TOP_SHIFT] += ONE
    for i in range(whole, count):
        t[words[i] >> TOP_SHIFT] += ONE


@inlined
def tally(keys: Words, count: int, tables: Any) -> None:
    """Count keys, in four tables by turns."""
    t, u, v, w = tables[0], tables[1], tables[2], tables[3]
    whole = count - count % 4
    for i in range(0, whole, 4):
        t[keys[i]] += ONE
        u[keys[i + 1]] += ONE
        v[keys[i + 2]] += ONE
        w[keys[i + 3]] += ONE
    for i in range(whole, count):
        t[keys[i]] += ONE


@inlined
def move_values(a: Floats32, b: Floats32, masks: NDArray[np.uint16], count: int, table: Any) -> None:
    """Where the keys of both sides differ, take that of the reference off and add the other."""
    x, y, words = a.view(np.uint32), b.view(np.uint32), masks.view(np.uint64)
    for k in range((count + 63) // 64):
        left = words[k]
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
            row = TINY_ROWS
            while (magnitude >> np.uint32(row - TINY_ROWS)) != 0:
                row += 1
        error = np.float64(b[i]) - np.float64(a[i])
        own = (np.int64(bits_of_float(error)) >> 52) & 0x7FF
        keys[i] = np.uint32(row * JOINT_WIDTH + (own - JOINT_FIRST if own else 0))
