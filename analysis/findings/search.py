"""Searches for the one number that explains an output best: epsilon, base, scale, mask constant."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from analysis.findings.discrepancy import Discrepancy
from core.runs import Array

_GOLDEN = (math.sqrt(5) - 1) / 2


def best_value(
    predict: Callable[[float], Array | None],
    error: Discrepancy,
    grid: Sequence[float],
    *,
    steps: int = 32,
) -> float | None:
    """The value whose prediction leaves least: the best of `grid`, refined between neighbours.

    `grid` is positive and ascending; refinement is a golden section in the logarithm. None when
    nothing can be predicted.
    """

    def left(logarithm: float) -> float:
        predicted = predict(math.exp(logarithm))
        return math.inf if predicted is None else error.fit(predicted).spread

    points = [math.log(value) for value in grid]
    values = [left(point) for point in points]
    if not any(math.isfinite(value) for value in values):
        return None
    at = int(np.nanargmin(values))
    low, high = points[max(0, at - 1)], points[min(len(points) - 1, at + 1)]
    found = _golden(left, low, high, steps)
    return math.exp(found if left(found) < values[at] else points[at])


def _golden(left: Callable[[float], float], low: float, high: float, steps: int) -> float:
    inner, outer = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_inner, at_outer = left(inner), left(outer)
    for _ in range(steps):
        if at_inner < at_outer:
            high, outer, at_outer = outer, inner, at_inner
            inner = high - _GOLDEN * (high - low)
            at_inner = left(inner)
        else:
            low, inner, at_inner = inner, outer, at_outer
            outer = low + _GOLDEN * (high - low)
            at_outer = left(outer)
    return (low + high) / 2


def nice(value: float, candidates: Sequence[float], *, tolerance: float) -> float:
    """The candidate within a relative `tolerance` of a fitted value, else the value itself."""
    near = min(candidates, key=lambda c: abs(math.log(value / c)), default=value)
    return near if abs(math.log(value / near)) <= tolerance else value
