"""Softmax, plain and with a mask, and losses made of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from analysis.replay.functions.contraction import ROUNDING
from analysis.replay.registry import Answer, Answers, Attributes, Operands, function
from core.errors import CompareError
from core.runs import Array
from language import say

# The sum of a row's exponentials and the reciprocal of it, within ulps.
_COMMON = 4.0


def softmax_of(scores: Array, allowed: Array | None = None) -> Array:
    """Along the last axis; a row without any allowed entry gives zeros."""
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = e.sum(-1, keepdims=True)
    shares: Array = e / np.where(total == 0, 1.0, total)
    return shares


def relative_variance(scores: Array) -> Array:
    """Of p = softmax(s), in u² of the arithmetic: the difference s - max, two exponentials in ulps,
    the sum over K, the division.
    """
    top = scores.max(-1, keepdims=True)
    below = np.where(np.isfinite(scores), scores - np.where(np.isfinite(top), top, 0.0), 0.0)
    spread: Array = ROUNDING * below**2 + 2 + ROUNDING * scores.shape[-1] / 3 + ROUNDING
    return spread


@function("softmax", dim=(-1,))
def softmax(given: Operands, attributes: Attributes) -> Answers:
    """exp(s - max) over its sum, along `dim`."""
    axis = int(attributes["dim"])
    scores = np.moveaxis(given.floats[0], axis, -1)
    p = softmax_of(scores)
    floor = np.moveaxis(p**2 * relative_variance(scores), -1, axis)
    shares = np.moveaxis(p, -1, axis)
    return {"0": Answer(value=shares, compute=floor, common_compute=_COMMON)}


@function("log_softmax", dim=(-1,))
def log_softmax(given: Operands, attributes: Attributes) -> Answers:
    """Scores less their maximum, less log of the sum of exp(s - max), along `dim`."""
    axis = int(attributes["dim"])
    scores = np.moveaxis(given.floats[0], axis, -1)
    below = scores - scores.max(-1, keepdims=True)
    value = below - np.log(np.exp(below).sum(-1, keepdims=True))
    floor = 2 + ROUNDING * (below**2 + value**2)
    turned = {"value": np.moveaxis(value, -1, axis), "compute": np.moveaxis(floor, -1, axis)}
    return {"0": Answer(**turned)}


def _masked_operands(given: Operands) -> tuple[Array, Array]:
    scores = given.floats[0]
    if given.masks:
        return scores, np.broadcast_to(given.masks[0], scores.shape)
    if len(given.floats) > 1:
        scores = scores + given.floats[1]
        return scores, scores > -1e4
    raise CompareError(say("The mask was not captured."))


def _leaks(given: Operands, _: Attributes) -> Mapping[str, Mapping[str, Array]]:
    """How weights move when masked scores become a constant, or keep their own value, lowered."""
    scores, allowed = _masked_operands(given)
    held = np.where(allowed, scores, -np.inf)
    top = held.max(-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    total = np.exp(held - top).sum(-1, keepdims=True)
    p = np.exp(held - top) / np.where(total == 0, 1.0, total)
    found = {}
    for name, level in (("leak_constant", np.zeros_like(scores)), ("leak_added", scores)):
        leaked = np.where(allowed, 0.0, np.exp(level - top) / np.where(total == 0, 1.0, total))
        found[name] = {"0": leaked - p * leaked.sum(-1, keepdims=True)}
    return found


@function("masked_softmax", directions=_leaks)
def masked_softmax(given: Operands, _: Attributes) -> Answers:
    """Softmax over the allowed keys; rows without any are free (a convention, not a value)."""
    scores, allowed = _masked_operands(given)
    p = softmax_of(scores, allowed)
    floor = p**2 * relative_variance(np.where(allowed, scores, -np.inf))
    none = np.broadcast_to(~allowed.any(-1, keepdims=True), scores.shape)
    return {"0": Answer(value=p, compute=floor, free=none, common_compute=_COMMON)}


@function("cross_entropy", ignore_index=(-100,), reduction=("mean", "sum", "none"))
def cross_entropy(given: Operands, attributes: Attributes) -> Answers:
    """-log softmax(logits)[label], averaged over the labels that count."""
    logits, labels = given.floats[0], given.whole[0].reshape(-1)
    flat = logits.reshape(-1, logits.shape[-1])
    counted = labels != int(attributes["ignore_index"])
    below = flat - flat.max(-1, keepdims=True)
    log_total = np.log(np.exp(below).sum(-1))
    losses = log_total - below[np.arange(labels.size), np.where(counted, labels, 0)]
    losses = np.where(counted, losses, 0.0)
    how = attributes["reduction"]
    if how == "none":
        return {"0": Answer(value=losses, compute=2 + ROUNDING * losses**2)}
    total = losses.sum() / (max(1, counted.sum()) if how == "mean" else 1)
    spread = (2 + ROUNDING * labels.size) * (1 + total**2)
    return {"0": Answer(value=np.asarray(total), compute=spread)}
