"""Softmax with a mask, in float64 or with its parts in 16 bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from analysis.findings.rounding import round_to
from core.runs import Array

Mask = NDArray[np.bool_]


def masked_softmax(
    scores: Array,
    mask: Mask | None,
    *,
    leak: float = -np.inf,
    softmax: Callable[[Array], Array] | None = None,
) -> Array:
    """Probabilities along the last axis; a row without any allowed key gives zeros.

    `leak` is what masked scores are set to; `softmax` replaces the plain one.
    """
    soft = softmax or plain_softmax
    if mask is None:
        return soft(scores)
    allowed = np.broadcast_to(mask, scores.shape)
    some = allowed.any(-1, keepdims=True)
    masked = np.where(allowed, scores, leak)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(some, soft(np.where(some, masked, 0.0)), 0.0)


def plain_softmax(scores: Array) -> Array:
    """exp(s - max) over its sum, along the last axis."""
    with np.errstate(invalid="ignore"):
        grown = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(grown / grown.sum(-1, keepdims=True))


def narrow_softmax(dtype: str, *, steps: str) -> Callable[[Array], Array]:
    """A softmax whose `steps` are rounded to a 16-bit format.

    `all`: scores, exponents, exponentials, running sum and quotient; `exp`: exponentials and
    quotient; `sum`: the running sum alone.
    """

    def soft(scores: Array) -> Array:
        every = steps == "all"
        given = round_to(scores, dtype) if every else scores
        below = given - given.max(-1, keepdims=True)
        grown = np.exp(round_to(below, dtype) if every else below)
        if steps != "sum":
            grown = round_to(grown, dtype)
        total = _running_sum(grown, dtype) if steps != "exp" else grown.sum(-1)
        found = grown / total[..., None]
        return found if steps == "sum" else round_to(found, dtype)

    return soft


def _running_sum(values: Array, dtype: str) -> Array:
    total = np.zeros(values.shape[:-1])
    for index in range(values.shape[-1]):
        total = round_to(total + values[..., index], dtype)
    return total
