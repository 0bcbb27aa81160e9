"""Matrix products of two activations: plain, attention scores, attention context."""

from __future__ import annotations

import numpy as np

from analysis.replay.functions.contraction import (
    ROUNDING,
    Product,
    as_shaped,
    product,
    repeated_heads,
)
from analysis.replay.registry import Answer, Answers, Attributes, Operands, function
from core.errors import CompareError
from core.runs import Array
from language import say


def _form(a: Array, b: Array, out: tuple[int, ...]) -> str:
    """How two operands multiply: `plain`, `scores` (a bᵀ) or `context` (heads join)."""
    if a.shape[-1] == b.shape[-2] and out[-2:] == (a.shape[-2], b.shape[-1]):
        plain = b.ndim == 2 or a.shape[:-2] == b.shape[:-2]
        if plain and len(out) == max(a.ndim, b.ndim):
            return "plain"
    if a.shape[-1] == b.shape[-1] and out[-2:] == (a.shape[-2], b.shape[-2]):
        return "scores"
    return "context" if a.shape[-1] == b.shape[-2] else "unknown"


def _made(a: Array, b: Array, form: str, tiled: bool) -> Product:
    if form == "plain":
        return product(a, b)
    if a.ndim != 4 or b.ndim != 4 or a.shape[1] % b.shape[1]:
        raise CompareError(say("The operands of the matrix product do not fit."))
    b = repeated_heads(b, a.shape[1], tiled=tiled)
    return product(a, b.swapaxes(-1, -2) if form == "scores" else b)


@function(
    "matmul",
    continuous={"scale": 1.02, "softcap": 1.05},
    form=("auto", "plain", "scores", "context"),
    scale=("auto", 1.0),
    softcap=(0.0, 30.0, 50.0, 20.0),
    tiled=(False, True),
)
def matmul(given: Operands, attributes: Attributes) -> Answers:
    """The product a b, or q kᵀ · scale with a soft cap, or p v with the heads joined.

    `auto` scale is 1 for a plain product and d^-½ for scores.
    """
    operands = given.floats
    if len(operands) < 2 or min(operands[0].ndim, operands[1].ndim) < 2:
        raise CompareError(say("A matrix product needs two operands."))
    out = given.shapes["0"]
    form = str(attributes["form"])
    form = _form(operands[0], operands[1], out) if form == "auto" else form
    made = _made(operands[0], operands[1], form, bool(attributes["tiled"]))
    scale = attributes["scale"]
    if scale == "auto":
        scale = operands[0].shape[-1] ** -0.5 if form == "scores" else 1.0
    return {"0": _scaled(made, float(scale), float(attributes["softcap"]), out)}


def _scaled(made: Product, scale: float, cap: float, out: tuple[int, ...]) -> Answer:
    value = made.value * scale
    slope: Array | float = scale
    if cap:
        value = cap * np.tanh(value / cap)
        slope = scale * (1 - (value / cap) ** 2)
    unfused = ROUNDING * value**2 if scale != 1 or cap else 0.0
    if made.value.shape != out:
        return Answer(
            value=as_shaped(value, out),
            compute=as_shaped(made.compute * slope**2, out),
            operands=as_shaped(made.operands * slope**2, out),
            accumulators=as_shaped(made.accumulators * slope**2, out),
        )
    return Answer(
        value=value,
        compute=(made.compute * slope**2) + ROUNDING * value**2 * (scale != 1),
        storage=unfused,
        operands=made.operands * slope**2,
        accumulators=made.accumulators * slope**2,
    )
