"""What range each side covers, on its own: facts, with no better or worse."""

from __future__ import annotations

import math

from core.stats import SideStats
from metrics.ratios import share
from metrics.registry import side_metrics


def _elements(side: SideStats) -> int:
    return side.finite + side.nan + side.positive_inf + side.negative_inf


@side_metrics("Zeros", unit="1")
def zero_fraction(side: SideStats) -> float:
    """Share of the {side}'s elements that are zero, of either sign.

    Formula: #{x = 0} / count.
    Range: [0, 1].
    NaN: the tensor is empty.
    Blind to: where the zeros are: half of them from dropout look like half of them from a mask.
    Source: count.
    """
    return share(side.zero, _elements(side))


@side_metrics("Subnormals", unit="1")
def subnormal_fraction(side: SideStats) -> float:
    """Share of the {side}'s elements below the smallest normal of its logical dtype, but not zero.

    Formula: #{0 < |x| < smallest normal} / count; 0 for integers and booleans.
    Range: [0, 1].
    NaN: the tensor is empty.
    Blind to: values flushed to zero already: compare the zeros of both sides.
    Source: IEEE 754 subnormal numbers; OCP OFP8 for the 8-bit formats.
    """
    return share(side.subnormal, _elements(side))


@side_metrics("Saturated", unit="1")
def saturated_fraction(side: SideStats) -> float:
    """Share of the {side}'s elements stuck at an end of its logical dtype's range.

    Formula: #{x finite, x ≥ largest or x ≤ lowest} / count; the 0 of unsigned integers and booleans
    are no end of the range.
    Range: [0, 1].
    NaN: the tensor is empty.
    Blind to: overflow that became an infinity, and clipping at a bound below the format's.
    Source: largest finite value of the format.
    """
    return share(side.saturated, _elements(side))


@side_metrics("Min", unit="data")
def min(side: SideStats) -> float:  # noqa: A001  (its name is its id)
    """Smallest finite value of the {side}.

    Formula: min x.
    Range: (−∞, ∞).
    NaN: no element of the {side} is finite.
    Blind to: how many elements are there.
    Source: extreme.
    """
    return side.minimum if side.finite else math.nan


@side_metrics("Max", unit="data")
def max(side: SideStats) -> float:  # noqa: A001  (its name is its id)
    """Largest finite value of the {side}.

    Formula: max x.
    Range: (−∞, ∞).
    NaN: no element of the {side} is finite.
    Blind to: how many elements are there.
    Source: extreme.
    """
    return side.maximum if side.finite else math.nan


@side_metrics("Mean", unit="data")
def mean(side: SideStats) -> float:
    """Mean of the {side}'s finite elements.

    Formula: Σx / n.
    Range: (−∞, ∞).
    NaN: no element of the {side} is finite.
    Blind to: which elements changed; NaN and infinities are left out.
    Source: merged as Chan, Golub and LeVeque 1979.
    """
    return side.mean


@side_metrics("Std", unit="data")
def std(side: SideStats) -> float:
    """Standard deviation of the {side}'s finite elements.

    Formula: √(Σ(x − mean)² / n).
    Range: [0, ∞).
    NaN: no element of the {side} is finite.
    Blind to: the shape of the distribution; NaN and infinities are left out.
    Source: merged as Chan, Golub and LeVeque 1979.
    """
    return side.std
