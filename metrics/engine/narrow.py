"""Stages of the pass over pairs that fit float32: float32, float16, bfloat16, 8-bit floats.

Each stage is a plain loop over one block, so that the compiler turns it into vector instructions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from metrics.engine.jit import inlined, leading_zeros, summing
from metrics.engine.loading import Floats, Floats32

Words = NDArray[np.uint32]

MAGNITUDE = np.uint32(0x7FFFFFFF)
INFINITE = np.uint32(0x7F800000)
NORMAL = np.uint32(0x00800000)
ZERO, ONE = np.uint32(0), np.uint32(1)
TOP_SHIFT, TOPS, OCTAVES = np.uint32(19), 8192, 23  # sign, 8 exponent bits, 4 of the significand
# Of the joint table; row r is exponent r - 150, row 0 is zero. A power of two would put all rows
# into a few lines of the cache.
WIDTH = np.uint32(304)


@summing
def scan(values: Floats32, count: int) -> tuple[int, int, int, float]:
    """Keys of the bounds, bits of the smallest nonzero magnitude less one, a rough sum."""
    words = values.view(np.uint32)
    low = np.uint32(0xFFFFFFFF)
    least, most = np.int32(0x7FFFFFFF), np.int32(-0x80000000)
    total = np.float32(0)
    for i in range(count):
        below = np.uint32(np.uint32(words[i] & MAGNITUDE) - ONE)  # zero becomes the largest
        key = np.int32(
            np.int32(words[i]) ^ np.int32(np.uint32(np.int32(words[i]) >> 31) & MAGNITUDE)
        )
        low = below if below < low else low
        least = key if key < least else least
        most = key if key > most else most
        total += values[i]
    return least, most, low, total


@inlined
def value_of_key(key: int, cell: Floats32) -> float:
    """The float32 whose ordered bits `scan` found."""
    bits = np.int32(key)
    cell.view(np.int32)[0] = bits ^ np.int32(np.uint32(bits >> 31) & MAGNITUDE)
    return float(cell[0]) + 0.0


@inlined
def errors(a: Floats32, b: Floats32, count: int, atol: float, rtol: float, e: Floats) -> int:
    """Fill `e`; elements out of tolerance."""
    outside = np.int64(0)
    for i in range(count):
        reference = np.float64(a[i])
        e[i] = np.float64(b[i]) - reference
        outside += np.int64(abs(e[i]) > atol + rtol * abs(reference))
    return outside


@inlined
def largest_of(e: Floats, count: int) -> int:
    """Bits of the largest magnitude."""
    top = np.int64(0)
    words = e.view(np.int64)
    for i in range(count):
        magnitude = words[i] & np.int64(0x7FFFFFFFFFFFFFFF)
        top = magnitude if magnitude > top else top
    return top


@inlined
def agreement(a: Floats32, b: Floats32, count: int) -> tuple[int, int]:
    """Equal elements and sign flips."""
    x, y = a.view(np.uint32), b.view(np.uint32)
    equal, flips = np.int32(0), np.int32(0)
    for i in range(count):
        p, q = np.uint32(x[i] & MAGNITUDE), np.uint32(y[i] & MAGNITUDE)
        equal = np.int32(equal + np.int32(a[i] == b[i]))
        apart = np.uint32(np.uint32(x[i] ^ y[i]) >> np.uint32(31))
        flips = np.int32(flips + np.int32(apart & np.uint32(p != ZERO) & np.uint32(q != ZERO)))
    return equal, flips


@summing
def centred(
    a: Floats32, b: Floats32, e: Floats, count: int, at_a: float, at_b: float, at_e: float
) -> tuple[float, ...]:
    """Sums of deviations from near the means, of their products, and of magnitudes."""
    da = db = de = aa = bb = ee = ab = ae = abs_a = abs_e = 0.0
    for i in range(count):
        x, z = np.float64(a[i]), e[i]
        p, q, r = x - at_a, np.float64(b[i]) - at_b, z - at_e
        da += p
        db += q
        de += r
        aa += p * p
        bb += q * q
        ee += r * r
        ab += p * q
        ae += p * r
        abs_a += abs(x)
        abs_e += abs(z)
    return da, db, de, aa, bb, ee, ab, ae, abs_a, abs_e


@inlined
def ulps_fine(a: Floats32, b: Floats32, count: int, out: Words) -> int:
    """Distances in units of float32 itself; the largest."""
    x, y = a.view(np.uint32), b.view(np.uint32)
    top = ZERO
    for i in range(count):
        p, q = np.uint32(x[i] & MAGNITUDE), np.uint32(y[i] & MAGNITUDE)
        same = np.uint32(p - q if p > q else q - p)
        apart = np.uint32(p + q)
        flipped = np.uint32(np.uint32(x[i] ^ y[i]) >> np.uint32(31))
        distance = apart if flipped else same
        out[i] = distance
        top = distance if distance > top else top
    return top


@inlined
def ulp_marks(ulps: Words, count: int, marks: Words) -> int:
    """One bit set for each distance from 2 on: bit k for bin k + 2; how many are 0."""
    zeros = np.int32(0)
    for i in range(count):
        below = np.uint32(ulps[i] - ONE)
        mark = np.uint32(np.uint32(0x80000000) >> np.uint32(leading_zeros(below) & np.uint32(31)))
        marks[i] = mark if ulps[i] > ONE else ZERO
        zeros = np.int32(zeros + np.int32(ulps[i] == ZERO))
    return zeros


@inlined
def bit_marks(values: Floats32, count: int, marks: Words) -> None:
    """The lowest significand bit that is set: bit k for 24 - k significand bits; none for zero."""
    words = values.view(np.uint32)
    for i in range(count):
        bits = np.uint32(words[i] | NORMAL)
        mark = np.uint32(bits & np.uint32(ZERO - bits)) & np.uint32(0xFFFFFF)
        marks[i] = np.uint32(mark) if np.uint32(words[i] & MAGNITUDE) else ZERO


@inlined
def joint_keys(a: Floats32, e: Floats, count: int, keys: Words) -> None:
    """Rows by the exponent of the reference, columns by that of the error; normal values."""
    x, z = a.view(np.uint32), e.view(np.uint64)
    for i in range(count):
        exponent = np.uint32(np.uint32(x[i] & MAGNITUDE) >> np.uint32(23))
        row = np.uint32(exponent + np.uint32(23)) if exponent else ZERO
        own = np.uint32(np.uint64(z[i] >> np.uint64(52))) & np.uint32(0x7FF)
        own = np.uint32(own)
        column = np.uint32(own - np.uint32(873)) if own else ZERO
        keys[i] = np.uint32(np.uint32(row * WIDTH) + column)


@inlined
def tally_values(values: Floats32, count: int, even: Words, odd: Words) -> None:
    """Count sign, exponent and top four significand bits; normal values.

    Two tables by turns: a run of one key does not wait for itself.
    """
    words = values.view(np.uint32)
    for i in range(count // 2):
        even[words[2 * i] >> TOP_SHIFT] += ONE
        odd[words[2 * i + 1] >> TOP_SHIFT] += ONE
    if count & 1:
        even[words[count - 1] >> TOP_SHIFT] += ONE


@inlined
def tally(keys: Words, count: int, even: Words, odd: Words) -> None:
    """Count keys, in two tables by turns."""
    for i in range(count // 2):
        even[keys[2 * i]] += ONE
        odd[keys[2 * i + 1]] += ONE
    if count & 1:
        even[keys[count - 1]] += ONE
