"""Everything one pass over a pair leaves behind: small, mergeable, enough for every metric.

`a + b` merges the statistics of two disjoint parts of a pair, `PairStats.merged` those of many at
once. The rule of merging sits on the field: `merge` in its metadata, a function of the parts'
values, else their sum.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.moments import Moments, PairMoments

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
T = TypeVar("T")

_NO_MOMENTS, _NO_PAIR_MOMENTS = Moments(), PairMoments()


def merged(parts: Sequence[T], kind: type[T]) -> T:
    """Values of a dataclass, or of what stands for it, merged field by field."""
    first: Any = parts[0]
    rules = [f.metadata.get("merge", _total) for f in fields(first)]
    columns = ([getattr(part, f.name) for part in parts] for f in fields(first))
    return kind(*(rule(column) for rule, column in zip(rules, columns, strict=True)))


def _total(values: Sequence[Any]) -> Any:
    at_once = getattr(type(values[0]), "merged", None)
    return at_once(values) if at_once else functools.reduce(operator.add, values)


def _same(values: Sequence[Any]) -> Any:
    if any(value != values[0] for value in values):
        raise ValueError(f"statistics of different kinds do not merge: {set(values)}")
    return values[0]


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Counts by integer bin; sparse, bins ascending. What a bin means belongs to its maker."""

    bins: IntArray  # (n,)
    counts: IntArray  # (n,), all > 0

    @classmethod
    def empty(cls) -> Self:
        """No counts at all."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))

    @property
    def total(self) -> int:
        """Number of counted elements."""
        return int(self.counts.sum())

    @classmethod
    def merged(cls, parts: Sequence[Self]) -> Self:
        """All counts together."""
        bins = np.concatenate([part.bins for part in parts])
        if not bins.size:
            return cls.empty()
        order = np.argsort(bins, kind="stable")  # quick on runs that are ascending already
        bins = bins[order]
        counts = np.concatenate([part.counts for part in parts])[order]
        first = np.flatnonzero(np.concatenate([[True], bins[1:] != bins[:-1]]))
        return cls(bins[first], np.add.reduceat(counts, first))

    def __add__(self, other: Self) -> Self:
        return self.merged([self, other])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Histogram)
            and np.array_equal(self.bins, other.bins)
            and np.array_equal(self.counts, other.counts)
        )

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Extreme:
    """The element where a quantity is largest.

    `index` is flat and row-major, -1 when there is none; `value` is the quantity, `reference` and
    `candidate` both sides' values there. Merging keeps the larger value, and of equal ones the
    earlier index.
    """

    value: float = float("-inf")
    index: int = -1
    reference: float = float("nan")
    candidate: float = float("nan")

    def __add__(self, other: Extreme) -> Extreme:
        return max(self, other, key=lambda e: (e.index >= 0, e.value, -e.index))


@dataclass(frozen=True, slots=True)
class SideStats:
    """One side's own statistics; moments, extremes and histograms over its own finite elements.

    `values` is a histogram over `metrics.histograms.value_bins`, `significand` over the number of
    significant bits a value needs (0 for zero, at most 53).
    """

    finite: int = 0
    nan: int = 0
    positive_inf: int = 0
    negative_inf: int = 0
    zero: int = 0
    subnormal: int = 0  # nonzero and below the smallest normal of the logical dtype
    saturated: int = 0  # finite, at or beyond the largest (or lowest) value of the logical dtype
    minimum: float = field(default=math.inf, metadata={"merge": min})
    maximum: float = field(default=-math.inf, metadata={"merge": max})
    moments: Moments = _NO_MOMENTS
    values: Histogram = field(default_factory=Histogram.empty)
    significand: Histogram = field(default_factory=Histogram.empty)

    @property
    def mean(self) -> float:
        """Mean of the finite elements; NaN when there are none."""
        return float(self.moments.mean) if self.finite else math.nan

    @property
    def std(self) -> float:
        """Standard deviation of the finite elements (divisor n); NaN when there are none."""
        return self.moments.std

    @property
    def max_abs(self) -> float:
        """Largest magnitude among the finite elements; NaN when there are none."""
        return max(-self.minimum, self.maximum) if self.finite else math.nan

    @classmethod
    def merged(cls, parts: Sequence[SideStats]) -> SideStats:
        """The statistics of all parts together."""
        return merged(parts, SideStats)

    def __add__(self, other: SideStats) -> SideStats:
        return self.merged([self, other])


@dataclass(frozen=True, slots=True, eq=False)
class AxisProfile:
    """Energy along one axis of the tensor: for each index, sums over all other axes.

    Only elements finite on both sides count. Energies are in units of the data squared times
    2^-2·exponent; both exponents are 0 unless squares would leave float64. Empty arrays when the
    axis is longer than the engine keeps.
    """

    sq_error: FloatArray  # (n,)
    sq_reference: FloatArray  # (n,)
    max_abs_error: FloatArray  # (n,)
    error_exponent: int = 0
    reference_exponent: int = 0

    @property
    def error_norm(self) -> FloatArray:
        """L2 norm of the error at each index, in units of the data, (n,)."""
        return np.ldexp(np.sqrt(self.sq_error), self.error_exponent)

    @property
    def reference_norm(self) -> FloatArray:
        """L2 norm of the reference at each index, in units of the data, (n,)."""
        return np.ldexp(np.sqrt(self.sq_reference), self.reference_exponent)

    def __add__(self, other: AxisProfile) -> AxisProfile:
        sq_error, error_exponent = _sum_energies(
            (self.sq_error, self.error_exponent), (other.sq_error, other.error_exponent)
        )
        sq_reference, reference_exponent = _sum_energies(
            (self.sq_reference, self.reference_exponent),
            (other.sq_reference, other.reference_exponent),
        )
        peaks = np.maximum(self.max_abs_error, other.max_abs_error)
        return AxisProfile(sq_error, sq_reference, peaks, error_exponent, reference_exponent)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AxisProfile) and all(
            np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)
        )

    __hash__ = None  # type: ignore[assignment]


def _sum_energies(a: tuple[FloatArray, int], b: tuple[FloatArray, int]) -> tuple[FloatArray, int]:
    """Sum of two scaled energy arrays, at the larger exponent of those that hold anything."""
    if a[1] == b[1]:
        return a[0] + b[0], a[1]
    if not a[0].any() or not b[0].any():
        return b if b[0].any() else a
    top = max(a[1], b[1])
    return np.ldexp(a[0], 2 * (a[1] - top)) + np.ldexp(b[0], 2 * (b[1] - top)), top


def _profiles(parts: Sequence[tuple[AxisProfile, ...]]) -> tuple[AxisProfile, ...]:
    """Axis by axis; statistics of nothing at all have no axes and change nothing."""
    kept = [part for part in parts if part]
    return tuple(functools.reduce(operator.add, axis) for axis in zip(*kept, strict=True))


@dataclass(frozen=True, slots=True)
class PairStats:
    """Statistics of a pair, or of a part of it. Metrics are functions of this and nothing else.

    `dtype` is the coarser logical format of the two, whose unit in the last place counts ulp
    errors. `ulp` is a histogram of the ulp error in log2 bins: 0, 1, 2, 3-4, 5-8, … are bins 0, 1,
    2, 3, 4, … `joint` counts elements by (log2 |reference|, log2 |error|), see
    `metrics.histograms.joint_bins`. Complex tensors count twice: every count is of real and
    imaginary parts, while positions and axes are those of the tensor itself.
    """

    dtype: str = field(metadata={"merge": _same})
    count: int = 0
    finite: int = 0  # finite on both sides
    nan_both: int = 0
    inf_equal: int = 0  # infinite on both sides, same sign
    equal: int = 0  # same value; NaN equals NaN, -0 equals +0
    sign_flips: int = 0  # both nonzero and finite, of opposite sign
    mismatches: int = 0  # outside tolerance, or non-finite on one side only or differing
    moments: PairMoments = _NO_PAIR_MOMENTS
    max_abs_error: Extreme = Extreme()
    max_ulp: Extreme = Extreme()
    reference: SideStats = field(default_factory=SideStats)
    candidate: SideStats = field(default_factory=SideStats)
    ulp: Histogram = field(default_factory=Histogram.empty)
    joint: Histogram = field(default_factory=Histogram.empty)
    axes: tuple[AxisProfile, ...] = field(default=(), metadata={"merge": _profiles})

    @classmethod
    def merged(cls, parts: Sequence[PairStats]) -> PairStats:
        """The statistics of all parts together."""
        return merged(parts, PairStats)

    def __add__(self, other: PairStats) -> PairStats:
        return self.merged([self, other])

    @property
    def unmatched_nonfinite(self) -> int:
        """Elements that are NaN or infinite on one side only, or infinite with opposite signs."""
        return self.count - self.finite - self.nan_both - self.inf_equal
