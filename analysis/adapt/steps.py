"""What each step of an adaptation does, on lazy arrays; and making a step with its shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from analysis.adapt.lazy import Added, Joined, LazyArray, Permuted, Sliced
from analysis.adapt.reshaped import Reshaped
from core.adaptation import Operation, RunSide, Step
from language import say

Arguments = tuple[int, ...]
Arrays = tuple[LazyArray, ...]


def assembled(arrays: Sequence[LazyArray], steps: Sequence[Step]) -> LazyArray:
    """The tensors of one side after all its steps, which must leave one array."""
    whole: Arrays = tuple(arrays)
    for step in steps:
        whole = applied(whole, step.operation, step.arguments)
    if len(whole) != 1:
        raise ValueError(say("{whole} tensors are left", whole=len(whole)))
    return whole[0]


def applied(arrays: Arrays, operation: Operation, arguments: Arguments) -> Arrays:
    """The arrays after one step; ValueError when it does not fit their shapes."""
    if operation in _GROUPED:
        *rest, size = arguments
        if size < 1 or len(arrays) % size:
            raise ValueError(
                say(
                    "{arrays} tensors do not fall into groups of {size}",
                    arrays=len(arrays),
                    size=size,
                )
            )
        groups = [arrays[n : n + size] for n in range(0, len(arrays), size)]
        return tuple(_GROUPED[operation](group, rest) for group in groups)
    return tuple(_SINGLE[operation](array, arguments) for array in arrays)


class Plan:
    """Steps of one side while they are thought of: each is checked against the shapes it meets."""

    def __init__(self, side: RunSide, arrays: Sequence[LazyArray]) -> None:
        self.side = side
        self.arrays: Arrays = tuple(arrays)
        self.steps: tuple[Step, ...] = ()

    def then(self, operation: Operation, *arguments: int) -> Plan:
        """This plan and one step more; ValueError when it does not fit."""
        more = Plan(self.side, applied(self.arrays, operation, arguments))
        before, after = (tuple(a.shape for a in arrays) for arrays in (self.arrays, more.arrays))
        more.steps = (*self.steps, Step(self.side, operation, arguments, before, after))
        return more


def _permuted(array: LazyArray, order: Arguments) -> LazyArray:
    if sorted(order) != list(range(len(array.shape))):
        raise ValueError(
            say("{order} is no order of {shape} axes", order=order, shape=len(array.shape))
        )
    return Permuted(array, order)


def _reshaped(array: LazyArray, shape: Arguments) -> LazyArray:
    whole = Reshaped(array, shape)
    if math.prod(shape) != math.prod(array.shape):
        raise ValueError(
            say("{shape} and {shape2} differ in elements", shape=array.shape, shape2=shape)
        )
    return whole


def _taken(array: LazyArray, arguments: Arguments) -> LazyArray:
    axis, *bounds = arguments
    ranges = list(zip(bounds[::2], bounds[1::2], strict=True))
    length = array.shape[axis]
    if not ranges or not all(0 <= start < stop <= length for start, stop in ranges):
        raise ValueError(
            say(
                "{ranges} do not lie within axis {axis} of {shape}",
                ranges=ranges,
                axis=axis,
                shape=array.shape,
            )
        )
    parts = tuple(Sliced(array, axis, start, stop) for start, stop in ranges)
    return parts[0] if len(parts) == 1 else Joined(parts, axis)


def _joined(arrays: Arrays, arguments: Sequence[int]) -> LazyArray:
    (axis,) = arguments
    others = {(*a.shape[:axis], *a.shape[axis + 1 :]) for a in arrays}
    if len(others) > 1 or not all(0 <= axis < len(a.shape) for a in arrays):
        raise ValueError(
            say("axis {axis} does not join {value}", axis=axis, value=[a.shape for a in arrays])
        )
    return Joined(arrays, axis)


def _added(arrays: Arrays, _: Sequence[int]) -> LazyArray:
    _check_alike(arrays)
    return Added(arrays)


def _first(arrays: Arrays, _: Sequence[int]) -> LazyArray:
    _check_alike(arrays)
    return arrays[0]


def _check_alike(arrays: Arrays) -> None:
    if len({a.shape for a in arrays}) > 1:
        raise ValueError(say("shapes differ: {value}", value=[a.shape for a in arrays]))


_SINGLE: Mapping[Operation, Callable[[LazyArray, Arguments], LazyArray]] = {
    "transpose": _permuted,
    "squeeze": _reshaped,
    "unsqueeze": _reshaped,
    "merge": _reshaped,
    "unmerge": _reshaped,
    "pad_slice": _taken,
    "split": _taken,
}
_GROUPED: Mapping[Operation, Callable[[Arrays, Sequence[int]], LazyArray]] = {
    "concat": _joined,
    "sum": _added,
    "replicated": _first,
}
