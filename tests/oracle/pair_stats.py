"""One pass over a pair of chunks: everything the metrics need, in NumPy and float64.

A chunk is worked off in blocks that stay in the processor's cache, and the blocks' statistics are
merged in order: the same chunking gives bit-identical results.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from core.comparison import Tolerance
from core.stats import PairStats
from metrics.decoding import Chunk, real_parts
from metrics.formats import format_of
from oracle.blocks import Block, block_stats

BLOCK = 1 << 15  # elements; the dozen float64 arrays of a block stay in the second-level cache

# The C library returns memory of a block's arrays to the system at each release, and zeroes it anew
# at each use, until one larger array was released: this doubles the speed.
np.empty(1 << 24, np.uint8)


def pair_stats(
    reference: Chunk,
    candidate: Chunk,
    tolerance: Tolerance,
    *,
    dtype: str,
    dtypes: tuple[str, str],
    shape: tuple[int, ...],
    start: int = 0,
) -> PairStats:
    """Statistics of two flat chunks of one pair; `a + b` of disjoint chunks is that of both.

    `dtype` is the coarser logical dtype of the pair, `dtypes` each side's own; `shape` is that of
    the whole tensor and `start` the flat index of the chunk's first element. Complex values count
    as two real ones each; booleans as 0 and 1, where any difference is a mismatch.
    """
    _check(reference, candidate, shape, start)
    if np.iscomplexobj(reference) or np.iscomplexobj(candidate):
        return _complex_stats(reference, candidate, tolerance, dtype, dtypes, shape, start)
    formats = format_of(dtype), format_of(dtypes[0]), format_of(dtypes[1])
    blocks = (
        Block(reference[at : at + BLOCK], candidate[at : at + BLOCK], shape, start + at)
        for at in range(0, max(reference.size, 1), BLOCK)
    )
    return PairStats.merged([block_stats(block, tolerance, formats) for block in blocks])


def _check(reference: Chunk, candidate: Chunk, shape: tuple[int, ...], start: int) -> None:
    if reference.ndim != 1 or reference.shape != candidate.shape:
        raise ValueError(f"chunks are flat and of one length: {reference.shape}, {candidate.shape}")
    if start < 0 or start + reference.size > math.prod(shape):
        raise ValueError(f"{reference.size} elements from {start} do not fit the shape {shape}")


def _complex_stats(
    reference: Chunk,
    candidate: Chunk,
    tolerance: Tolerance,
    dtype: str,
    dtypes: tuple[str, str],
    shape: tuple[int, ...],
    start: int,
) -> PairStats:
    """Real and imaginary parts as a last axis of two; positions and axes of the tensor itself."""
    a, b = (
        real_parts(side if np.iscomplexobj(side) else side.astype(np.complex128))
        for side in (reference, candidate)
    )
    stats = pair_stats(
        a, b, tolerance, dtype=dtype, dtypes=dtypes, shape=(*shape, 2), start=2 * start
    )
    error, ulp = (
        replace(extreme, index=extreme.index // 2)  # -1, for none, stays -1
        for extreme in (stats.max_abs_error, stats.max_ulp)
    )
    return replace(stats, max_abs_error=error, max_ulp=ulp, axes=stats.axes[:-1])
