"""Rotary position embedding of queries and keys."""

from __future__ import annotations

import numpy as np

from analysis.replay.functions.contraction import ROUNDING
from analysis.replay.registry import Answer, Answers, Attributes, Operands, function
from core.errors import CompareError
from core.runs import Array
from language import say


def angles(positions: Array, *, dim: int, base: float) -> Array:
    """(…, S, dim / 2) in radians: position times base^(-2i / dim)."""
    turned: Array = positions[..., None] * base ** (-np.arange(0, dim, 2) / dim)
    return turned


def _rotated(x: Array, phase: Array, attributes: Attributes) -> Answer:
    """One tensor turned; `phase` broadcasts against half of its last axis."""
    dim = 2 * phase.shape[-1]
    part, rest = x[..., :dim], x[..., dim:]
    interleaved = bool(attributes["interleaved"])
    half = dim // 2
    a, b = (
        (part[..., 0::2], part[..., 1::2]) if interleaved else (part[..., :half], part[..., half:])
    )
    scale = float(attributes["scale"])
    cos, sin = np.cos(phase) * scale, np.sin(phase) * scale
    if attributes["inverse"]:
        sin = -sin
    energy = (a * a + b * b) * scale**2
    # Sine and cosine within an ulp, two products, a sum; the phase itself is rounded twice.
    compute = energy * (2 * ROUNDING + 0.5 + phase**2 * (2 * ROUNDING + 0.5))
    table = np.broadcast_to(2 * ROUNDING * energy, compute.shape)

    def joined(first: Array, second: Array, tail: Array) -> Array:
        if interleaved:
            pair = np.stack((first, second), -1).reshape(*first.shape[:-1], dim)
        else:
            pair = np.concatenate((first, second), -1)
        return np.concatenate((pair, tail), -1)

    still = np.zeros_like(rest)
    return Answer(
        value=joined(a * cos - b * sin, a * sin + b * cos, rest),
        compute=joined(compute, compute, still),
        storage=joined(table, table, still),
    )


def _phase(given: Operands, x: Array, attributes: Attributes) -> Array:
    """The angles, to broadcast over heads: positions (S,) or (B, S), tokens on either axis."""
    if not given.whole:
        raise CompareError(say("The positions were not captured."))
    dim = attributes["rotary_dim"]
    dim = x.shape[-1] if dim == "auto" else int(dim)
    positions = given.whole[0]
    phase = angles(positions.astype(np.float64), dim=dim, base=float(attributes["base"]))
    axis = attributes["token_axis"]
    axis = _token_axis(x, positions) if axis == "auto" else int(axis)
    if x.ndim != 4:
        return phase
    phase = phase.reshape(-1, positions.shape[-1], dim // 2)
    return phase[:, None] if axis == 2 else phase[:, :, None]


def _token_axis(x: Array, positions: Array) -> int:
    tokens = positions.shape[-1]
    return 1 if x.ndim == 4 and x.shape[2] != tokens and x.shape[1] == tokens else 2


@function(
    "rope",
    rows="token",
    continuous={"base": 1.02, "scale": 1.02},
    base=(1e4, 5e5, 1e6, 1e5, 1e3, 1e7, 2.5e5),
    interleaved=(False, True),
    inverse=(False, True),
    scale=(1.0,),
    rotary_dim=("auto",),
    token_axis=("auto", 1, 2),
)
def rope(given: Operands, attributes: Attributes) -> Answers:
    """Each pair of channels turned by position · base^(-2i/d); pairs are halves or neighbours."""
    tensors = [x for x in given.floats if x.ndim >= 3]
    if not tensors:
        raise CompareError(say("Rotary embedding needs a tensor to turn."))
    phase = _phase(given, tensors[0], attributes)
    return {str(n): _rotated(x, phase, attributes) for n, x in enumerate(tensors)}
