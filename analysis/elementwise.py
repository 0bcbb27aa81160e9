"""Two arrays element by element: values as float64, their difference, their distance in ulps."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from core.stats import FloatArray
from metrics.decoding import integer_distance, is_integer, real_parts
from metrics.formats import FORMATS
from metrics.ulps import ulp_distance

Array = NDArray[Any]


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
    return np.asarray(values, np.float64)


def difference(reference: Array, candidate: Array) -> FloatArray:
    """Candidate - reference in float64, integers exact before rounding; |difference| if complex.

    Whatever is not finite on either side gives a value without meaning.
    """
    with np.errstate(all="ignore"):
        if np.iscomplexobj(reference) or np.iscomplexobj(candidate):
            return np.abs(candidate.astype(np.complex128) - reference.astype(np.complex128))
        if reference.dtype.kind in "iu" and candidate.dtype.kind in "iu":
            wide = np.longdouble  # 64 bits of significand: int64 and uint64 fit
            return (candidate.astype(wide) - reference.astype(wide)).astype(np.float64)
        return np.asarray(candidate, np.float64) - np.asarray(reference, np.float64)


def ulps_apart(reference: Array, candidate: Array, dtype: str) -> FloatArray:
    """How many representable numbers of `dtype` lie between two values, both rounded to it first.

    -0 equals +0, crossing zero counts the numbers in between; integers and booleans differ by their
    difference. Of a complex pair the larger distance of its two parts. NaN where a side is not
    finite, and everywhere for a format not known.
    """
    shape, known = reference.shape, FORMATS.get(dtype)
    if known is None:
        return np.full(shape, np.nan)
    if np.iscomplexobj(reference) or np.iscomplexobj(candidate):
        parts = [
            real_parts(side.astype(np.complex128).reshape(-1)) for side in (reference, candidate)
        ]
        both = ulps_apart(parts[0], parts[1], dtype).reshape(*shape, 2)
        return np.asarray(both.max(axis=-1), np.float64)
    if is_integer(reference) and is_integer(candidate):
        return integer_distance(reference, candidate).astype(np.float64)
    a, b = (np.array(float_values(side).reshape(-1), order="C") for side in (reference, candidate))
    finite = np.isfinite(a) & np.isfinite(b)
    apart = np.full(a.shape, np.nan)
    apart[finite] = ulp_distance(a[finite], b[finite], known).astype(np.float64)
    return apart.reshape(shape)
