"""Convolutions, through torch's float64 kernels."""

from __future__ import annotations

from typing import Any

from analysis.replay.functions.contraction import Product, answer
from analysis.replay.registry import Answers, Attributes, Operands, function
from core.errors import CompareError
from core.findings import Fact
from core.runs import Array
from language import say


def _sizes(value: Fact, axes: int) -> Any:
    """An attribute as torch wants it: a number, or one for each axis (`"2, 2"`)."""
    if isinstance(value, str):
        found = [int(part) for part in value.strip("[]()").split(",") if part.strip()]
        return found * axes if len(found) == 1 else found
    return int(value)


@function("convolution", stride=(1,), padding=(0,), dilation=(1,), groups=(1,))
def convolution(given: Operands, attributes: Attributes) -> Answers:
    """Cross-correlation over one to three spatial axes, plus bias."""
    from torch import from_numpy, nn  # a second of import that other operators do without

    x, weight = given.floats[0], given.parameter("weight")
    if weight is None or weight.ndim not in (3, 4, 5):
        raise CompareError(say("The convolution's weight was not captured."))
    axes = weight.ndim - 2
    run = (nn.functional.conv1d, nn.functional.conv2d, nn.functional.conv3d)[axes - 1]
    how = {k: _sizes(attributes[k], axes) for k in ("stride", "padding", "dilation")}
    how["groups"] = int(attributes["groups"])

    def applied(a: Array, b: Array) -> Array:
        made: Array = run(from_numpy(a.copy()), from_numpy(b.copy()), **how).numpy()
        return made

    made = Product(applied(x, weight), applied(x**2, weight**2), weight[0].size)
    bias = given.parameter("bias")
    shaped = None if bias is None else made.value + bias.reshape(-1, *[1] * axes)
    return {"0": answer(made, value=shaped)}
