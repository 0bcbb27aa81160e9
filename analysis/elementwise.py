"""Two arrays element by element: values as float64, their difference, their distance in ulps."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FloatArray = NDArray[np.float64]


def numpy_dtype(name: str) -> np.dtype[Any] | None:
    """The NumPy type of a logical format, None for one that NumPy and ml_dtypes lack."""
    try:
        return np.dtype(getattr(ml_dtypes, name, name))
    except TypeError:
        return None


def float_values(values: Array) -> FloatArray:
    """As float64; magnitudes of complex values."""
    if np.iscomplexobj(values):
        return np.abs(values).astype(np.float64)
    return values.astype(np.float64)


def difference(reference: Array, candidate: Array) -> FloatArray:
    """candidate - reference in float64, integers exact before rounding; |difference| if complex.

    Whatever is not finite on either side gives a value without meaning.
    """
    with np.errstate(all="ignore"):
        if np.iscomplexobj(reference) or np.iscomplexobj(candidate):
            return np.abs(candidate.astype(np.complex128) - reference.astype(np.complex128))
        if reference.dtype.kind in "iu" and candidate.dtype.kind in "iu":
            wide = np.longdouble  # 64 bits of significand: int64 and uint64 fit
            return (candidate.astype(wide) - reference.astype(wide)).astype(np.float64)
        return candidate.astype(np.float64) - reference.astype(np.float64)


def ulps_apart(reference: Array, candidate: Array, dtype: str) -> FloatArray:
    """How many representable numbers of `dtype` lie between two values, both rounded to it first.

    -0 equals +0, crossing zero counts the numbers in between. Integers and booleans differ by their
    difference. NaN where a side is NaN, and everywhere for formats without units in the last place.
    """
    kind = numpy_dtype(dtype)
    if kind is None or kind.kind == "c":
        return np.full(reference.shape, np.nan)
    if kind.kind in "iub":
        return np.abs(difference(reference, candidate))
    with np.errstate(all="ignore"):
        a, b = reference.astype(kind), candidate.astype(kind)
        apart = _apart(_ordinals(a), _ordinals(b))
        nan = np.isnan(a.astype(np.float64)) | np.isnan(b.astype(np.float64))
    return np.where(nan, np.nan, apart)


def _ordinals(values: Array) -> NDArray[np.int64]:
    """Integers in the order of the floating-point values, one apart for neighbours; both zeros 0."""
    width = values.dtype.itemsize
    bits = np.array(values, order="C").view(f"i{width}").astype(np.int64)
    magnitude = bits & np.int64((1 << (8 * width - 1)) - 1)
    return np.where(bits < 0, -magnitude, magnitude)


def _apart(a: NDArray[np.int64], b: NDArray[np.int64]) -> FloatArray:
    same_sign = (a < 0) == (b < 0)
    far = np.abs(a.astype(np.float64)) + np.abs(b.astype(np.float64))  # int64 would overflow
    return np.where(same_sign, np.abs(a - b).astype(np.float64), far)
