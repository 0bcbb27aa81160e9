"""Statistics of one block of a pair: a stretch of both tensors small enough for the cache."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.comparison import Tolerance
from core.stats import AxisProfile, Extreme, FloatArray, PairStats
from metrics.decoding import Chunk, decoded, integer_distance, is_integer
from metrics.formats import Format
from metrics.histograms import counted, joint_histogram, ulp_bins
from metrics.ulps import ulp_distance
from oracle.axes import axis_profiles
from oracle.moments import Scaled, pair_moments, scaled
from oracle.sides import side_stats

_HALF_RANGE = 2.0**1023  # from here on the difference of two float64 may overflow

Formats = tuple[Format, Format, Format]  # of the pair (the coarser), reference, candidate


class Block(NamedTuple):
    """A stretch of both sides as stored, beginning at flat index `start` of a tensor of `shape`."""

    reference: Chunk
    candidate: Chunk
    shape: tuple[int, ...]
    start: int


class _Finite(NamedTuple):
    """The elements finite on both sides, in float64."""

    reference: FloatArray
    candidate: FloatArray
    error: FloatArray  # halved if it might overflow otherwise: see error_exponent
    error_exponent: int
    abs_error: FloatArray  # in units of the data; infinite where float64 ends
    ulps: NDArray[np.uint64]
    where: NDArray[np.intp] | None  # places in the block, None when that is all of it

    def place(self, at: int) -> int:
        """Position in the block of the finite element number `at`."""
        return at if self.where is None else int(self.where[at])

    def spread(self, values: FloatArray, size: int) -> FloatArray:
        """Values of the finite elements at their places in the block, zero elsewhere."""
        if self.where is None:
            return values
        whole = np.zeros(size)
        whole[self.where] = values
        return whole


def block_stats(block: Block, tolerance: Tolerance, formats: Formats) -> PairStats:
    """Statistics of a block."""
    with np.errstate(over="ignore", under="ignore"):  # both are provided for
        a, b = decoded(block.reference), decoded(block.candidate)
        finite_a, finite_b = np.isfinite(a), np.isfinite(b)
        both = _finite(block, a, b, finite_a & finite_b, formats[0])
        return _assembled(
            block, both, (a, b), (_only(a, finite_a), _only(b, finite_b)), tolerance, formats
        )


def _assembled(
    block: Block,
    both: _Finite,
    sides: tuple[FloatArray, FloatArray],
    own: tuple[FloatArray, FloatArray],
    tolerance: Tolerance,
    formats: Formats,
) -> PairStats:
    a, b, e = _scaled(both)
    moments = pair_moments(a, b, e)
    count, finite = sides[0].size, both.error.size
    nan_both, inf_equal = _matched_nonfinite(*sides) if finite < count else (0, 0)
    unmatched = count - finite - nan_both - inf_equal
    shared = [
        known if part.size == finite else None
        for known, part in zip((moments.reference, moments.candidate), own, strict=True)
    ]
    return PairStats(
        dtype=formats[0].name,
        count=count,
        finite=finite,
        nan_both=nan_both,
        inf_equal=inf_equal,
        equal=_equal(both, block) + nan_both + inf_equal,
        sign_flips=_sign_flips(both.reference, both.candidate),
        mismatches=_outside(both, tolerance, formats[0]) + unmatched,
        moments=moments,
        max_abs_error=_extreme(both.abs_error, both, block.start),
        max_ulp=_extreme(both.ulps, both, block.start),
        reference=side_stats(block.reference, sides[0], own[0], formats[1], shared[0]),
        candidate=side_stats(block.candidate, sides[1], own[1], formats[2], shared[1]),
        ulp=counted(np.bincount(ulp_bins(both.ulps), minlength=1)),
        joint=joint_histogram(both.reference, both.abs_error),
        axes=_axes(block, both, a, e),
    )


def _only(values: FloatArray, keep: NDArray[np.bool_]) -> FloatArray:
    return values if keep.all() else values[keep]


def _finite(
    block: Block, a: FloatArray, b: FloatArray, keep: NDArray[np.bool_], number_format: Format
) -> _Finite:
    where = None if keep.all() else np.flatnonzero(keep)
    chunks = block.reference, block.candidate
    if where is not None:
        a, b = a[where], b[where]
        chunks = block.reference[where], block.candidate[where]
    if all(is_integer(chunk) for chunk in chunks):
        ulps = integer_distance(*chunks)
        abs_error = ulps.astype(np.float64)
        error = np.where(chunks[1] < chunks[0], -abs_error, abs_error)
        return _Finite(a, b, error, 0, abs_error, ulps, where)
    ulps = ulp_distance(a, b, number_format)
    if max(_largest(a), _largest(b)) < _HALF_RANGE:
        error = b - a
        return _Finite(a, b, error, 0, np.abs(error), ulps, where)
    error = b / 2 - a / 2
    return _Finite(a, b, error, 1, np.abs(b - a), ulps, where)


def _largest(values: FloatArray) -> float:
    return max(-float(values.min()), float(values.max())) if values.size else 0.0


def _scaled(both: _Finite) -> tuple[Scaled, Scaled, Scaled]:
    a, b, e = (
        scaled(values, _largest(values)) for values in (both.reference, both.candidate, both.error)
    )
    return a, b, Scaled(e.values, e.exponent + both.error_exponent)


def _matched_nonfinite(a: FloatArray, b: FloatArray) -> tuple[int, int]:
    """How many elements are NaN on both sides, and how many the same infinity."""
    nan_both = np.count_nonzero(np.isnan(a) & np.isnan(b))
    return int(nan_both), int(np.count_nonzero((a == b) & np.isinf(a)))


def _equal(both: _Finite, block: Block) -> int:
    if is_integer(block.reference) and is_integer(block.candidate):
        return int(np.count_nonzero(both.ulps == 0))  # float64 cannot tell large integers apart
    return int(np.count_nonzero(both.reference == both.candidate))


def _sign_flips(a: FloatArray, b: FloatArray) -> int:
    differ = (a.view(np.int64) ^ b.view(np.int64)) < 0
    if not differ.any():
        return 0
    return int(np.count_nonzero((a[differ] != 0) & (b[differ] != 0)))


def _outside(both: _Finite, tolerance: Tolerance, number_format: Format) -> int:
    if number_format.kind == "bool":
        return int(np.count_nonzero(both.ulps))
    bound = tolerance.atol + tolerance.rtol * np.abs(both.reference)
    return int(np.count_nonzero(both.abs_error > bound))


def _extreme(quantity: FloatArray | NDArray[np.uint64], both: _Finite, start: int) -> Extreme:
    if not quantity.size:
        return Extreme()
    at = int(quantity.argmax())  # the first of equal ones
    values = (float(values[at]) for values in (quantity, both.reference, both.candidate))
    value, reference, candidate = values
    return Extreme(value, start + both.place(at), reference, candidate)


def _axes(block: Block, both: _Finite, a: Scaled, e: Scaled) -> tuple[AxisProfile, ...]:
    reference, error, abs_error = (
        both.spread(values, block.reference.size) for values in (a.values, e.values, both.abs_error)
    )
    return axis_profiles(
        Scaled(reference, a.exponent),
        Scaled(error, e.exponent),
        abs_error,
        block.shape,
        block.start,
    )
