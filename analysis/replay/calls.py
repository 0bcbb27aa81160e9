"""The calls of a run: its tensors gathered by operator, step, rank and call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from analysis.replay.registry import Attributes
from analysis.replay.site import OperatorCall
from core.runs import Run
from core.tensors import TensorInfo

CallKey = tuple[int | None, int | None, str, str, int]
_Tensors = dict[str, TensorInfo]


@dataclass(slots=True)
class _Gathered:
    """The tensors of one call while they are collected, by argument."""

    inputs: _Tensors = field(default_factory=dict)
    outputs: _Tensors = field(default_factory=dict)
    parameters: _Tensors = field(default_factory=dict)
    gradients_in: _Tensors = field(default_factory=dict)
    gradients_out: _Tensors = field(default_factory=dict)
    parameter_gradients: _Tensors = field(default_factory=dict)

    def place(self, tensor: TensorInfo) -> _Tensors | None:
        """Where a tensor belongs, by pass and slot; None for what no replay needs."""
        groups = {
            ("forward", "input"): self.inputs,
            ("forward", "output"): self.outputs,
            ("unknown", "value"): self.outputs,
            ("parameter", "parameter"): self.parameters,
            ("backward", "input"): self.gradients_in,
            ("backward", "output"): self.gradients_out,
            ("gradient", "parameter"): self.parameter_gradients,
        }
        return groups.get((tensor.pass_, tensor.slot))

    def first(self) -> TensorInfo | None:
        """The tensor that speaks for the call."""
        groups = (self.outputs, self.inputs, self.gradients_in, self.gradients_out)
        named = (*groups, self.parameters, self.parameter_gradients)
        return next((t for group in named for t in group.values()), None)


def key_of(tensor: TensorInfo) -> CallKey:
    """Which call a tensor belongs to."""
    return (tensor.step, tensor.rank, tensor.module, tensor.op, tensor.call)


def calls_of(run: Run) -> dict[CallKey, OperatorCall]:
    """Every call of a run with an activation or a gradient, in execution order.

    A module's parameters belong to each of its calls in the step, and where a step recorded none,
    those of the last step that did.
    """
    gathered: dict[CallKey, _Gathered] = defaultdict(_Gathered)
    held: dict[tuple[int | None, str], dict[int | None, _Tensors]] = defaultdict(dict)
    for tensor in run.tensors.values():
        place = gathered[key_of(tensor)].place(tensor)
        if place is not None:
            place[tensor.argument] = tensor
        if tensor.pass_ == "parameter":
            of_step = held[tensor.rank, tensor.module].setdefault(tensor.step, {})
            of_step.setdefault(tensor.argument, tensor)
    made: dict[CallKey, OperatorCall] = {}
    last: dict[tuple[int | None, str, str], OperatorCall] = {}
    for key, group in gathered.items():
        if group.outputs or group.inputs or group.gradients_in or group.gradients_out:
            same = (key[1], key[2], key[3])
            made[key] = last[same] = _call(run, key, group, held, last.get(same))
    return dict(sorted(made.items(), key=lambda item: item[1].order))


def _call(
    run: Run,
    key: CallKey,
    group: _Gathered,
    held: Mapping[tuple[int | None, str], Mapping[int | None, _Tensors]],
    earlier: OperatorCall | None,
) -> OperatorCall:
    step, rank, module, op, number = key
    speaker = group.first()
    attributes = _attributes((*group.outputs.values(), *group.inputs.values()))
    parameters = group.parameters or ({} if op else _parameters(held.get((rank, module), {}), step))
    return OperatorCall(
        run=run,
        module=module,
        module_class=speaker.module_class if speaker else "",
        op=op,
        step=step,
        rank=rank,
        call=number,
        inputs=group.inputs,
        outputs=group.outputs,
        parameters=parameters or _named(attributes, held, rank, step),
        gradients_in=group.gradients_in,
        gradients_out=group.gradients_out,
        parameter_gradients=group.parameter_gradients,
        attributes=attributes,
        earlier=earlier,
    )


def _parameters(steps: Mapping[int | None, _Tensors], step: int | None) -> _Tensors:
    """The parameters of this step, else of the latest step before it, else of the first."""
    if step in steps:
        return steps[step]
    before = [s for s in steps if s is not None and step is not None and s < step]
    chosen = max(before, key=lambda s: s or 0) if before else next(iter(steps), None)
    return steps.get(chosen, {})


def _named(
    attributes: Attributes,
    held: Mapping[tuple[int | None, str], Mapping[int | None, _Tensors]],
    rank: int | None,
    step: int | None,
) -> _Tensors:
    """Parameters that a functional call names by their full path (`parameter.weight`)."""
    found: _Tensors = {}
    for key, path in attributes.items():
        kind, _, argument = key.partition(".")
        if kind == "parameter" and argument:
            module, _, name = str(path).rpartition(".")
            tensor = _parameters(held.get((rank, module), {}), step).get(name)
            if tensor is not None:
                found[name if argument.isdecimal() else argument] = tensor
    return found


def _attributes(tensors: Iterable[TensorInfo]) -> Attributes:
    """Scalars recorded with any of a call's tensors; lists as text."""
    found: dict[str, int | float | str] = {}
    for tensor in tensors:
        for name, value in tensor.attrs.items():
            known = value if isinstance(value, int | float | str) else str(value)
            found.setdefault(name.removeprefix("call."), known)
    return found
