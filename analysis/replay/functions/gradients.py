"""Backward passes: gradients of inputs and parameters in float64, by kind of the forward operator.

A vector-Jacobian product of each reference function, written out; curves are differentiated
numerically (fourth order, 1e-12 relative).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from analysis.replay.functions.activation import FORMS
from analysis.replay.functions.attention import Attended, attended
from analysis.replay.functions.contraction import ROUNDING
from analysis.replay.functions.linear import bias_of, weight_of
from analysis.replay.functions.rope import rope
from analysis.replay.functions.softmax import softmax_of
from analysis.replay.registry import Attributes, Operands
from core.errors import CompareError
from core.runs import Array
from language import say

# Gradients by slot: `input.0`, `parameter.weight`.
Gradients = Mapping[str, Array]
# Variance of what cancels inside a backward pass, in squared unit roundoffs of its format.
Cancelled = Callable[[Operands, Attributes, Sequence[Array]], Gradients]
Backward = Callable[[Operands, Attributes, Sequence[Array]], Gradients]
GRADIENTS: dict[str, Backward] = {}
CANCELLED: dict[str, Cancelled] = {}


def gradient(*kinds: str) -> Callable[[Backward], Backward]:
    """Register the backward pass of forward operators."""

    def register(backward: Backward) -> Backward:
        GRADIENTS.update(dict.fromkeys(kinds, backward))
        return backward

    return register


def slope(curve: Callable[[Array], Array], x: Array) -> Array:
    """Derivative of an elementwise curve, by five points."""
    h = 1e-3
    near, far = curve(x + h) - curve(x - h), curve(x + 2 * h) - curve(x - 2 * h)
    return np.asarray((8 * near - far) / (12 * h))


def _flat(x: Array) -> Array:
    return x.reshape(-1, x.shape[-1])


def _reduced(gradient_: Array, shape: tuple[int, ...]) -> Array:
    """A gradient summed over the axes along which its operand was broadcast."""
    extra = gradient_.ndim - len(shape)
    summed = gradient_.sum(tuple(range(extra))) if extra else gradient_
    axes = tuple(n for n, size in enumerate(shape) if size == 1 and summed.shape[n] != 1)
    return np.asarray(summed.sum(axes, keepdims=True) if axes else summed)


@gradient("linear", "row_linear")
def linear(given: Operands, attributes: Attributes, into: Sequence[Array]) -> Gradients:
    """Gradients dx = dy W; dW = dyᵀ x and db = Σ dy over all tokens."""
    x, dy = given.floats[0], into[0]
    weight = weight_of(given, attributes)
    found = {"input.0": dy @ weight.T, "parameter.weight": _flat(dy).T @ _flat(x)}
    if bias_of(given) is not None:
        found["parameter.bias"] = _flat(dy).sum(0)
    return found


@gradient("matmul")
def matmul(given: Operands, attributes: Attributes, into: Sequence[Array]) -> Gradients:
    """Of a plain product a b."""
    a, b = given.floats[:2]
    if a.shape[-1] != b.shape[-2] or attributes["form"] not in ("auto", "plain"):
        raise CompareError(say("Only plain products are differentiated."))
    dy = into[0]
    return {
        "input.0": _reduced(dy @ b.swapaxes(-1, -2), a.shape),
        "input.1": _reduced(a.swapaxes(-1, -2) @ dy, b.shape),
    }


@gradient("rms_norm", "layer_norm")
def norm(given: Operands, attributes: Attributes, into: Sequence[Array]) -> Gradients:
    """Gradient dx = r (g - x̂ mean(g x̂)), g = w dy, less mean(g) where the mean was taken off."""
    x, dy = given.floats[0], into[0]
    weight, bias = given.parameter("weight", "gamma", "scale"), given.parameter("bias", "beta")
    centred = attributes.get("centred", "centred" not in attributes)
    x = x - x.mean(-1, keepdims=True) if centred else x
    r = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + float(attributes["eps"]))
    unit = x * r
    gain = 1.0 if weight is None else weight + (1 if attributes.get("plus_one") else 0)
    g = dy * gain
    dx = g - unit * (g * unit).mean(-1, keepdims=True)
    dx = dx - g.mean(-1, keepdims=True) if centred else dx
    found = {"input.0": r * dx, "parameter.weight": _flat(dy * unit).sum(0)}
    if bias is not None:
        found["parameter.bias"] = _flat(dy).sum(0)
    return found


def _norm_accumulated(given: Operands, attributes: Attributes, into: Sequence[Array]) -> Gradients:
    """Sums over tokens that a kernel may keep in the gradient's own format: 0.18 K / 2 of the
    energy of the terms. torch's CPU kernels do (R up to 3.4 without it, measured).
    """
    x, dy = given.floats[0], _flat(into[0])
    centred = attributes.get("centred", "centred" not in attributes)
    x = x - x.mean(-1, keepdims=True) if centred else x
    unit = _flat(x / np.sqrt((x * x).mean(-1, keepdims=True) + float(attributes["eps"])))
    steps = ROUNDING * len(dy) / 2
    terms = {"weight": (dy * unit) ** 2, "bias": dy**2}
    return {f"parameter.{name}": steps * energy.sum(0) for name, energy in terms.items()}


CANCELLED["rms_norm"] = CANCELLED["layer_norm"] = _norm_accumulated


@gradient("softmax")
def softmax(given: Operands, attributes: Attributes, into: Sequence[Array]) -> Gradients:
    """Gradient p (dy - Σ p dy) along `dim`."""
    axis = int(attributes["dim"])
    p = np.moveaxis(softmax_of(np.moveaxis(given.floats[0], axis, -1)), -1, axis)
    return {"input.0": p * (into[0] - (p * into[0]).sum(axis, keepdims=True))}


@gradient("attention")
def attention(given: Operands, attributes: Attributes, into: Sequence[Array]) -> Gradients:
    """Gradients dv = pᵀ do, dq = ds k, dk = dsᵀ q with ds = p (do vᵀ - Σ p do vᵀ) · slope."""
    a, do, repeated = _attention_parts(given, attributes, into)
    q, k, v = given.floats[:3]
    dp = do @ a.values.swapaxes(-1, -2)
    ds = a.weights * (dp - (dp * a.weights).sum(-1, keepdims=True)) * a.slope
    return {
        "input.0": ds @ repeated,
        "input.1": _folded(ds.swapaxes(-1, -2) @ q, k.shape),
        "input.2": _folded(a.weights.swapaxes(-1, -2) @ do, v.shape),
    }


def _attention_parts(
    given: Operands, attributes: Attributes, into: Sequence[Array]
) -> tuple[Attended, Array, Array]:
    """The forward pass, the gradient of the output by head, and the keys for each query head."""
    a = attended(given, attributes)
    q, k = given.floats[:2]
    if q.shape != a.output.shape[:3] + q.shape[3:]:
        raise CompareError(say("Only heads-first attention is differentiated."))
    do = into[0]
    if do.ndim == 3:
        do = do.reshape(*do.shape[:2], q.shape[1], -1).transpose(0, 2, 1, 3)
    return a, do, np.repeat(k, q.shape[1] // k.shape[1], 1)


def _folded(x: Array, shape: tuple[int, ...]) -> Array:
    """The gradient of a repeated head, summed over its repetitions."""
    return np.asarray(x.reshape(x.shape[0], shape[1], -1, *x.shape[2:]).sum(2)).reshape(shape)


def _attention_cancelled(
    given: Operands, attributes: Attributes, into: Sequence[Array]
) -> Gradients:
    """The difference dp - Σ p dp: with one key nothing is left but the rounding of both terms."""
    a, do, repeated = _attention_parts(given, attributes, into)
    q, k = given.floats[:2]
    dp = np.abs(do) @ np.abs(a.values).swapaxes(-1, -2)
    both = dp**2 + (a.weights * dp).sum(-1, keepdims=True) ** 2
    ds = a.weights**2 * both * a.slope**2
    return {
        "input.0": ds @ repeated**2,
        "input.1": _folded(ds.swapaxes(-1, -2) @ q**2, k.shape),
    }


CANCELLED["attention"] = _attention_cancelled


@gradient("rope")
def rotary(given: Operands, attributes: Attributes, into: Sequence[Array]) -> Gradients:
    """The opposite turn."""
    turned = Operands(
        inputs={**{f"g{n}": g for n, g in enumerate(into)}, "positions": given.whole[0]},
        shapes={str(n): g.shape for n, g in enumerate(into)},
    )
    back = rope(turned, {**attributes, "inverse": not attributes["inverse"]})
    return {f"input.{n}": answer.value for n, answer in back.items()}


@gradient("activation")
def activation(given: Operands, attributes: Attributes, into: Sequence[Array]) -> Gradients:
    """Gradient dy f'(x)."""
    return {"input.0": into[0] * slope(FORMS[str(attributes["form"])], given.floats[0])}


