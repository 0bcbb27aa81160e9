"""The operands of a call as values: everything a reference function is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from analysis.replay.noise import Arithmetic, is_narrow
from analysis.replay.registry import Answers, Attributes, Function, Operands
from analysis.replay.rows import Rows
from analysis.replay.site import OperatorCall
from core.runs import Array
from core.tensors import TensorInfo

_REMEMBERED = 4


@dataclass(frozen=True, slots=True)
class Read:
    """Operands of one call with the outputs as dumped, all on the same rows.

    What a function made of them is kept, because fitting and judging ask for the same again.
    """

    call: OperatorCall
    rows: Rows
    given: Operands
    actual: Mapping[str, Array]
    tensors: Mapping[str, TensorInfo]
    answered: dict[tuple[object, ...], Answers] = field(default_factory=dict)

    def answers(self, function: Function, attributes: Attributes) -> Answers:
        """The function's outputs under these attributes; the last few are remembered."""
        complete = {**function.defaults, **attributes}
        key = (function.kind, *sorted((n, complete[n]) for n in function.options))
        if key not in self.answered:
            if len(self.answered) >= _REMEMBERED:
                self.answered.pop(next(iter(self.answered)))
            self.answered[key] = function(self.given, attributes)
        return self.answered[key]


def read(call: OperatorCall, function: Function, rows: Rows) -> Read:
    """Read a call's inputs, parameters, outputs and state; big ones on the sampled rows only."""
    actual = {n: rows.narrowed(rows.read(call, t, leads=True)) for n, t in call.outputs.items()}
    inputs = {
        name: rows.read(call, tensor, leads=number == 0)
        for number, (name, tensor) in enumerate(call.inputs.items())
    }
    inputs |= {n: _by_heads(inputs[n], shape) for n, shape in call.turned.items()}
    earlier = call.earlier if function.kind == "cache" else None
    some = rows.chosen is not None and rows.along != "leading"
    given = Operands(
        inputs=inputs,
        parameters={n: rows.parameter(call, t) for n, t in call.parameters.items()},
        shapes={n: v.shape for n, v in actual.items()},
        dtypes={n: t.dtype for n, t in call.outputs.items()},
        earlier={n: earlier.value(t) for n, t in earlier.outputs.items()} if earlier else {},
        positions=np.asarray(rows.chosen) if some else None,
    )
    return Read(call, rows, given, actual, call.outputs)


def _by_heads(x: Array, shape: tuple[int, ...]) -> Array:
    batch, heads, tokens, depth = shape
    return x.reshape(batch, tokens, heads, depth).transpose(0, 2, 1, 3)


def arithmetic(call: OperatorCall, tensor: TensorInfo, *, operands: str = "") -> Arithmetic:
    """Formats that the floor of one output depends on.

    A narrow result of wide inputs alone says by itself that the inputs were cast first: autocast
    runs a product in the narrow format and leaves its operands in the dump as they were.
    """
    given = (*call.inputs.values(), *call.parameters.values())
    narrow = [is_narrow(t.dtype) for t in given if "float" in t.dtype]
    cast = tensor.dtype if is_narrow(tensor.dtype) and not any(narrow) else ""
    return Arithmetic(
        storage=tensor.dtype,
        narrow=any(narrow) or is_narrow(tensor.dtype),
        operands=operands or cast,
    )
