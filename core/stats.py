"""Everything one pass over a pair leaves behind: small, mergeable, enough for every metric.

`a + b` merges the statistics of two disjoint parts of a pair. The rule of merging sits on the field:
a field's `merge` metadata, else `+`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.wide import Wide

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def _same(a: Any, b: Any) -> Any:
    if a != b:
        raise ValueError(f"statistics of different kinds do not merge: {a!r} and {b!r}")
    return a


def merged(a: Any, b: Any) -> Any:
    """`a + b` field by field for two dataclass values of one type."""
    rules: list[Callable[[Any, Any], Any]] = [
        f.metadata.get("merge", operator.add) for f in fields(a)
    ]
    return type(a)(
        *(
            rule(getattr(a, f.name), getattr(b, f.name))
            for rule, f in zip(rules, fields(a), strict=True)
        )
    )


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

    def __add__(self, other: Histogram) -> Histogram:
        bins = np.union1d(self.bins, other.bins)
        counts = np.zeros(bins.size, np.int64)
        for part in (self, other):
            counts[np.searchsorted(bins, part.bins)] += part.counts  # bins of a part are distinct
        return Histogram(bins, counts)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Histogram)
            and np.array_equal(self.bins, other.bins)
            and np.array_equal(self.counts, other.counts)
        )

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Extreme:
    """The element where a quantity is largest. `index` is flat and row-major, -1 when there is none.

    `value` is the quantity, `reference` and `candidate` both sides' values there. Merging keeps the
    larger value, and of equal ones the earlier index.
    """

    value: float = float("-inf")
    index: int = -1
    reference: float = float("nan")
    candidate: float = float("nan")

    def __add__(self, other: Extreme) -> Extreme:
        return max(self, other, key=lambda e: (e.index >= 0, e.value, -e.index))


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, mean and sum of squared deviations, merged as Chan, Golub and LeVeque (1979) do."""

    count: int = 0
    mean: Wide = Wide()
    m2: Wide = Wide()  # Σ (x - mean)²

    @property
    def energy(self) -> Wide:
        """Σ x²; a sum of two terms that are not negative, so nothing cancels."""
        return self.m2 + self.mean * self.mean * self.count

    @property
    def std(self) -> float:
        """Standard deviation of the counted elements themselves (divisor n); NaN when empty."""
        return float((self.m2 / self.count).sqrt()) if self.count else math.nan

    def __add__(self, other: Moments) -> Moments:
        if not self.count or not other.count:
            return other if other.count else self
        count = self.count + other.count
        delta = other.mean - self.mean
        return Moments(
            count,
            self.mean + delta * (other.count / count),
            self.m2 + other.m2 + delta * delta * (self.count * (other.count / count)),
        )


@dataclass(frozen=True, slots=True)
class PairMoments:
    """Moments of reference a, candidate b and error e = b - a where both sides are finite.

    Co-moments Σ (a-ā)(b-b̄) and Σ (a-ā)(e-ē) are both kept: the first is accurate when the sides
    differ much, the second when they differ little.
    """

    reference: Moments = Moments()
    candidate: Moments = Moments()
    error: Moments = Moments()
    co_candidate: Wide = Wide()
    co_error: Wide = Wide()
    abs_reference: Wide = Wide()  # Σ |a|
    abs_error: Wide = Wide()  # Σ |e|

    @property
    def dot_candidate(self) -> Wide:
        """Σ a·b."""
        return self.co_candidate + self._product(self.candidate)

    @property
    def dot_error(self) -> Wide:
        """Σ a·e."""
        return self.co_error + self._product(self.error)

    def _product(self, other: Moments) -> Wide:
        return self.reference.mean * other.mean * self.reference.count

    def __add__(self, other: PairMoments) -> PairMoments:
        if not self.reference.count or not other.reference.count:
            return other if other.reference.count else self
        n, m = self.reference.count, other.reference.count
        shift = (other.reference.mean - self.reference.mean) * (n * (m / (n + m)))
        return PairMoments(
            self.reference + other.reference,
            self.candidate + other.candidate,
            self.error + other.error,
            self.co_candidate
            + other.co_candidate
            + shift * (other.candidate.mean - self.candidate.mean),
            self.co_error + other.co_error + shift * (other.error.mean - self.error.mean),
            self.abs_reference + other.abs_reference,
            self.abs_error + other.abs_error,
        )


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
    moments: Moments = Moments()
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

    def __add__(self, other: SideStats) -> SideStats:
        result: SideStats = merged(self, other)
        return result


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


def _sum_energies(
    a: tuple[FloatArray, int], b: tuple[FloatArray, int]
) -> tuple[FloatArray, int]:
    """Sum of two scaled energy arrays, at the larger exponent of those that hold anything."""
    if a[1] == b[1]:
        return a[0] + b[0], a[1]
    if not a[0].any() or not b[0].any():
        return b if b[0].any() else a
    top = max(a[1], b[1])
    return np.ldexp(a[0], 2 * (a[1] - top)) + np.ldexp(b[0], 2 * (b[1] - top)), top


def _profiles(a: tuple[AxisProfile, ...], b: tuple[AxisProfile, ...]) -> tuple[AxisProfile, ...]:
    if not a or not b:
        return a or b
    return tuple(x + y for x, y in zip(a, b, strict=True))


@dataclass(frozen=True, slots=True)
class PairStats:
    """Statistics of a pair, or of a part of it. Metrics are functions of this and nothing else.

    `dtype` is the coarser logical format of the two, whose unit in the last place counts ulp errors.
    `ulp` is a histogram of the ulp error in log2 bins: 0, 1, 2, 3-4, 5-8, … are bins 0, 1, 2, 3, 4, …
    `joint` counts elements by (log2 |reference|, log2 |error|), see `metrics.histograms.joint_bins`.
    Complex tensors count twice: every count is of real and imaginary parts, while positions and axes
    are those of the tensor itself.
    """

    dtype: str = field(metadata={"merge": _same})
    count: int = 0
    finite: int = 0  # finite on both sides
    nan_both: int = 0
    inf_equal: int = 0  # infinite on both sides, same sign
    equal: int = 0  # same value; NaN equals NaN, -0 equals +0
    sign_flips: int = 0  # both nonzero and finite, of opposite sign
    mismatches: int = 0  # outside tolerance, or non-finite on one side only or differing
    moments: PairMoments = PairMoments()
    max_abs_error: Extreme = Extreme()
    max_ulp: Extreme = Extreme()
    reference: SideStats = field(default_factory=SideStats)
    candidate: SideStats = field(default_factory=SideStats)
    ulp: Histogram = field(default_factory=Histogram.empty)
    joint: Histogram = field(default_factory=Histogram.empty)
    axes: tuple[AxisProfile, ...] = field(default=(), metadata={"merge": _profiles})

    def __add__(self, other: PairStats) -> PairStats:
        result: PairStats = merged(self, other)
        return result

    @property
    def unmatched_nonfinite(self) -> int:
        """Elements that are NaN or infinite on one side only, or infinite with opposite signs."""
        return self.count - self.finite - self.nan_both - self.inf_equal
