"""Convolutions, through torch's float64 kernels."""

from __future__ import annotations

from typing import Any

from analysis.replay.functions.contraction import Product, answer
from analysis.replay.registry import Answers, Attributes, Operands, function
from core.errors import CompareError
from core.findings import Fact
from core.runs import Array
from language import say


def _sizes(value: Fact, found: list[int]) -> list[int]:
    """An attribute for each axis: a number, or several (`"2, 2"`); `found` where it is `auto`."""
    if value == "auto":
        return found
    said = [int(part) for part in str(value).strip("[]()").split(",") if part.strip()]
    return said * len(found) if len(said) == 1 else said


def _geometry(given: Operands, weight: Array, attributes: Attributes) -> dict[str, Any]:
    """How the kernel moves; what was not recorded follows from the sizes of input and output."""
    inner, kernel = given.floats[0].shape[2:], weight.shape[2:]
    outer = given.shapes["0"][2:]
    dilation = _sizes(attributes["dilation"], [1] * len(kernel))
    axes = list(zip(inner, outer, strict=True))
    stride = _sizes(attributes["stride"], [max(1, round(n / max(1, m))) for n, m in axes])
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    missing = [(m - 1) * s + r - n for (n, m), s, r in zip(axes, stride, reach, strict=True)]
    padding = _sizes(attributes["padding"], [max(0, (lack + 1) // 2) for lack in missing])
    groups = given.floats[0].shape[1] // weight.shape[1]
    return {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


@function("convolution", stride=("auto",), padding=("auto",), dilation=(1,))
def convolution(given: Operands, attributes: Attributes) -> Answers:
    """Cross-correlation over one to three spatial axes, plus bias."""
    from torch import from_numpy, nn  # a second of import that other operators do without

    x, weight = given.floats[0], given.parameter("weight")
    if weight is None or weight.ndim not in (3, 4, 5):
        raise CompareError(say("The convolution's weight was not captured."))
    axes = weight.ndim - 2
    run = (nn.functional.conv1d, nn.functional.conv2d, nn.functional.conv3d)[axes - 1]
    how = _geometry(given, weight, attributes)

    def applied(a: Array, b: Array) -> Array:
        made: Array = run(from_numpy(a.copy()), from_numpy(b.copy()), **how).numpy()
        return made

    made = Product(applied(x, weight), applied(x**2, weight**2), weight[0].size)
    bias = given.parameter("bias")
    shaped = None if bias is None else made.value + bias.reshape(-1, *[1] * axes)
    return {"0": answer(made, value=shaped)}
