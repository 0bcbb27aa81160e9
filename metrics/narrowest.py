"""The format values were computed in, from the values: dump scripts cast bf16 to float32 first."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from core.runs import Array

# Share of nonzero finite values that must be exact in a format.
EXACT = 0.999
FEWEST = 64  # nonzero values below which nothing is inferred

# Candidates by significand bits with the hidden one, then by range: the first that fits is meant.
# Those without a cast have float32's own range, so that their significand decides.
_NARROW: Mapping[str, tuple[int, str]] = {
    "float8_e5m2": (3, "float8_e5m2"),
    "float8_e4m3fn": (4, "float8_e4m3fn"),
    "bfloat16": (8, ""),
    "float16": (11, "float16"),
    "tf32": (11, ""),
}
_WIDEST = 11
# Under this share of the significands that so many random values would hit, values are few
# distinct ones (masks, ones, counts), which fit any format.
_VARIED = 0.5


def narrowest(values: Array) -> str | None:
    """The narrowest format below their own that holds values exactly; None when there is none.

    At least 99.9 % of the nonzero finite values must be exact, there must be 64 of them, and they
    must use the significands there are as real data does: zeros, ones, masks and counts fit
    anything and tell nothing. float32 and float64 only; for float64 also `float32`.
    """
    if values.dtype not in (np.float32, np.float64):
        return None
    flat = values.reshape(-1)
    flat = flat[np.isfinite(flat) & (flat != 0)]
    if flat.size < FEWEST:
        return None
    if flat.dtype == np.float64:
        with np.errstate(over="ignore"):
            single = flat.astype(np.float32)
        if _share(single == flat) < EXACT:
            return None
        return _narrowest_single(single) or ("float32" if _is_varied(single, 24) else None)
    return _narrowest_single(flat)


def _narrowest_single(flat: NDArray[np.float32]) -> str | None:
    bits = flat.view(np.uint32)
    if _share(bits & np.uint32((1 << (24 - _WIDEST)) - 1) == 0) < EXACT:
        return None  # real float32, as most tensors are
    used = _bits_used(bits)
    exact = flat[bits & np.uint32((1 << (24 - used)) - 1) == 0]
    if not _is_varied(exact, used) or _is_grid(exact, used):
        return None
    return next(
        (name for name, held in _NARROW.items() if used <= held[0] and _holds(flat, name)), None
    )


def _bits_used(bits: NDArray[np.uint32]) -> int:
    """Significand bits that nearly all values need, with the hidden one; at most `_WIDEST`."""
    for used in range(1, _WIDEST):
        if _share(bits & np.uint32((1 << (24 - used)) - 1) == 0) >= EXACT:
            return used
    return _WIDEST


def _holds(flat: NDArray[np.float32], name: str) -> bool:
    """Whether nearly all values are exact in a format, its range included."""
    precision, cast = _NARROW[name]
    if not cast:
        return _share(flat.view(np.uint32) & np.uint32((1 << (24 - precision)) - 1) == 0) >= EXACT
    if cast.startswith("float8"):
        import ml_dtypes  # noqa: F401  slow to import, and rarely needed: it names fp8 to NumPy
    with np.errstate(over="ignore", invalid="ignore"):
        return _share(np.asarray(flat.astype(cast).astype(np.float32) == flat)) >= EXACT


def _is_varied(flat: NDArray[np.float32], precision: int) -> bool:
    """Whether values use as many significands as random ones of that precision would."""
    possible = 1 << (precision - 1)
    significands = (flat.view(np.uint32) & np.uint32((1 << 23) - 1)) >> np.uint32(24 - precision)
    expected = possible * -np.expm1(-flat.size / possible)
    return bool(len(np.unique(significands)) >= max(2, _VARIED * expected))


def _is_grid(flat: NDArray[np.float32], precision: int) -> bool:
    """Whether values are multiples of one step, so few that as integers they fit the significand.

    Halves or counts in a scale are exact in a narrow format without ever having been in it.
    """
    significand, exponent = np.frexp(flat.astype(np.float64))
    whole = np.ldexp(np.abs(significand), 24).astype(np.int64)
    step = np.ldexp((whole & -whole).astype(np.float64), exponent - 24).min()
    return bool(np.abs(flat).max() <= step * 2.0**precision)


def _share(held: NDArray[np.bool_]) -> float:
    return float(np.count_nonzero(held)) / held.size
