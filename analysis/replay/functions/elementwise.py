"""Sums, products and copies, elementwise: one rounding of the exact result."""

from __future__ import annotations

import numpy as np

from analysis.replay.functions.contraction import ROUNDING
from analysis.replay.registry import Answer, Answers, Attributes, Operands, function
from core.errors import CompareError
from core.runs import Array
from language import say


def _two(given: Operands, attributes: Attributes) -> tuple[Array, Array]:
    """The operands; a number among the attributes stands for the one that is no tensor."""
    tensors = (*given.inputs.values(), *given.parameters.values())
    values = [v.astype(np.float64) for v in tensors]
    other = attributes.get("other", attributes.get("arg1"))
    if len(values) == 1 and isinstance(other, int | float):
        values.append(np.asarray(float(other)))
    if len(values) < 2:
        raise CompareError(say("The other operand was not captured."))
    return values[0], values[1]


@function("add", rows="leading")
def add(given: Operands, attributes: Attributes) -> Answers:
    """The sum a + alpha · b, and further terms; three or more are rounded on the way."""
    a, b = _two(given, attributes)
    total = a + float(attributes.get("alpha", 1)) * b
    between: Array | float = 0.0
    for more in list(given.inputs.values())[2:]:
        between = between + ROUNDING * total**2
        total = total + more
    return {"0": Answer(value=total, storage=between)}


@function("sub", rows="leading")
def sub(given: Operands, attributes: Attributes) -> Answers:
    """The difference a - b."""
    a, b = _two(given, attributes)
    return {"0": Answer(value=a - b)}


@function("mul", rows="leading")
def mul(given: Operands, attributes: Attributes) -> Answers:
    """The product a · b."""
    a, b = _two(given, attributes)
    return {"0": Answer(value=a * b)}


@function("div", rows="leading")
def div(given: Operands, attributes: Attributes) -> Answers:
    """The quotient a / b."""
    a, b = _two(given, attributes)
    return {"0": Answer(value=a / b)}


@function("identity", rows="leading")
def identity(given: Operands, _: Attributes) -> Answers:
    """What was handed in, cast to the output's format: dropout at rest, a cast, a copy."""
    first = next(iter(given.inputs.values()))
    shape = given.shapes["0"]
    if first.size != int(np.prod(shape)):
        raise CompareError(say("The output is no copy of the input."))
    return {"0": Answer(value=first.reshape(shape), exact=first.dtype.kind != "f")}
