"""Row norms opened up: statistic, epsilon, weight convention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analysis.findings.scene import Scene
from core.runs import Array

Statistic = Callable[[Array], Array]

KINDS = frozenset({"rms_norm", "layer_norm"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Norm:
    """x over the root of its mean square + eps, times weight; `centred` takes the mean off first.

    `one_plus`: the weight is stored as its distance from one.
    """

    values: Array
    weight: Array
    bias: Array
    eps: float
    centred: bool
    one_plus: bool

    def output(
        self,
        *,
        eps: float | None = None,
        centred: bool | None = None,
        one_plus: bool | None = None,
        statistic: Statistic | None = None,
        weight: Array | None = None,
    ) -> Array:
        """The norm with some parts changed; `weight` replaces the final multiplier."""
        x = self.values
        if self.centred if centred is None else centred:
            x = x - x.mean(-1, keepdims=True)
        square = statistic(x) if statistic else np.mean(x * x, -1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            root = 1 / np.sqrt(square + (self.eps if eps is None else eps))
            scaled = x * root
        if weight is None:
            plus = self.one_plus if one_plus is None else one_plus
            weight = self.weight + 1 if plus else self.weight
        return np.asarray(scaled * weight + self.bias)

    @property
    def square(self) -> Array:
        """Mean of squares of each row (…, 1), centred where the norm is."""
        x = self.values - self.values.mean(-1, keepdims=True) if self.centred else self.values
        return np.asarray(np.mean(x * x, -1, keepdims=True))


def norm_of(scene: Scene) -> Norm | None:
    """The model that gives the replayed output; None where none does."""
    values = next(iter(scene.given.floats), None)
    if scene.kind not in KINDS or values is None:
        return None
    weight = scene.given.parameter("weight", "gamma", "scale")
    bias = scene.given.parameter("bias", "beta")
    eps = scene.attribute("eps")
    epsilons = (float(eps),) if isinstance(eps, int | float) else (1e-6, 1e-5, 1e-8, 1e-12)
    for epsilon in epsilons:
        for centred in (False, True):
            for one_plus in (False, True):
                model = Norm(
                    values=values,
                    weight=np.ones(values.shape[-1]) if weight is None else weight,
                    bias=np.zeros(values.shape[-1]) if bias is None else bias,
                    eps=epsilon,
                    centred=centred,
                    one_plus=one_plus,
                )
                if _agrees(model, scene.error.expected):
                    return model
    return None


def _agrees(model: Norm, expected: Array) -> bool:
    found = model.output()
    if found.shape != expected.shape:
        return False
    finite = np.isfinite(found) & np.isfinite(expected)
    size = float(np.sqrt(np.mean(expected[finite] ** 2))) if finite.any() else 0.0
    return bool(np.all(np.abs(found - expected)[finite] <= 1e-6 * size))
