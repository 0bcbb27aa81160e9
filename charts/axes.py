"""Value axes: range, ticks at 1, 2 and 5, and where values outside the range are drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from core.numbers import MINUS, scientific

LOWEST_FLOORS = 0.1  # times floor; smaller ones, bit-equal pairs too, are drawn at this edge
_HIGHEST_FLOORS = 1e6
_MOST_TICKS = 7


@dataclass(frozen=True, slots=True)
class Scale:
    """A value axis; `low` and `high` are values, `range` is in decades on a log axis."""

    kind: Literal["log", "linear"]
    low: float
    high: float
    ticks: list[float]
    labels: list[str]

    @property
    def range(self) -> list[float]:
        """Both ends in Plotly's coordinates."""
        if self.kind == "log":
            return [math.log10(self.low), math.log10(self.high)]
        return [self.low, self.high]

    def clipped(self, values: pd.Series) -> pd.Series:
        """Values moved to the nearest edge when they lie outside; NaN stays."""
        return values.clip(self.low, self.high)


def scale_for(values: pd.Series, *, in_floors: bool) -> Scale:
    """An axis for these values: log for times floor and for errors, linear when any is negative."""
    finite = values[np.isfinite(values)]
    if in_floors:
        top = min(max(20.0, 2.5 * float(finite.max() if len(finite) else 1)), _HIGHEST_FLOORS)
        return _log(LOWEST_FLOORS, top, suffix="×")
    positive = finite[finite > 0]
    if len(positive) == 0 or finite.min() < 0 or positive.max() < 20 * positive.min():
        return _linear(finite)
    return _log(max(float(positive.min()), float(positive.max()) * 1e-12) / 1.5,
                float(positive.max()) * 2, suffix="")  # fmt: skip


def _log(low: float, high: float, *, suffix: str) -> Scale:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if math.log10(high / low) <= 2 else (1,)
    ticks = [s * 10.0**d for d in decades for s in steps if low <= s * 10.0**d <= high]
    ticks = ticks[:: -(-len(ticks) // _MOST_TICKS)]
    return Scale("log", low, high, ticks, [_label(t) + suffix for t in ticks])


def _label(tick: float) -> str:
    """A tick is a round number: no trailing zeros, `1e−5` below a thousandth and from 1e5."""
    if tick and not 1e-3 <= abs(tick) < 1e5:
        return scientific(tick, 1)
    return f"{tick:,g}".replace("-", MINUS)


def _linear(finite: pd.Series) -> Scale:
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    low = min(low, 0.0) if low > 0 and low < 0.5 * high else low
    step = _nice((high - low or abs(high) or 1.0) / 4)
    start, stop = math.floor(low / step), math.ceil(high / step)
    ticks = [round(n * step, 12) for n in range(start, max(stop, start + 1) + 1)]
    return Scale("linear", ticks[0], ticks[-1], ticks, [_label(t) for t in ticks])


def _nice(step: float) -> float:
    size: float = 10.0 ** math.floor(math.log10(step))
    return next(size * k for k in (1, 2, 5, 10) if size * k >= step * 0.999)
