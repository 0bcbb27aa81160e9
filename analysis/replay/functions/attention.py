"""Attention as one operator: scores, soft cap, mask, softmax and context together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from analysis.replay.functions.contraction import (
    ROUNDING,
    Product,
    as_shaped,
    product,
    repeated_heads,
)
from analysis.replay.functions.softmax import relative_variance, softmax_of
from analysis.replay.registry import Answer, Answers, Attributes, Operands, function
from core.errors import CompareError
from core.runs import Array
from language import say


@dataclass(frozen=True, slots=True)
class Attended:
    """Everything between q, k, v and the output: (B, H, Q, K) scores and weights, (B, H, K, D) v.

    `score` is q kᵀ with `slope` the derivative of what follows it (scale, soft cap), `allowed`
    the mask as booleans.
    """

    scores: Array
    weights: Array
    allowed: Array
    values: Array
    output: Array
    score: Product
    slope: Array


def attended(given: Operands, attributes: Attributes) -> Attended:
    """Attention over heads-first operands. CompareError where the shapes are not attention's."""
    q, k, v, bias = _operands(given, attributes)
    tiled = bool(attributes["tiled"])
    k, v = (repeated_heads(t, q.shape[1], tiled=tiled) for t in (k, v))
    made = product(q, k.swapaxes(-1, -2))
    scale, cap = attributes["scale"], float(attributes["softcap"])
    scale = q.shape[-1] ** -0.5 if scale == "auto" else float(scale)
    scores, slope = made.value * scale, np.full_like(made.value, scale)
    if cap:
        scores = cap * np.tanh(scores / cap)
        slope = scale * (1 - (scores / cap) ** 2)
    scores = scores if bias is None else scores + bias
    allowed = _allowed(given, attributes, scores)
    weights = softmax_of(scores, allowed)
    return Attended(scores, weights, allowed, v, weights @ v, made, slope)


def _operands(given: Operands, attributes: Attributes) -> tuple[Array, Array, Array, Array | None]:
    floats = [_headed(x, attributes, n) for n, x in enumerate(given.floats[:3])]
    if len(floats) < 3 or any(x.ndim != 4 for x in floats):
        raise CompareError(say("Attention needs queries, keys and values by head."))
    layout = attributes["layout"]
    seen = given.floats[0].shape
    tokens_first = layout == "bshd" or (layout == "auto" and _tokens_first(floats, given))
    if tokens_first and len(seen) == 4:
        floats = [x.transpose(0, 2, 1, 3) for x in floats]
    q, k, v = floats
    if q.shape[1] % k.shape[1] or k.shape[:3] != v.shape[:3] or q.shape[-1] != k.shape[-1]:
        raise CompareError(say("The shapes of queries, keys and values are not attention's."))
    return q, k, v, (given.floats[3] if len(given.floats) > 3 else None)


def _headed(x: Array, attributes: Attributes, position: int) -> Array:
    """(B, S, H·D) as (B, H, S, D) where the number of heads was recorded."""
    heads = attributes["num_heads"] if position == 0 else attributes["num_kv_heads"]
    heads = attributes["num_heads"] if heads == "auto" else heads
    if x.ndim != 3 or heads == "auto":
        return x
    return x.reshape(*x.shape[:2], int(heads), -1).transpose(0, 2, 1, 3)


def _tokens_first(floats: list[Array], given: Operands) -> bool:
    """Whether the token axis comes before the heads: by the mask, else by which axis agrees."""
    q, k = floats[0].shape, floats[1].shape
    mask = next(iter(given.masks), None)
    if mask is not None and mask.ndim == 4:
        keys = mask.shape[-1]
        return bool(keys == k[1] and keys != k[2])
    return bool(q[1] % k[1] != 0 or (q[2] % k[2] == 0 and k[2] < k[1]))


def _allowed(given: Operands, attributes: Attributes, scores: Array) -> Array:
    mask = next(iter(given.masks), None)
    queries, keys = scores.shape[-2:]
    allowed = np.isfinite(scores) & (scores > -1e4)
    if mask is not None:
        allowed = allowed & (
            mask if mask.ndim != 2 or mask.shape[0] == queries else mask[:, None, None]
        )
    rows = np.arange(queries) if given.positions is None else given.positions
    total = queries if given.positions is None else keys
    behind = (rows + keys - total)[:, None] - np.arange(keys)[None]
    causal = attributes["causal"]
    if causal is True or (causal == "auto" and attributes.get("is_causal") is True):
        allowed = allowed & (behind >= 0)
    if attributes["window"]:
        allowed = allowed & (behind < int(attributes["window"]))
    return np.broadcast_to(allowed, scores.shape)


def _leaks(given: Operands, attributes: Attributes) -> Mapping[str, Mapping[str, Array]]:
    """How the output moves when masked scores become a constant, or keep their value, lowered."""
    a = attended(given, attributes)
    held = np.where(a.allowed, a.scores, -np.inf)
    top = held.max(-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    total = np.exp(held - top).sum(-1, keepdims=True)
    total = np.where(total == 0, 1.0, total)
    found = {}
    for name, level in (("leak_constant", np.zeros_like(top)), ("leak_added", a.scores)):
        leaked = np.where(a.allowed, 0.0, np.exp(level - top) / total)
        moved = leaked @ a.values - a.output * leaked.sum(-1, keepdims=True)
        found[name] = {"0": as_shaped(moved, given.shapes["0"])}
    return found


@function(
    "attention",
    rows="query",
    continuous={"scale": 1.02, "softcap": 1.05},
    directions=_leaks,
    scale=("auto", 1.0),
    softcap=(0.0, 30.0, 50.0, 20.0),
    causal=("auto", True, False),
    tiled=(False, True),
    window=(0,),
    layout=("auto", "bhsd", "bshd"),
    num_heads=("auto",),
    num_kv_heads=("auto",),
)
def attention(given: Operands, attributes: Attributes) -> Answers:
    """softmax(cap(q kᵀ · scale) where allowed) v, with grouped heads; P may be rounded to storage.

    Errors of scores move the output by p (v - o); rounding P moves it by p v.
    """
    a = attended(given, attributes)
    held = np.where(a.allowed, a.scores, -np.inf)
    context = product(a.weights, a.values)
    shape = given.shapes["0"]

    def passed_on(relative: Array) -> Array:
        pull = a.weights**2 * relative
        squares = pull @ a.values**2 - 2 * a.output * (pull @ a.values)
        through: Array = squares + a.output**2 * pull.sum(-1, keepdims=True)
        return np.maximum(through, 0.0)

    rounded = relative_variance(held) + a.score.compute * a.slope**2
    none = np.broadcast_to(~a.allowed.any(-1, keepdims=True), a.output.shape)
    scores = a.score
    return {
        "0": Answer(
            value=as_shaped(a.output, shape),
            compute=as_shaped(passed_on(rounded) + context.compute, shape),
            storage=as_shaped(ROUNDING * context.energy, shape),
            operands=as_shaped(passed_on(scores.operands * a.slope**2) + context.operands, shape),
            accumulators=as_shaped(
                passed_on(scores.accumulators * a.slope**2) + context.accumulators, shape
            ),
            common_compute=4.0,
            common_storage=ROUNDING,
            free=as_shaped(none, shape),
        )
    }
