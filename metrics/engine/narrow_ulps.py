"""Ulp errors in formats coarser than float32: one kernel for each, for shifts must be constants.

With a shift that is known only at run time the compiler falls back to 64-bit lanes, five times
slower.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from metrics.engine.jit import inlined
from metrics.engine.loading import Floats32
from metrics.engine.narrow import MAGNITUDE, ONE, ZERO, Words, ulps_fine

Kernel = Callable[[Floats32, Floats32, int, Words], int]

_MAGIC = np.float32(8388608.0)  # from 2^23 on float32 holds integers only: adding it rounds
_NO_VALUE = np.float32(0)


def _aligned(precision: int) -> Kernel:
    """For a format with the exponents of float32: round to even, in ordered integers."""
    drop = np.uint32(24 - precision)
    half = np.uint32((1 << (23 - precision)) - 1)

    @inlined
    def ulps(a: Floats32, b: Floats32, count: int, out: Words) -> int:
        x, y = a.view(np.uint32), b.view(np.uint32)
        top = ZERO
        for i in range(count):
            p, q = np.uint32(x[i] & MAGNITUDE), np.uint32(y[i] & MAGNITUDE)
            p = np.uint32(np.uint32(p + half + np.uint32(np.uint32(p >> drop) & ONE)) >> drop)
            q = np.uint32(np.uint32(q + half + np.uint32(np.uint32(q >> drop) & ONE)) >> drop)
            same = np.uint32(p - q if p > q else q - p)
            apart = np.uint32(p + q)
            flipped = np.uint32(np.uint32(x[i] ^ y[i]) >> np.uint32(31))
            distance = apart if flipped else same
            out[i] = distance
            top = distance if distance > top else top
        return top

    return ulps


def _shifted(precision: int, min_exponent: int) -> Kernel:
    """For a format whose subnormals begin above those of float32."""
    drop = np.uint32(24 - precision)
    half = np.uint32((1 << (23 - precision)) - 1)
    first = np.uint32((min_exponent + 126) << (precision - 1))
    normal = np.uint32((min_exponent + 127) << 23)
    scale = np.float32(2.0 ** (precision - 1 - min_exponent))

    @inlined
    def ulps(a: Floats32, b: Floats32, count: int, out: Words) -> int:
        x, y = a.view(np.uint32), b.view(np.uint32)
        top = ZERO
        for i in range(count):
            p, q = np.uint32(x[i] & MAGNITUDE), np.uint32(y[i] & MAGNITUDE)
            u = np.float32(np.float32(abs(a[i]) if p < normal else _NO_VALUE) * scale)
            v = np.float32(np.float32(abs(b[i]) if q < normal else _NO_VALUE) * scale)
            r = np.uint32(np.uint32(p + half + np.uint32(np.uint32(p >> drop) & ONE)) >> drop)
            s = np.uint32(np.uint32(q + half + np.uint32(np.uint32(q >> drop) & ONE)) >> drop)
            u, v = np.float32(u + _MAGIC), np.float32(v + _MAGIC)
            u, v = np.float32(u - _MAGIC), np.float32(v - _MAGIC)
            p = np.uint32(np.int32(u)) if p < normal else np.uint32(r - first)
            q = np.uint32(np.int32(v)) if q < normal else np.uint32(s - first)
            same = np.uint32(p - q if p > q else q - p)
            apart = np.uint32(p + q)
            flipped = np.uint32(np.uint32(x[i] ^ y[i]) >> np.uint32(31))
            distance = apart if flipped else same
            out[i] = distance
            top = distance if distance > top else top
        return top

    return ulps


_tf32, _bfloat16 = _aligned(11), _aligned(8)
_float16, _e4m3, _e4m3_fnuz = _shifted(11, -14), _shifted(4, -6), _shifted(4, -7)
_e5m2, _e5m2_fnuz, _e2m1 = _shifted(3, -14), _shifted(3, -15), _shifted(2, 0)

# Precision and exponent of the smallest normal of each format below.
KNOWN = ((24, -126), (11, -126), (8, -126), (11, -14), (4, -6), (4, -7), (3, -14), (3, -15), (2, 0))


@inlined
def ulps(form: int, a: Floats32, b: Floats32, count: int, out: Words) -> int:
    """Fill distances in units of the format at place `form` of KNOWN; the largest."""
    if form == 0:
        return ulps_fine(a, b, count, out)
    if form == 1:
        return _tf32(a, b, count, out)
    if form == 2:
        return _bfloat16(a, b, count, out)
    if form == 3:
        return _float16(a, b, count, out)
    if form == 4:
        return _e4m3(a, b, count, out)
    if form == 5:
        return _e4m3_fnuz(a, b, count, out)
    if form == 6:
        return _e5m2(a, b, count, out)
    if form == 7:
        return _e5m2_fnuz(a, b, count, out)
    return _e2m1(a, b, count, out)
