"""Mixture of experts: routing, one expert, and the weighted sum."""

from __future__ import annotations

import numpy as np

from analysis.replay.functions.activation import FORMS
from analysis.replay.functions.contraction import ROUNDING, product
from analysis.replay.functions.softmax import softmax_of
from analysis.replay.registry import Answer, Answers, Attributes, Operands, function
from core.errors import CompareError
from language import say

# Ties: probabilities closer than this share of themselves may sort either way in 16-bit kernels.
_TIE = 2.0**-7


@function(
    "route",
    rows="leading",
    renormalised=(True, False),
    scoring=("softmax", "sigmoid", "softmax_after"),
    biased=(True, False),
)
def route(given: Operands, attributes: Attributes) -> Answers:
    """The top k experts of each token and their weights; a correction bias only selects.

    `softmax_after` takes the softmax over the chosen logits. Ids whose neighbours in rank lie
    within a 16-bit rounding of them are free.
    """
    logits, k = given.floats[0], given.shapes["0"][-1]
    scores = 1 / (1 + np.exp(-logits)) if attributes["scoring"] == "sigmoid" else softmax_of(logits)
    bias = given.parameter("bias", "e_score_correction_bias")
    ranked = scores + bias if bias is not None and attributes["biased"] else scores
    order = np.argsort(-ranked, -1, kind="stable")
    chosen = order[..., :k]
    weights = np.take_along_axis(scores, chosen, -1)
    if attributes["scoring"] == "softmax_after":
        weights = softmax_of(np.take_along_axis(logits, chosen, -1))
    elif attributes["renormalised"]:
        weights = weights / weights.sum(-1, keepdims=True)
    in_order = np.take_along_axis(ranked, order, -1)
    close = np.abs(np.diff(in_order, axis=-1)) <= _TIE * np.abs(in_order[..., :-1])
    tied = np.zeros(in_order.shape, bool)
    tied[..., :-1] |= close
    tied[..., 1:] |= close
    spread = weights**2 * (4 + ROUNDING * logits.shape[-1])
    return {
        "0": Answer(
            value=weights,
            compute=spread,
            storage=ROUNDING * weights**2,
            common_compute=4.0,
            common_storage=ROUNDING,
        ),
        "1": Answer(value=chosen, free=tied[..., :k], exact=True),
    }


def _stacked(given: Operands) -> tuple[np.ndarray, np.ndarray]:
    """Gate and up stacked as one weight, and the way down."""
    both = given.parameter("w13", "gate_up_proj", "gate_up_proj.weight")
    gate = given.parameter("w1", "gate_proj", "gate_proj.weight")
    up = given.parameter("w3", "up_proj", "up_proj.weight")
    down = given.parameter("w2", "down_proj", "down_proj.weight")
    if both is None and gate is not None and up is not None:
        both = np.concatenate((gate, up))
    if both is None or down is None:
        raise CompareError(say("The expert's weights were not captured."))
    return both, down


@function("expert", rows="leading", form=("silu", "gelu", "gelu_tanh"))
def expert(given: Operands, attributes: Attributes) -> Answers:
    """(act(gate) · up) W2ᵀ; what stands between the products may be rounded at every step."""
    both, down = _stacked(given)
    x = given.floats[0]
    first = product(x, both.T)
    gate, up = np.split(first.value, 2, -1)
    curve = FORMS[str(attributes["form"])]
    acted = curve(gate)
    step = 2.0**-10 * (1 + np.abs(gate))
    slope = (curve(gate + step) - curve(gate - step)) / (2 * step)
    made = product(acted * up, down.T)

    def passed_on(variance: np.ndarray) -> np.ndarray:
        of_gate, of_up = np.split(np.broadcast_to(variance, first.value.shape), 2, -1)
        inner = of_gate * (slope * up) ** 2 + of_up * acted**2
        return np.asarray(inner @ down.T**2)

    rounded = passed_on(ROUNDING * first.value**2)
    between = 2 * ROUNDING * (acted * up) ** 2 @ down.T**2
    return {
        "0": Answer(
            value=made.value,
            compute=made.compute + passed_on(first.compute) + (acted * up) ** 2 @ down.T**2,
            storage=rounded + between,
            operands=made.operands + passed_on(first.operands),
            accumulators=made.accumulators + passed_on(first.accumulators),
            common_compute=4.0,
            common_storage=ROUNDING,
        )
    }


@function("combine", rows="leading")
def combine(given: Operands, _: Attributes) -> Answers:
    """The sum over a token's experts, weighted; the products may be rounded."""
    parts, weights = given.floats[:2]
    terms = parts * weights[..., None]
    energy = (terms**2).sum(-2)
    spread = ROUNDING * energy * (terms.shape[-2] + 1)
    return {"0": Answer(value=terms.sum(-2), compute=spread, storage=ROUNDING * energy)}
