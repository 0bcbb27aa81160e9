"""Matched tests: what the energy ratio averages away.

Each test projects the local error on a pattern and asks how many standard deviations of the floor
the projection is. A pattern that holds a small fault shows it where R cannot: a slope of 0.15 %
over 6000 elements is 70 standard deviations and R 1.3 (taxonomy §5; numerics.md §6).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analysis.replay.fit import UNFIT
from analysis.replay.noise import common_variance, unit_of_arithmetic
from analysis.replay.registry import Attributes, Function
from analysis.replay.result import Part
from core.findings import Fact
from core.runs import Array

# Of all rows at once only what is this many times further out counts: what rows share is known to
# a factor, and many rows tell a small one apart.
_MANY = 3.0


@dataclass(frozen=True, slots=True)
class Pattern:
    """One projection: `z` in standard deviations, and its share of the judged error's energy.

    `amount` is how much of the pattern the error holds, NaN where the pattern has no unit.
    """

    name: str
    z: float
    share: float
    amount: float = math.nan


class Projections:
    """The local error of one side of one output, whitened, and tests of it."""

    def __init__(self, part: Part) -> None:
        side, local = part.side, part.local
        self.part = part
        with np.errstate(all="ignore"):
            deviation = np.sqrt(side.variance)
            self.counts = local.judged & (side.variance > 0) & np.isfinite(side.variance)
            self.deviation = np.where(self.counts, deviation, 1.0)
            self.error = np.where(self.counts, local.scaled, 0.0)
            self.unit = np.where(self.counts, side.expected / self.deviation, 0.0)
        self.energy = float(np.sum(self.error**2))
        dtype = side.tensor.dtype
        self._row = common_variance(side.answer, dtype)
        # Constants and weights may each have been rounded once to the format of the arithmetic.
        self._whole = unit_of_arithmetic(dtype) ** 2 / 2

    def usable(self) -> bool:
        """Whether there is a finite error of a float output to look at."""
        return self.energy > 0 and self.unit.dtype.kind == "f" and math.isfinite(self.energy)

    def along(self, name: str, moved: Array) -> Pattern:
        """Projection on a change of the output, in the tensor's unit.

        The noise of the projection counts errors that a row, or the whole tensor, may share.
        """
        with np.errstate(all="ignore"):
            pattern = np.where(self.counts, moved / self.deviation, 0.0)
        pattern = np.where(np.isfinite(pattern), pattern, 0.0)
        norm = float(np.sum(pattern**2))
        if norm == 0 or not math.isfinite(norm):
            return Pattern(name, 0.0, 0.0)
        scale = np.sum(pattern * self.unit, -1) if pattern.ndim else pattern * self.unit
        noise = norm + self._row * float(np.sum(scale**2)) + self._whole * float(np.sum(scale)) ** 2
        projected = float(np.sum(self.error * pattern))
        share = projected**2 / norm / self.energy
        return Pattern(name, projected / math.sqrt(noise), share, projected / norm)

    def rows(self) -> Iterator[Pattern]:
        """The worst row's factor and all together, the worst column's factor and its offset."""
        if self.error.ndim < 2:
            return
        before = tuple(range(self.error.ndim - 1))
        ones = self.counts.astype(np.float64)
        yield self._worst("row_factor", self.unit, self.error.ndim - 1, self._row + self._whole)
        if self.part.side.answer.fixed_weights:
            return
        yield self._worst("column_factor", self.unit, before, self._whole)
        yield self._worst("column_offset", ones, before, 0.0)

    def _worst(
        self, name: str, pattern: Array, axis: int | tuple[int, ...], shared: float
    ) -> Pattern:
        projected, norm = np.sum(self.error * pattern, axis), np.sum(pattern**2, axis)
        with np.errstate(all="ignore"):
            z = np.where(norm > 0, projected / np.sqrt(norm + shared * norm**2), 0.0)
            explained = np.where(norm > 0, projected**2 / norm, 0.0)
        worst = int(np.argmax(np.abs(z)))
        largest = float(z.flat[worst])
        if name == "row_factor" and self.part.side.answer.common_compute:
            largest = max(abs(largest), _together(z, norm > 0) / _MANY)
        return Pattern(name, largest, float(np.sum(explained)) / self.energy)


def _together(z: Array, used: Array) -> float:
    """All rows at once, by chi-square: many a little off count as one far off.

    Only where the function says what a row may share; rounded operands of a product share too.
    """
    number = max(1, int(np.count_nonzero(used)))
    return (float(np.sum(z**2)) - number) / math.sqrt(2 * number)


def patterns(part: Part, function: Function | None, attributes: Attributes) -> Iterator[Pattern]:
    """Every test of one side of one output: slope, rows, columns, other attributes, leaks."""
    if part.side.expected.dtype.kind != "f" or not math.isfinite(part.local.ratio):
        return
    tested = Projections(part)
    if not tested.usable():
        return
    yield tested.along("slope", part.side.expected)
    yield from tested.rows()
    if function is not None:
        for name, moved in _directions(part, function, attributes):
            yield tested.along(name, moved)


def _directions(
    part: Part, function: Function, attributes: Attributes
) -> Iterator[tuple[str, Array]]:
    """Changes of the output under other attributes, and under leaks the function knows of."""
    side, name = part.side, part.side.tensor.argument
    for label, changed in variants(function, attributes):
        try:
            answer = function(side.given, {**attributes, **changed}).get(name)
        except UNFIT:
            continue
        if answer is not None and np.shape(answer.value) == side.expected.shape:
            yield label, answer.value - side.expected
    if function.directions is None:
        return
    try:
        known = function.directions(side.given, {**function.defaults, **attributes})
    except UNFIT:
        return
    for label, outputs in known.items():
        moved = outputs.get(name)
        if moved is not None and moved.shape == side.expected.shape:
            yield label, moved


def variants(function: Function, attributes: Attributes) -> Iterator[tuple[str, dict[str, Fact]]]:
    """Other values of each attribute: every listed one, and a nudge of the continuous ones."""
    now = {**function.defaults, **attributes}
    for name, values in function.options.items():
        factor = function.continuous.get(name)
        value = now[name]
        if factor is not None and isinstance(value, int | float) and value:
            yield name, {name: float(value) * factor}
        elif factor is None:
            for other in values:
                if other not in (value, "auto"):
                    yield name, {name: other}
