"""Activations, alone and as gates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from analysis.replay.functions.contraction import ROUNDING
from analysis.replay.registry import Answer, Answers, Attributes, Operands, function
from core.runs import Array

_erf = np.frompyfunc(math.erf, 1, 1)
_GELU_TANH = math.sqrt(2 / math.pi)


def _sigmoid(x: Array) -> Array:
    made: Array = 0.5 * (1 + np.tanh(x / 2))
    return np.where(x < -15, np.exp(np.minimum(x, 0)) / (1 + np.exp(np.minimum(x, 0))), made)


FORMS: Mapping[str, Callable[[Array], Array]] = {
    "silu": lambda x: x * _sigmoid(x),
    "gelu": lambda x: 0.5 * x * (1 + np.asarray(_erf(x / math.sqrt(2)), np.float64)),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(_GELU_TANH * (x + 0.044715 * x**3))),
    "quick_gelu": lambda x: x * _sigmoid(1.702 * x),
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "hard_silu": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "softplus": lambda x: np.logaddexp(x, 0),
}


def _floor(x: Array, y: Array) -> Array:
    """In u²: the function within ulps, exp's argument, and 1 + tanh or erf where it cancels.

    Three ulps rms: conformance suites grant 16 to 34 at worst (WebNN: tanh 16, gelu 18, sigmoid
    34).
    """
    near: Array = y**2 * (9 + 2 * ROUNDING + ROUNDING * x**2) + np.where(x < 0, x**2 / 4, 0.0)
    return near


@function("activation", rows="leading", form=tuple(FORMS))
def activation(given: Operands, attributes: Attributes) -> Answers:
    """One of the known curves, elementwise, rounded once."""
    x = given.floats[0]
    y = FORMS[str(attributes["form"])](x)
    return {"0": Answer(value=y, compute=_floor(x, y))}


@function("act_mul", rows="leading", form=tuple(FORMS), swapped=(False, True))
def act_mul(given: Operands, attributes: Attributes) -> Answers:
    """act(gate) · up, from halves of one tensor or from two; eager code rounds the activation."""
    floats = given.floats
    gate, up = floats[:2] if len(floats) > 1 else np.split(floats[0], 2, -1)
    if attributes["swapped"]:
        gate, up = up, gate
    curve = FORMS[str(attributes["form"])](gate)
    value = curve * up
    compute = _floor(gate, curve) * up**2 + ROUNDING * value**2
    return {"0": Answer(value=value, compute=compute, storage=ROUNDING * value**2)}
