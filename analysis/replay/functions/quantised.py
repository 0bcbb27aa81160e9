"""Quantised operators: codes and scales in, codes and scales out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from analysis.replay.functions.contraction import ROUNDING, Product, answer, product
from analysis.replay.functions.linear import bias_of
from analysis.replay.registry import Answer, Answers, Attributes, Operands, function
from core.errors import CompareError
from core.runs import Array
from language import say
from metrics import formats

# Largest code of each format that activations are quantised to.
_LARGEST = {"int8": 127.0, "float8_e4m3fn": 448.0, "float8_e4m3fnuz": 240.0, "float8_e5m2": 57344.0}


@function("quantise", qmax=("auto", 128.0, 240.0, 224.0), smallest=(1e-8,))
def quantise(given: Operands, attributes: Attributes) -> Answers:
    """Codes = x / scale, clipped; scale = max |x| / largest code, a token or a tensor at a time.

    The shape of the scale says which. A code is within half a step of x / scale, evenly: 1/12.
    """
    x = given.floats[0]
    dtype = given.dtypes["0"]
    top = _LARGEST.get(dtype, 127.0)
    top = top if attributes["qmax"] == "auto" else float(attributes["qmax"])
    shape = given.shapes.get("1", (1,))
    per_row = len(shape) == x.ndim and shape[:-1] == x.shape[:-1]
    peak = np.abs(x).max(-1, keepdims=True) if per_row else np.abs(x).max()
    scale = np.maximum(peak, float(attributes["smallest"])) / top
    codes = np.clip(x / scale, -top, top)
    steps = 1 / 12 if formats.kind(dtype) == "int" else 0.0
    return {
        "0": Answer(value=codes, steps=steps, compute=codes**2),
        "1": Answer(value=np.broadcast_to(scale, shape), compute=3 * np.abs(scale) ** 2),
    }


def _scale_of_weight(given: Operands, out_features: int) -> Array:
    """Scale of the weight by output channel, or the one of all."""
    weight = given.parameter("weight_scale", "weight_scale_inv", "scales")
    if weight is None:
        raise CompareError(say("The weight's scale was not captured."))
    if weight.size not in (1, out_features):
        raise CompareError(say("The weight's scale is neither one nor one a channel."))
    return weight.reshape(-1)


@function("quant_linear", rows="leading")
def quant_linear(given: Operands, _: Attributes) -> Answers:
    """(codes Wᵀ) · activation scale · weight scale + b; activations may come unquantised."""
    x = next(iter(given.inputs.values())).astype(np.float64)
    weight = given.parameter("weight", "qweight")
    if weight is None or weight.shape[-1] != x.shape[-1]:
        raise CompareError(say("The weight's codes were not captured."))
    floats = given.floats
    first_is_float = next(iter(given.inputs.values())).dtype.kind == "f"
    scales = floats[1:] if first_is_float else floats
    by_channel = _scale_of_weight(given, weight.shape[0])
    factor = (scales[0] if scales else 1.0) * by_channel
    made = product(x, weight.astype(np.float64).T)
    scaled = Product(made.value * factor, made.energy * factor**2, made.length)
    bias = bias_of(Operands(inputs={}, parameters=given.parameters))
    value = scaled.value if bias is None else scaled.value + bias
    return {"0": answer(scaled, value=value)}


@function("int4_linear", rows="leading", offset=(0.0, 8.0))
def int4_linear(given: Operands, attributes: Attributes) -> Answers:
    """The product x Wᵀ + b, W = (code - zero) · scale in groups along K and perhaps rounded."""
    weight, scale = given.parameter("weight", "qweight"), given.parameter("weight_scale", "scales")
    zero = given.parameter("weight_zero", "zeros", "qzeros")
    x = given.floats[0]
    if weight is None or scale is None or weight.shape[-1] != x.shape[-1]:
        raise CompareError(say("The weight's codes or scales were not captured."))
    groups = scale.reshape(weight.shape[0], -1)
    codes = weight.reshape(*groups.shape, -1).astype(np.float64)
    origin = np.asarray(float(attributes["offset"]))
    if zero is not None:
        origin = zero.reshape(groups.shape)[..., None].astype(np.float64)
    wide = ((codes - origin) * groups[..., None]).reshape(weight.shape)
    made = product(x, wide.T)
    bias = bias_of(Operands(inputs={}, parameters=given.parameters))
    value = made.value if bias is None else made.value + bias
    whole = answer(made, value=value, storage=ROUNDING * made.energy)
    return {"0": replace(whole, fixed_weights=True)}
