"""What an operator should have given and what it gave, and how much a hypothesis explains of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.runs import Array

Mask = NDArray[np.bool_]

# A hypothesis counts when its residual falls to 3 floors or to 5 % of the error, and below half of
# the error in any case (measured on 26 causes in fp32 and bf16: 44 of 44 named, none when clean).
_FLOORS = 3.0
_PART = 0.05
_HALF = 0.5

# Below that, an error of a few floors is matched as a signal: the error regressed on the predicted
# one has slope 1, far from 0 in its standard errors, and nothing but rounding remains.
_SLOPE = 0.25
_SIGNIFICANT = 8.0
_ROUNDING = 1.6

# As many fitted numbers count as few.
FEW = 8

# Variance of an element never counts less than 1 % of the mean: floors of elements near zero are
# honest only for exactly the kernel they were derived for.
_EVEN = 0.01


@dataclass(frozen=True, slots=True)
class Fit:
    """How a prediction meets the observation, in units of the floor (energy ratio R).

    `slope` and `sigmas`: the error regressed on the predicted error, and its distance from 0 in
    standard errors; `start` and `spread` are the residual without and with the prediction weighted
    element by element, which ranks rivals. `accepted` by the rules above.
    """

    before: float
    after: float
    slope: float
    sigmas: float
    start: float
    spread: float
    accepted: bool

    @property
    def halved(self) -> bool:
        """Whether less than half of all the error's energy is left."""
        return self.after**2 < 0.5 * self.before**2

    @property
    def explained(self) -> float:
        """Share of the error's energy above the floor that the hypothesis takes away, in [0, 1].

        The larger of the plain and the weighted one; all of it when the rest is within the floor.
        """
        return max(_share(self.before, self.after), _share(self.start, self.spread))


def _share(before: float, after: float) -> float:
    if not math.isfinite(after) or after >= before:
        return 0.0
    if not math.isfinite(before):
        return 1.0
    floor = min(after, 1.0)
    return (before**2 - after**2) / (before**2 - floor**2)


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """One output: `expected` in float64 on the run's own inputs, `observed`, floor `variance`.

    All of one shape; `valid` is False for elements that do not count (padding, dead rows).
    """

    expected: Array
    observed: Array
    variance: Array
    valid: Mask

    @property
    def error(self) -> Array:
        """Observed - expected; NaN where either is not finite."""
        with np.errstate(invalid="ignore"):
            error = self.observed - self.expected
        return np.where(np.isfinite(error), error, np.nan)

    @property
    def used(self) -> Mask:
        """Elements that count and are finite on both sides."""
        return np.asarray(self.valid & np.isfinite(self.observed) & np.isfinite(self.expected))

    @property
    def scaled(self) -> Array:
        """Error over its own floor, element by element (z); 0 where it does not count."""
        error = np.where(self.used, self.error, 0.0)
        return error / np.sqrt(self._weights())

    @property
    def ratio(self) -> float:
        """Energy of the error over energy of the floor, as a root: R."""
        return self.remaining(self.expected)

    def wrong(self, limit: float = 6.0) -> Mask:
        """Elements further than `limit` floors off, or not finite on one side alone."""
        unlike = np.isfinite(self.observed) != np.isfinite(self.expected)
        return np.asarray((np.abs(self.scaled) > limit) | (unlike & self.valid))

    def remaining(self, predicted: Array) -> float:
        """R of what `predicted` leaves unexplained; infinite when non-finite values differ."""
        seen = self.valid & np.isfinite(self.observed)
        if not seen.any():
            return math.nan
        if (np.isfinite(predicted) != np.isfinite(self.observed))[self.valid].any():
            return math.inf
        left = (self.observed - predicted)[seen]
        return float(np.sqrt(np.mean(left**2) / np.mean(self._weights()[seen])))

    def fit(self, predicted: Array, *, parameters: int = 0) -> Fit:
        """Judge a prediction of the observed values, of the same shape.

        `parameters` numbers were fitted to the observation; many of them also swallow rounding that
        elements share, so they count only against an error well above the floor.
        """
        with np.errstate(invalid="ignore", over="ignore"):
            before, after = self.ratio, self.remaining(predicted)
            slope, sigmas, start, spread = self._regression(predicted)
        gross = after <= max(_FLOORS, _PART * before) and after < _HALF * before
        fine = (
            abs(slope - 1) <= _SLOPE
            and sigmas >= _SIGNIFICANT
            and after <= min(_ROUNDING, before)
            and spread <= _ROUNDING
        )
        enough = parameters <= FEW or before >= _FLOORS
        accepted = enough and (gross or fine)
        return Fit(before, after, slope, sigmas, start, spread, bool(accepted))

    def _regression(self, predicted: Array) -> tuple[float, float, float, float]:
        used = self.used & np.isfinite(predicted)
        weight = 1 / self._weights()[used]
        signal = (predicted - self.expected)[used]
        energy = float(np.sum(signal**2 * weight))
        left = (self.observed - predicted)[used]
        if left.size == 0:
            return math.nan, 0.0, math.nan, math.nan
        spread = float(np.sqrt(np.mean(left**2 * weight)))
        start = float(np.sqrt(np.mean(self.error[used] ** 2 * weight)))
        if energy == 0:
            return math.nan, 0.0, start, spread
        slope = float(np.sum(self.error[used] * signal * weight)) / energy
        return slope, slope * math.sqrt(energy) / max(1.0, spread), start, spread

    def _weights(self) -> Array:
        counted = self.used
        mean = float(np.mean(self.variance[counted])) if counted.any() else 0.0
        size = float(np.mean(self.expected[counted] ** 2)) if counted.any() else 1.0
        # An operator that only moves values has no floor: one rounding of float64 stands in.
        least = max(_EVEN * mean, size * 2.0**-104, 2.0**-400)
        return np.maximum(np.where(np.isfinite(self.variance), self.variance, least), least)

    def reshaped(self, turn: Callable[[Array], Array]) -> Discrepancy:
        """The same with every array put through `turn`, which only moves elements."""
        return Discrepancy(
            turn(self.expected), turn(self.observed), turn(self.variance), turn(self.valid)
        )

    def part(self, selection: Any) -> Discrepancy:
        """The same on a selection of elements, as an index of NumPy's."""
        return Discrepancy(
            self.expected[selection],
            self.observed[selection],
            self.variance[selection],
            self.valid[selection],
        )
