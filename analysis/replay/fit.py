"""Attributes that a dump does not record, fitted to the reference until it is at its floor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from analysis.replay.local import Local, local_error
from analysis.replay.noise import variance
from analysis.replay.operands import Read, arithmetic
from analysis.replay.registry import Attributes, Function
from core.errors import CompareError
from core.findings import Fact
from core.runs import Array

# R up to which the reference counts as reproduced; honest operators reach 1.27 (6750 measured).
AT_FLOOR = 1.5
# A listed value replaces the default when it explains this much more squared error in units of the
# floor (7 standard deviations); a free value only when the listed ones leave R above AT_FLOOR.
CLEARLY = 50.0
_CLOSE = frozenset({"form"})
_GOLDEN = (math.sqrt(5) - 1) / 2
# Floats handed in that no function can be applied to end as one of these.
UNFIT = (CompareError, ValueError, IndexError, KeyError, TypeError, ZeroDivisionError)


@dataclass(frozen=True, slots=True)
class Fit:
    """Attributes of an operator and how well the reference follows them.

    `names` are those that were fitted, `operands` the format of matrix operands, R the largest
    among the outputs.
    """

    attributes: dict[str, Fact]
    names: tuple[str, ...]
    operands: str
    ratio: float


def measured(
    read: Read,
    function: Function,
    attributes: Attributes,
    valid: Mapping[str, Array],
    operands: str,
) -> dict[str, Local]:
    """Local error of every output that the function gives, under these attributes."""
    answers = read.answers(function, attributes)
    found = {}
    for name, actual in read.actual.items():
        answer = answers.get(name)
        if answer is not None and np.shape(answer.value) == actual.shape:
            tensor = read.tensors[name]
            floor = variance(answer, arithmetic(read.call, tensor, operands=operands))
            found[name] = local_error(answer, actual, floor, valid[name], tensor.dtype)
    return found


def fit(
    read: Read,
    function: Function,
    known: Attributes,
    valid: Mapping[str, Array],
    start: Attributes,
) -> Fit | None:
    """Fit what `known` leaves open; None where the function cannot be applied at all.

    `start` are defaults for this call where it has better ones than the function.

    Listed values first, one attribute at a time, then the function's own estimate, then free values
    by golden section; each is kept only if it improves the fit clearly.
    """
    search = _Search(read, function, known, valid, start)
    search.listed()
    if search.ratio() > AT_FLOOR:
        search.estimated()
        search.free()
        search.listed()
    search.settle()
    if not search.applied:
        return None
    operands = search.operand_format()
    names = tuple(n for n, v in search.best.items() if search.initial.get(n) != v)
    return Fit(search.best, names, operands, search.ratio(operands))


class _Search:
    """Coordinate descent over attributes; the cost is the squared error in units of the floor."""

    def __init__(
        self,
        read: Read,
        function: Function,
        known: Attributes,
        valid: Mapping[str, Array],
        start: Attributes,
    ) -> None:
        self.read, self.function, self.valid = read, function, valid
        self.known = frozenset(known)
        self.initial: dict[str, Fact] = {**function.defaults, **start, **known}
        self.best = dict(self.initial)
        self.applied = False
        self.lowest = math.inf

    def cost(self, attributes: Attributes) -> float | None:
        """Squared error over floor, summed; None where the function does not apply."""
        try:
            found = measured(self.read, self.function, attributes, self.valid, "")
        except UNFIT:
            return None
        if not found:
            return None
        self.applied = True
        total = 0.0
        for each in found.values():
            with np.errstate(over="ignore"):
                total += float(np.sum(each.scaled**2)) + 1e6 * each.nonfinite
        return total

    def ratio(self, operands: str = "") -> float:
        """Largest R among the outputs under the best attributes."""
        try:
            found = measured(self.read, self.function, self.best, self.valid, operands)
        except UNFIT:
            return math.inf
        return max((each.ratio for each in found.values()), default=math.inf)

    def listed(self) -> None:
        """Try the listed values of every open attribute, twice round.

        At the floor already, only of those whose values are close enough to hide below it.
        """
        first = self.cost(self.best)
        self.lowest = math.inf if first is None else first
        close = self.ratio() <= AT_FLOOR
        for _ in range(2):
            before = self.lowest
            for name, values in self.function.options.items():
                hides = name in self.function.continuous or name in _CLOSE
                if name not in self.known and (hides or not close):
                    for value in values:
                        self._try({**self.best, name: value})
            if self.lowest == before:
                return

    def _try(self, attributes: dict[str, Fact], needed: float = CLEARLY) -> bool:
        cost = self.cost(attributes)
        if cost is None or not (cost < self.lowest - needed or self.lowest == math.inf > cost):
            return False
        self.best, self.lowest = attributes, cost
        return True

    def estimated(self) -> None:
        """Take the function's own solution from operands and outputs."""
        if self.function.estimate is None:
            return
        try:
            solved = self.function.estimate(self.read.given, self.read.actual)
        except UNFIT:
            return
        self._try({**self.best, **{n: v for n, v in solved.items() if n not in self.known}})

    def free(self) -> None:
        """Golden section on the logarithm of every continuous attribute, within a factor of ten.

        The attribute that alone explains most comes first: fitted in any other order, one (the
        scale of scores) takes over a part of what another (their soft cap) does.
        """
        left = [n for n in self.function.continuous if n not in self.known and self._numeric(n)]
        while left and self.ratio() > AT_FLOOR:
            solved = {name: self._solved(name) for name in left}
            best = min(left, key=lambda name: self._at(name, solved[name]))
            if not self._try({**self.best, best: solved[best]}):
                return
            left.remove(best)

    def _solved(self, name: str) -> float:
        start = self._numeric(name)
        return _golden(partial(self._at, name), start / 10, start * 10)

    def settle(self) -> None:
        """Back to the default wherever that costs little: an attribute fitted early may be idle."""
        for name in self.function.options:
            default = self.initial[name]
            if name not in self.known and self.best[name] != default:
                cost = self.cost({**self.best, name: default})
                if cost is not None and cost < self.lowest + CLEARLY:
                    self.best, self.lowest = {**self.best, name: default}, cost

    def _numeric(self, name: str) -> float:
        value = self.best[name]
        if value == "auto" and name == "scale" and self.read.given.floats:
            return float(self.read.given.floats[0].shape[-1] ** -0.5)
        if value == 0:  # off by default: begin with the first value that is on
            value = next((v for v in self.function.options[name] if v), 0.0)
        return float(value) if isinstance(value, int | float) else 0.0

    def _at(self, name: str, value: float) -> float:
        cost = self.cost({**self.best, name: value})
        return math.inf if cost is None or math.isnan(cost) else cost

    def operand_format(self) -> str:
        """Whether the reference itself rounds matrix operands: TF32 or bf16 inside float32."""
        before = self.ratio()
        if before <= AT_FLOOR or math.isinf(before):
            return ""
        for name in ("tf32", "bfloat16"):
            if self.ratio(name) <= AT_FLOOR:
                return name
        return ""


def _golden(cost: Callable[[float], float], low: float, high: float) -> float:
    """Minimum of a function between two positive values: the best of 25 grid points, refined."""
    grid = np.geomspace(low, high, 25)
    best = int(np.argmin([cost(float(x)) for x in grid]))
    a, b = math.log(grid[max(0, best - 1)]), math.log(grid[min(24, best + 1)])
    for _ in range(40):
        left, right = b - _GOLDEN * (b - a), a + _GOLDEN * (b - a)
        if cost(math.exp(left)) <= cost(math.exp(right)):
            b = right
        else:
            a = left
    return math.exp((a + b) / 2)
