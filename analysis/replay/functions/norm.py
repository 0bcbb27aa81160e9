"""Normalisations: over the last axis, or over a batch."""

from __future__ import annotations

import numpy as np

from analysis.replay.functions.contraction import ROUNDING
from analysis.replay.registry import Answer, Answers, Attributes, Operands, function
from core.runs import Array

_EPS = (1e-6, 1e-5, 1e-8, 1e-12, 1e-7, 1e-4, 1e-3)


def _affine(given: Operands) -> tuple[Array | None, Array | None]:
    weight, bias = given.parameter("weight", "gamma", "scale"), given.parameter("bias", "beta")
    if weight is None:
        weight = next((v for v in given.floats[1:] if v.ndim == 1), None)
    return weight, bias


def _floor(value: Array, length: int) -> Array:
    """Variance of a mean over K, of rsqrt within one ulp, and of two products, in u²."""
    coefficient: Array = value**2 * (ROUNDING * length / 12 + 1 + 2 * ROUNDING)
    return coefficient


@function(
    "rms_norm",
    rows="leading",
    continuous={"eps": 1.2},
    eps=_EPS,
    plus_one=(False, True),
    centred=(False, True),
)
def rms_norm(given: Operands, attributes: Attributes) -> Answers:
    """The row x / sqrt(mean(x²) + eps) · w, or · (1 + w); eager code rounds before the weight."""
    x = given.floats[0]
    weight, bias = _affine(given)
    if attributes["centred"]:
        x = x - x.mean(-1, keepdims=True)
    value = x / np.sqrt((x * x).mean(-1, keepdims=True) + float(attributes["eps"]))
    if weight is not None:
        value = value * (weight + 1 if attributes["plus_one"] else weight)
    floor = _floor(value, x.shape[-1])
    value = value if bias is None else value + bias
    common = 1 + ROUNDING * (1 + x.shape[-1] / 12)
    return {
        "0": Answer(value=value, compute=floor, storage=ROUNDING * value**2, common_compute=common)
    }


@function("layer_norm", rows="leading", continuous={"eps": 1.2}, eps=(1e-5, *_EPS))
def layer_norm(given: Operands, attributes: Attributes) -> Answers:
    """(x - mean) / sqrt(var + eps) · w + b; kernels round x · scale and mean · scale apart."""
    x = given.floats[0]
    weight, bias = _affine(given)
    mean = x.mean(-1, keepdims=True)
    scale = 1 / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + float(attributes["eps"]))
    gain = scale if weight is None else scale * weight
    value = (x - mean) * gain
    # The mean of values that cancel is off by a share of their size, not of its own.
    size = (x * x).mean(-1, keepdims=True)
    floor = _floor(value, x.shape[-1]) + 2 * ROUNDING * gain**2 * (mean**2 + x**2 + size)
    inner = value**2
    value = value if bias is None else value + bias
    return {
        "0": Answer(
            value=value,
            compute=floor + value**2,
            storage=ROUNDING * inner,
            common_compute=2 + ROUNDING * (1 + x.shape[-1] / 12),
        )
    }


@function("batch_norm", continuous={"eps": 1.2}, eps=(1e-5, *_EPS), batch_statistics=(False, True))
def batch_norm(given: Operands, attributes: Attributes) -> Answers:
    """(x - mean) / sqrt(var + eps) · w + b for each channel (axis 1).

    Mean and variance are the running ones, or those of the batch: in training, and where none are
    kept. Kernels fold them into x · a + c, whose terms may cancel, and round them to storage.
    """
    x = given.floats[0]
    mean, variance = given.parameter("running_mean"), given.parameter("running_var")
    others = tuple(n for n in range(x.ndim) if n != 1)
    if attributes["batch_statistics"] or mean is None or variance is None:
        mean, variance = x.mean(others), x.var(others)
    across = (-1, *[1] * (x.ndim - 2))
    weight, bias = _affine(given)
    gain = 1 / np.sqrt(variance + float(attributes["eps"]))
    gain = (gain if weight is None else gain * weight).reshape(across)
    mean = mean.reshape(across)
    inner = (x - mean) * gain
    value = inner if bias is None else inner + bias.reshape(across)
    floor = _floor(inner, x.size // x.shape[1]) + value**2
    folded = gain**2 * (x**2 + mean**2)
    storage = ROUNDING * (inner**2 + folded)
    return {"0": Answer(value=value, compute=floor + 4 * ROUNDING * folded, storage=storage)}