@gradient("act_mul")
def act_mul(given: Operands, attributes: Attributes, into: Sequence[Array]) -> Gradients:
    """Of act(gate) · up, for halves of one tensor or for two."""
    floats = given.floats
    gate, up = floats[:2] if len(floats) > 1 else np.split(floats[0], 2, -1)
    curve = FORMS[str(attributes["form"])]
    of_gate, of_up = into[0] * up * slope(curve, gate), into[0] * curve(gate)
    if len(floats) > 1:
        return {"input.0": of_gate, "input.1": of_up}
    return {"input.0": np.concatenate((of_gate, of_up), -1)}


@gradient("mul")
def mul(given: Operands, attributes: Attributes, into: Sequence[Array]) -> Gradients:
    """Gradients dy b and dy a."""
    floats = given.floats
    if len(floats) < 2:
        return {"input.0": into[0] * float(attributes.get("other", 1.0))}
    a, b = floats[:2]
    return {"input.0": _reduced(into[0] * b, a.shape), "input.1": _reduced(into[0] * a, b.shape)}


@gradient("add")
def add(given: Operands, attributes: Attributes, into: Sequence[Array]) -> Gradients:
    """The gradient dy to each term."""
    alpha = float(attributes.get("alpha", 1))
    return {
        f"input.{n}": _reduced(into[0] * (alpha if n else 1), x.shape)
        for n, x in enumerate(given.floats)
    }


@gradient("identity")
def identity(given: Operands, _: Attributes, into: Sequence[Array]) -> Gradients:
    """The gradient as it comes."""
    return {"input.0": into[0].reshape(next(iter(given.inputs.values())).shape)}


@gradient("embedding")
def embedding(given: Operands, attributes: Attributes, into: Sequence[Array]) -> Gradients:
    """The gradient dy added to the rows that were looked up."""
    weight = given.parameter("weight")
    if weight is None:
        raise CompareError(say("The table was not captured."))
    found = np.zeros(weight.shape)
    np.add.at(found, given.whole[0].reshape(-1), _flat(into[0]) * float(attributes["scale"]))
    return {"parameter.weight": found}
