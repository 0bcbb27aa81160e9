"""Stages of the pass in float64: float64, integers, booleans, and whatever meets them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.engine.jit import bits_of_float, float_of_bits, inlined, leading_zeros, summing
from metrics.engine.loading import U64, Floats, Ints

Words64 = NDArray[np.uint64]

MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
INFINITE = np.int64(0x7FF0000000000000)
NORMAL = np.int64(0x0010000000000000)
HALF_RANGE = 2.0**1023  # from here on the difference of two float64 may overflow
SAFE = 400  # squares of values within 2^±400 sum up and stay normal for any length
ONE, ZERO = np.uint32(1), np.uint64(0)


@inlined
def scan(values: Floats, count: int) -> tuple[float, float, int, int]:
    """Smallest and largest value; bits of the largest and smallest nonzero magnitude."""
    words = values.view(np.int64)
    low, high = np.inf, -np.inf
    top, least = np.int64(0), MAGNITUDE
    for i in range(count):
        magnitude = words[i] & MAGNITUDE
        top = max(top, magnitude)
        least = magnitude if 0 < magnitude < least else least
        low, high = min(low, values[i]), max(high, values[i])
    return low + 0.0, high + 0.0, top, least


@inlined
def exponent_of(top: int) -> int:
    """How many powers of two to take off values up to this one before squaring; mostly none."""
    if top == 0:
        return 0
    exponent = math.frexp(float_of_bits(np.uint64(top)))[1]
    return 0 if abs(exponent) <= SAFE else exponent


@inlined
def scaled(values: Floats, count: int, exponent: int, out: Floats) -> Floats:
    """Values times 2^-exponent: themselves, or in `out`."""
    if exponent == 0:
        return values
    for i in range(count):
        out[i] = math.ldexp(values[i], -exponent)
    return out


@inlined
def distances(a: Ints, b: Ints, kind_a: int, kind_b: int, count: int, out: Words64) -> None:
    """|b - a| of integers, exact, capped at 2^64 - 1."""
    big_a, big_b = kind_a == U64, kind_b == U64
    for i in range(count):
        minus_a, minus_b = not big_a and a[i] < 0, not big_b and b[i] < 0
        p, q = np.uint64(a[i]), np.uint64(b[i])
        if minus_a == minus_b:
            out[i] = p - q if p > q else q - p
            continue
        positive, negative = (q, p) if minus_a else (p, q)
        total = positive + np.uint64(ZERO - negative)
        out[i] = total if total >= positive else np.uint64(0xFFFFFFFFFFFFFFFF)


@inlined
def is_less(a: int, b: int, big_a: bool, big_b: bool) -> bool:
    """A < b for 64 bits that are signed unless big."""
    minus_a, minus_b = not big_a and a < 0, not big_b and b < 0
    if minus_a != minus_b:
        return minus_a
    return np.uint64(a) < np.uint64(b)


@inlined
def ordinal(value: float, precision: int, min_exponent: int) -> int:
    """Place of a value among those of a format, as `metrics.ulps.ordinals`."""
    magnitude = np.int64(bits_of_float(value)) & MAGNITUDE
    if precision < 53:
        drop = np.int64(53 - precision)
        if magnitude < (np.int64(min_exponent) + 1023) << 52:
            step = min_exponent - precision + 1
            place = np.int64(np.rint(math.ldexp(abs(value), -step)))
        else:
            half = (np.int64(1) << (drop - 1)) - 1
            rounded = (magnitude + half + ((magnitude >> drop) & 1)) >> drop
            place = rounded - (np.int64(min_exponent + 1022) << (precision - 1))
    else:
        place = magnitude
    return -place if value < 0 else place


@inlined
def ulps_of_floats(
    a: Floats, b: Floats, count: int, precision: int, min_exponent: int, out: Words64
) -> None:
    """Distances in units of a float format."""
    for i in range(count):
        p, q = ordinal(a[i], precision, min_exponent), ordinal(b[i], precision, min_exponent)
        out[i] = np.uint64(p) - np.uint64(q) if p > q else np.uint64(q) - np.uint64(p)


@inlined
def ulps_of_numbers(a: Floats, b: Floats, count: int, out: Words64) -> None:
    """Distances in units of 1 of numbers that stand for integers."""
    for i in range(count):
        out[i] = np.uint64(min(np.rint(abs(b[i] - a[i])), 2.0**63))


@inlined
def mean(values: Floats, count: int) -> float:
    """Near the mean; exact for a constant."""
    total = 0.0
    low, high = values[0], values[0]
    for i in range(count):
        total += values[i]
        low, high = min(low, values[i]), max(high, values[i])
    return low if low == high else total / count


@summing
def centred(
    a: Floats, b: Floats, e: Floats, count: int, at_a: float, at_b: float, at_e: float
) -> tuple[float, ...]:
    """As `narrow.centred`."""
    da = db = de = aa = bb = ee = ab = ae = dot_b = dot_e = abs_a = abs_e = 0.0
    for i in range(count):
        p, q, r = a[i] - at_a, b[i] - at_b, e[i] - at_e
        da += p
        db += q
        de += r
        aa += p * p
        bb += q * q
        ee += r * r
        ab += p * q
        ae += p * r
        dot_b += a[i] * b[i]
        dot_e += a[i] * e[i]
        abs_a += abs(a[i])
        abs_e += abs(e[i])
    return da, db, de, aa, bb, ee, ab, ae, dot_b, dot_e, abs_a, abs_e


@inlined
def exponent_code(bits: int) -> int:
    """Code of floor log2 of a magnitude, 0 for zero."""
    if bits >= NORMAL:
        return (bits >> 52) + 52
    return 64 - np.int64(leading_zeros(np.uint64(bits)))


@inlined
def tally_values(values: Floats, count: int, tops: Any, bits: Any) -> None:
    """Count each value by its top bits, and the significand bits it needs."""
    words = values.view(np.int64)
    for i in range(count):
        magnitude = words[i] & MAGNITUDE
        sign = np.int64(words[i] < 0)
        lane = i & 1
        if magnitude == 0:
            tops[lane, sign * 32768] += ONE
            bits[lane, 0] += ONE
            continue
        significand, length = magnitude, np.int64(53)
        if magnitude >= NORMAL:
            tops[lane, sign * 32768 + (magnitude >> 48)] += ONE
            significand = (magnitude & (NORMAL - 1)) | NORMAL
        else:
            length = 64 - np.int64(leading_zeros(np.uint64(magnitude)))
            step = (magnitude << 4 >> (length - 1)) & 15
            tops[lane, 65536 + (sign * 52 + length - 1) * 16 + step] += ONE
        lowest = np.uint64(significand & -significand)
        bits[lane, length - 63 + np.int64(leading_zeros(lowest))] += ONE


@inlined
def tally_pair(a: Floats, m: Floats, ulps: Words64, count: int, joint: Any, bins: Any) -> None:
    """Count each element by both exponents, and its ulp bin."""
    x, z = a.view(np.int64), m.view(np.int64)
    for i in range(count):
        row, column = exponent_code(x[i] & MAGNITUDE), exponent_code(z[i] & MAGNITUDE)
        joint[i % joint.shape[0], row * 2112 + column] += ONE
        d = ulps[i]
        bin_ = np.int64(0)
        if d:
            bin_ = np.int64(65) - np.int64(leading_zeros(np.uint64(d - np.uint64(1))))
        bins[i & 1, bin_] += ONE
