"""Mean, spread and co-moments of values, in a form that merges without cancellation."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.wide import Wide

_ZERO = Wide()


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, mean and sum of squared deviations, merged as Chan, Golub and LeVeque (1979) do."""

    count: int = 0
    mean: Wide = _ZERO
    m2: Wide = _ZERO  # Σ (x - mean)²

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

    Co-moments Σ (a-ā)(b-b̄) and Σ (a-ā)(e-ē) are both kept, and the products about zero too: those
    with b are accurate when the sides differ much, those with e when they differ little.
    """

    reference: Moments = Moments()
    candidate: Moments = Moments()
    error: Moments = Moments()
    co_candidate: Wide = _ZERO
    co_error: Wide = _ZERO
    dot_candidate: Wide = _ZERO  # Σ a·b
    dot_error: Wide = _ZERO  # Σ a·e
    abs_reference: Wide = _ZERO  # Σ |a|
    abs_error: Wide = _ZERO  # Σ |e|

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
            self.dot_candidate + other.dot_candidate,
            self.dot_error + other.dot_error,
            self.abs_reference + other.abs_reference,
            self.abs_error + other.abs_error,
        )
