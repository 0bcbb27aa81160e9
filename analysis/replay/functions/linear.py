"""Linear layers: plain, row-parallel, with LoRA."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from analysis.replay.functions.contraction import ROUNDING, Product, answer, product
from analysis.replay.registry import Answers, Attributes, Operands, function
from core.errors import CompareError
from core.findings import Fact
from core.runs import Array
from language import say


def weight_of(given: Operands, attributes: Attributes) -> Array:
    """The weight as (in, out), whichever way round it is stored or used."""
    weight = given.parameter("weight", "w", "kernel")
    floats = given.floats
    if weight is None:
        weight = next((v for v in floats[1:] if v.ndim == 2), None)
    if weight is None or weight.ndim != 2:
        raise CompareError(say("The weight was not captured."))
    fits = weight.shape[1] == floats[0].shape[-1]
    as_stored = fits and not attributes.get("transposed", False)
    return weight.T if as_stored or weight.shape[0] != floats[0].shape[-1] else weight


def bias_of(given: Operands) -> Array | None:
    """The bias, from the parameters or, for functional calls, among the inputs."""
    bias = given.parameter("bias", "b")
    if bias is None:
        bias = next((v for v in given.floats[1:] if v.ndim == 1), None)
    return bias


def _plain(given: Operands, attributes: Attributes) -> tuple[Product, Array]:
    made = product(given.floats[0], weight_of(given, attributes))
    bias = bias_of(given)
    return made, made.value if bias is None else made.value + bias


@function("linear", rows="leading", columns=True, transposed=(False, True))
def linear(given: Operands, attributes: Attributes) -> Answers:
    """The product x Wᵀ + b; one rounding, another where the bias is added apart."""
    made, value = _plain(given, attributes)
    apart = ROUNDING * made.value**2 if bias_of(given) is not None else 0.0
    return {"0": answer(made, value=value, storage=apart)}


@function("row_linear", rows="leading", columns=True, transposed=(False, True))
def row_linear(given: Operands, attributes: Attributes) -> Answers:
    """The product x Wᵀ + b whose K is spread over ranks; partial sums and sum are rounded.

    The partial sums of independent terms have together the energy of the terms.
    """
    made, value = _plain(given, attributes)
    return {"0": answer(made, value=value, storage=ROUNDING * (made.energy + made.value**2))}


def _lora_parts(given: Operands, attributes: Attributes) -> tuple[Product, Array, Product, Product]:
    down, up = given.parameter("lora_A", "A"), given.parameter("lora_B", "B")
    if down is None or up is None:
        raise CompareError(say("The adapter's weights were not captured."))
    made, value = _plain(given, attributes)
    narrow = product(given.floats[0], down.T)
    return made, value, narrow, product(narrow.value, up.T)


def _estimate(given: Operands, outputs: Mapping[str, Array]) -> Mapping[str, Fact]:
    """The adapter's scale as the slope of (output - base) on the delta."""
    _, base, _, delta = _lora_parts(given, {})
    energy = float(np.sum(delta.value**2))
    return {"scale": float(np.sum((outputs["0"] - base) * delta.value)) / energy} if energy else {}


@function(
    "lora_linear",
    rows="leading",
    continuous={"scale": 1.02},
    estimate=_estimate,
    scale=(2.0, 1.0, 0.5, 4.0),
    transposed=(False, True),
)
def lora_linear(given: Operands, attributes: Attributes) -> Answers:
    """The sum x Wᵀ + b + scale · (x Aᵀ) Bᵀ; base, inner product and delta may be rounded."""
    made, base, narrow, delta = _lora_parts(given, attributes)
    scale = float(attributes["scale"])
    up = given.parameter("lora_B", "B")
    inner = narrow.value**2 @ (up.T**2) if up is not None else 0.0
    storage = ROUNDING * (base**2 + 2 * scale**2 * (delta.value**2 + inner))
    whole = answer(made, value=base + scale * delta.value, storage=storage)
    return {"0": replace(whole, common_storage=ROUNDING)}
