"""Chunks as they were stored, turned into what the statistics compute with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.stats import FloatArray

Chunk = NDArray[Any]


def real_parts(chunk: Chunk) -> Chunk:
    """A complex chunk as alternating real and imaginary parts, twice as long; others unchanged."""
    if not np.iscomplexobj(chunk):
        return chunk
    contiguous = np.ascontiguousarray(chunk)
    return contiguous.view(contiguous.real.dtype)


def is_integer(chunk: Chunk) -> bool:
    """Whether a chunk holds integers or booleans."""
    return chunk.dtype.kind in "biu"


def decoded(chunk: Chunk) -> FloatArray:
    """The values in float64: exact for every format but 64-bit integers beyond 2^53."""
    with np.errstate(invalid="ignore"):  # some casts raise the flag on NaN
        return np.ascontiguousarray(chunk, np.float64)


def integer_distance(reference: Chunk, candidate: Chunk) -> NDArray[np.uint64]:
    """|candidate - reference| of two integer chunks: exact, and capped at 2^64 - 1."""
    if reference.dtype.kind == "b" and candidate.dtype.kind == "b":
        return np.not_equal(reference, candidate).astype(np.uint64)
    sides = [side.astype(np.int64) for side in (reference, candidate) if _fits_int64(side)]
    if len(sides) == 2:
        return ordinal_distance(*sides)
    return _unsigned_distance(reference, candidate)


def ordinal_distance(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.uint64]:
    """|b - a|, exact: the true distance is below 2^64, so wrapping around loses nothing."""
    return np.maximum(a, b).view(np.uint64) - np.minimum(a, b).view(np.uint64)


def _fits_int64(chunk: Chunk) -> bool:
    return chunk.dtype != np.uint64 or not chunk.size or int(chunk.max()) < 1 << 63


def _unsigned_distance(reference: Chunk, candidate: Chunk) -> NDArray[np.uint64]:
    """For uint64 beyond 2^63: both magnitudes unsigned, added where the signs differ."""
    magnitudes = [
        np.where(side < 0, 0 - side, side).astype(np.uint64) for side in (reference, candidate)
    ]
    a, b = magnitudes
    apart = (reference < 0) != (candidate < 0)
    total = a + b
    total = np.where(total < a, np.iinfo(np.uint64).max, total)
    return np.where(apart, total, np.maximum(a, b) - np.minimum(a, b))
