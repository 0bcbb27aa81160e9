"""What a replay leaves: both sides of every output of a call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analysis.replay.fit import UNFIT, Fit
from analysis.replay.local import Local, local_error
from analysis.replay.noise import variance
from analysis.replay.operands import Read, arithmetic
from analysis.replay.registry import Attributes, Function
from analysis.replay.site import OperatorCall, Side
from core.runs import Array


@dataclass(frozen=True, slots=True)
class Part:
    """One side of one output: what detectors see of it, and what it was judged by.

    `valid` marks the elements that count: padding and the like do not.
    """

    side: Side
    local: Local
    valid: Array


@dataclass(frozen=True, slots=True)
class Output:
    """One output of a call, replayed on the sides that have it."""

    name: str
    slot: str
    reference: Part | None
    candidate: Part | None

    @classmethod
    def of(cls, name: str, reference: Part | None, candidate: Part | None) -> Output:
        """The output with its slot label; at least one side is there."""
        part = reference or candidate
        return cls(name, part.side.tensor.slot_label if part else name, reference, candidate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One call pair. `own` is the candidate's function where it differs; `reason` says why there
    are no outputs.
    """

    reference: OperatorCall | None
    candidate: OperatorCall | None
    kind: str = "unknown"
    function: Function | None = None
    own: Function | None = None
    fit: Fit | None = None
    outputs: tuple[Output, ...] = ()
    gradients: tuple[Output, ...] = ()
    reason: str = ""

    @classmethod
    def without(
        cls, reference: OperatorCall | None, candidate: OperatorCall | None, reason: str
    ) -> Replayed:
        """A call that was not replayed."""
        return cls(reference=reference, candidate=candidate, reason=reason)

    @property
    def lead(self) -> OperatorCall:
        """The reference's call, or the candidate's where there is no other."""
        call = self.reference or self.candidate
        if call is None:
            raise ValueError("A call pair has at least one side.")
        return call


def sides(
    values: Read | None,
    function: Function,
    attributes: Attributes,
    operands: str,
    name: str,
    valid_of: Callable[[Read, str], Array],
) -> Part | None:
    """One side of one output; None where it is missing or the function does not give it."""
    if values is None or name not in values.actual:
        return None
    try:
        answer = values.answers(function, attributes).get(name)
    except UNFIT:
        return None
    actual, tensor = values.actual[name], values.tensors[name]
    if answer is None or np.shape(answer.value) != actual.shape:
        return None
    floor = variance(answer, arithmetic(values.call, tensor, operands=operands))
    valid = valid_of(values, name)
    local = local_error(answer, actual, floor, valid, tensor.dtype)
    side = Side(
        call=values.call,
        tensor=tensor,
        given=values.given,
        actual=actual,
        answer=answer,
        variance=floor,
        local=local.error,
        ratio=local.ratio,
        worst=local.worst,
    )
    return Part(side, local, valid)
