"""Calls while they run: of modules, and of functions inside them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from precision_recorder import scalars
from precision_recorder.entries import Entry, Pass
from precision_recorder.steps import Step, Taken


@dataclass(slots=True, eq=False)
class Frame:
    """A module from the start of its call to the end."""

    module: Any
    path: str
    call: int
    records: bool = True
    records_operators: bool = True
    is_leaf: bool = False
    inputs: dict[str, Any] = field(default_factory=dict)
    scalars: dict[str, Any] = field(default_factory=dict)
    operators: Counter[str] = field(default_factory=Counter)
    pending: Call | None = None  # the first call of a leaf may turn out to be the module itself

    def op(self, name: str) -> str:
        """Name of the next call of a function: `softmax`, then `softmax_1`."""
        number = self.operators[name]
        return f"{name}_{number}" if number else name


@dataclass(slots=True, eq=False)
class Call:
    """The tensors of one call of a function, or with an empty `op` of a module."""

    step: Step
    frame: Frame
    op: str
    scalars: dict[str, Any]
    inputs: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    dropped: bool = False
    _taken: list[Taken | None] = field(default_factory=list)

    def describe(
        self, pass_: Pass, slot: Literal["input", "output"], argument: str, parameter: str = ""
    ) -> Entry:
        """Entry of a tensor of this call."""
        return Entry(
            module=self.frame.path,
            module_class=type(self.frame.module).__name__,
            op=self.op,
            call=self.frame.call,
            pass_=pass_,
            slot=slot,
            argument=argument,
            parameter=parameter,
            attrs=self.scalars,
        )

    def take_inputs(self, names: tuple[str, ...]) -> None:
        """Copy the inputs as they are now; `put` writes them."""
        for argument, tensor in self.inputs.items():
            entry = self.describe("forward", "input", argument, scalars.named(names, argument))
            self._taken.append(self.step.take(entry, tensor))

    def take_outputs(self) -> None:
        """Copy the outputs as they are now; `put` writes them."""
        for argument, tensor in self.outputs.items():
            entry = self.describe("forward", "output", argument)
            self._taken.append(self.step.take(entry, tensor))

    def put(self) -> None:
        """Write what was taken, down to the file."""
        for taken in self._taken:
            self.step.put(taken)
        self._taken.clear()
        self.step.flush()

    def is_all_of(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> bool:
        """Whether the call made the module's results from nothing but the module's arguments."""
        made = _ids(self.outputs)
        return bool(made) and made == _ids(outputs) and _ids(self.inputs) <= _ids(inputs)


def forward_names(module: Any) -> tuple[str, ...]:
    """Names of the positional parameters of a module's call."""
    return scalars.argument_names(type(module).forward, "")[1:]


def module_call_scalars(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Scalar attributes of the module, and the scalars of its call under `call.`."""
    given = scalars.call_scalars(forward_names(module), args, kwargs)
    return scalars.module_scalars(module) | {f"call.{key}": value for key, value in given.items()}


def is_built_in(module: Any) -> bool:
    """Whether the framework itself wrote what the module computes."""
    return str(type(module).forward.__module__).startswith(("torch.nn.", "torch.ao."))


def computes(name: str, args: Any, call: Call) -> bool:
    """Whether the call made floating-point values: no integers, no cast to the same format."""
    outputs = call.outputs.values()
    if not any(t.is_floating_point() or t.is_complex() for t in outputs):
        return False
    return name != "to" or {t.dtype for t in outputs} != {args[0].dtype}


def _ids(tensors: dict[str, Any]) -> set[int]:
    return {id(tensor) for tensor in tensors.values()}
