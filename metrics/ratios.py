"""Ratios of accumulated quantities, with their degenerate cases decided once."""

from __future__ import annotations

import math

from core.wide import Wide


def ratio(part: Wide, whole: Wide) -> float:
    """Part / whole; 0 when the part is 0, infinite when only the whole is."""
    if not part:
        return 0.0
    return float(part / whole) if whole else math.copysign(math.inf, part.significand)


def root_ratio(part: Wide, whole: Wide) -> float:
    """√(part / whole) of two energies, with the same degenerate cases."""
    return ratio(part.sqrt(), whole.sqrt())


def float_ratio(part: float, whole: float) -> float:
    """As `ratio`, of floats; NaN when either is."""
    if math.isnan(part) or math.isnan(whole):
        return math.nan
    if math.isinf(part) or math.isinf(whole):
        return part / whole
    return ratio(Wide.of(part), Wide.of(whole))


def share(part: int, count: int) -> float:
    """Part of a count; NaN of nothing."""
    return part / count if count else math.nan
