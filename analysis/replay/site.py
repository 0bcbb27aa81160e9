"""One operator call as a run left it, and one place under suspicion in both runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from analysis.replay.registry import Answer, Attributes, Function, Operands
from core.comparison import Comparison
from core.findings import Fact
from core.runs import Array, Run, Selection
from core.tensors import TensorInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCall:
    """One call of an operator in one run: its tensors by argument, in the order of the arguments.

    `gradients_in` are the gradients of the outputs as handed in (`backward_input`), `gradients_out`
    those of the inputs as handed on, `parameter_gradients` those of the parameters. `attributes`
    are scalars as recorded. `earlier` is the same operator's call one step before, if any. Inputs
    in `turned` are another operator's output, (B, S, H·D), read as (B, H, S, D) of that shape.
    """

    run: Run
    module: str
    module_class: str
    op: str
    step: int | None
    rank: int | None
    call: int
    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]
    parameters: Mapping[str, TensorInfo] = field(default_factory=dict)
    gradients_in: Mapping[str, TensorInfo] = field(default_factory=dict)
    gradients_out: Mapping[str, TensorInfo] = field(default_factory=dict)
    parameter_gradients: Mapping[str, TensorInfo] = field(default_factory=dict)
    attributes: Attributes = field(default_factory=dict)
    earlier: OperatorCall | None = None
    turned: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def operator(self) -> str:
        """Dotted path of the operator, as in `TensorInfo.operator`."""
        return f"{self.module}.{self.op}" if self.module and self.op else self.module or self.op

    @property
    def order(self) -> int:
        """Position of the call in execution order: that of its first output, else of any tensor."""
        groups = (self.outputs, self.gradients_in, self.gradients_out, self.inputs)
        return next((t.order for g in groups for t in g.values()), 0)

    def value(self, tensor: TensorInfo, selection: Selection = ()) -> Array:
        """A tensor at a selection (empty: all of it): floats as float64, ids and masks as kept.

        Booleans come as bool whatever they are stored in.
        """
        return exact_values(self.run.read(tensor.id, selection), tensor.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One run's part of a site, on the rows that were replayed.

    `given` are the operands, `actual` the output as dumped (float64, or integers), `answer` what
    the function makes of the operands with the reference's attributes. `variance` is the floor,
    elementwise in squared units of the tensor. `local` = actual - expected, NaN where either is not
    finite. `ratio` is R, `worst` is z.
    """

    call: OperatorCall
    tensor: TensorInfo
    given: Operands
    actual: Array
    answer: Answer
    variance: Array
    local: Array
    ratio: float
    worst: float

    @property
    def expected(self) -> Array:
        """The output in float64."""
        return self.answer.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A place under suspicion: the same call in both runs, with what detectors need to explain it.

    `output` is the argument of the output in question and `slot` its label (`forward_output.0`).
    `kind` is that of the operator, `"unknown"` where no function reproduces it, and then `function`
    is None and the sides are. `reference` is None too when only the candidate has the operator.
    `attributes` are the reference's, recorded or fitted; `fitted` names the latter. `valid` marks
    the elements of the output that count (padding and fully masked rows do not). `calls_reference`
    and `calls_candidate` are all calls of each run in execution order: the neighbours upstream, the
    same operator in other steps and layers. `noise` is the relative error to be expected of a
    tensor that an operator made which was not replayed; None elsewhere.
    """

    comparison: Comparison
    reference_run: Run
    candidate_run: Run
    output: str
    slot: str
    kind: str
    function: Function | None
    attributes: Mapping[str, Fact]
    fitted: tuple[str, ...]
    reference: Side | None
    candidate: Side | None
    reference_call: OperatorCall | None
    candidate_call: OperatorCall
    valid: Array
    calls_reference: tuple[OperatorCall, ...] = ()
    calls_candidate: tuple[OperatorCall, ...] = ()
    noise: float | None = None


def exact_values(raw: Array, dtype: str) -> Array:
    """Raw values as replay computes with them: float64, booleans, or the integers they are."""
    if dtype == "bool":
        return raw.astype(bool)
    if raw.dtype.kind in "iu":
        return raw
    return raw.astype(np.float64)
