"""Ulp errors: how many representable values of a format lie between reference and candidate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.stats import FloatArray, IntArray
from metrics.decoding import ordinal_distance
from metrics.formats import Format

_DOUBLE_PRECISION = 53
_BIAS = 1023
_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)


def ordinals(values: FloatArray, number_format: Format) -> IntArray:
    """Position of each finite value among the format's values, after rounding to nearest even.

    Neighbours differ by 1, -0 and +0 are both 0. The grid is continued beyond the largest finite
    value, so that an overflow counts as the distance it spans and not as an infinity.
    """
    drop = _DOUBLE_PRECISION - number_format.precision
    magnitude = values.view(np.int64) & _MAGNITUDE
    if drop:
        even = (magnitude >> drop) & 1
        rounded = (magnitude + (even + ((1 << (drop - 1)) - 1))) >> drop
    else:
        rounded = magnitude
    first = (number_format.min_exponent + _BIAS - 1) << (number_format.precision - 1)
    position = rounded - first
    normal = np.float64(number_format.smallest_normal).view(np.int64)
    small = magnitude < normal
    if drop and small.any():
        step = number_format.min_exponent - number_format.precision + 1
        fixed = np.rint(np.ldexp(np.abs(values[small]), -step))
        position[small] = fixed.astype(np.int64)
    return np.where(values < 0, -position, position)


def ulp_distance(
    reference: FloatArray, candidate: FloatArray, number_format: Format
) -> NDArray[np.uint64]:
    """Ulp error of each pair of finite values; for integer formats the absolute difference."""
    if number_format.kind in ("int", "bool"):
        with np.errstate(over="ignore"):
            apart = np.rint(np.abs(candidate - reference))
        return np.minimum(apart, 2.0**63).astype(np.uint64)
    return ordinal_distance(ordinals(reference, number_format), ordinals(candidate, number_format))
