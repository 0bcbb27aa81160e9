"""The operands of a call as values: everything a reference function is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.replay.noise import Arithmetic, is_narrow
from analysis.replay.registry import Function, Operands
from analysis.replay.rows import Rows, taken
from analysis.replay.site import OperatorCall, exact_values
from core.runs import Array
from core.tensors import TensorInfo


@dataclass(frozen=True, slots=True)
class Read:
    """Operands of one call with the outputs as dumped, all on the same rows."""

    call: OperatorCall
    given: Operands
    actual: Mapping[str, Array]
    tensors: Mapping[str, TensorInfo]


def read(call: OperatorCall, function: Function, rows: Rows) -> Read:
    """Read a call's inputs, parameters, outputs and state; big ones on the sampled rows only."""

    def values(tensors: Mapping[str, TensorInfo]) -> dict[str, Array]:
        return {name: taken(call, tensor, function.rows, rows) for name, tensor in tensors.items()}

    actual = values(call.outputs)
    earlier = call.earlier if function.kind == "cache" else None
    return Read(
        call=call,
        given=Operands(
            inputs=values(call.inputs),
            parameters={n: parameter(call, t) for n, t in call.parameters.items()},
            shapes={n: v.shape for n, v in actual.items()},
            dtypes={n: t.dtype for n, t in call.outputs.items()},
            earlier={n: call.value(t) for n, t in earlier.outputs.items()} if earlier else {},
            positions=rows.tokens if function.rows == "query" else None,
        ),
        actual=actual,
        tensors=call.outputs,
    )


def parameter(call: OperatorCall, tensor: TensorInfo) -> Array:
    """A whole parameter in float64 or integers."""
    return exact_values(call.run.read(tensor.id), tensor.dtype)


def arithmetic(call: OperatorCall, tensor: TensorInfo, *, operands: str = "") -> Arithmetic:
    """Formats that the floor of one output depends on."""
    others = (*call.inputs.values(), *call.parameters.values(), tensor)
    return Arithmetic(
        storage=tensor.dtype, narrow=any(is_narrow(t.dtype) for t in others), operands=operands
    )
