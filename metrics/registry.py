"""The registry of metrics: a metric is a function of `PairStats`, its docstring the help text."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from core.stats import PairStats, SideStats
from language import say

Compute = Callable[[PairStats], float]
Unit = Literal["data", "1", "dB", "bits", "ulp", "elements"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A number about a pair; `metric(stats)` computes it, NaN where it is undefined.

    `name` is its id everywhere. `unit` `data` is that of the tensor's own values, `1` a pure ratio.
    `ideal` is what equal tensors score: 0, 1 or inf; None when the metric describes one side only
    and so has no better or worse. `family` is the module it stands in.
    """

    name: str
    label: str
    unit: Unit
    ideal: float | None
    family: str
    compute: Compute

    def __call__(self, stats: PairStats) -> float:
        return float(self.compute(stats))

    def __reduce__(self) -> tuple[Callable[[str], Metric], tuple[str]]:
        return registered, (self.name,)  # the function's own name now means the metric

    @property
    def help(self) -> str:
        """What it measures, formula, range, when it is NaN, what it cannot see."""
        return inspect.getdoc(self.compute) or ""


_METRICS: dict[str, Metric] = {}

METRICS: Mapping[str, Metric] = MappingProxyType(_METRICS)


def registered(name: str) -> Metric:
    """The metric of that name."""
    return _METRICS[name]


def metric(label: str, *, unit: Unit, ideal: float | None = None) -> Callable[[Compute], Metric]:
    """Register the decorated function under its own name, in the family of its module."""

    def register(compute: Compute) -> Metric:
        name = compute.__name__
        if name in _METRICS:
            raise ValueError(f"metric {name!r} is registered twice")
        family = compute.__module__.rpartition(".")[2]
        _METRICS[name] = Metric(name, label, unit, ideal, family, compute)
        return _METRICS[name]

    return register


def side_metrics(
    label: str, *, unit: Unit
) -> Callable[[Callable[[SideStats], float]], Callable[[SideStats], float]]:
    """Register the decorated function of one side twice, as `<name>_reference` and `_candidate`.

    `{side}` in its docstring becomes the name of the side.
    """

    def register(compute: Callable[[SideStats], float]) -> Callable[[SideStats], float]:
        for side in ("reference", "candidate"):
            of_side = _of_side(compute, side)
            of_side.__name__ = f"{compute.__name__}_{side}"
            of_side.__doc__ = (compute.__doc__ or "").replace("{side}", side)
            of_side.__module__ = compute.__module__
            metric(say("{label}, {side}", label=say(label), side=say(side)), unit=unit)(of_side)
        return compute

    return register


def _of_side(compute: Callable[[SideStats], float], side: str) -> Compute:
    return lambda stats: compute(getattr(stats, side))
