"""Which steps give the tensors of one side another shape: every way that the shapes allow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import permutations

from analysis.adapt.steps import Plan
from core.adaptation import Shape

_MOST_AXES = 5  # that are permuted; beyond, the ways are too many and the tensors no activations


def whole(plan: Plan, *, additive: bool) -> Iterator[Plan]:
    """The shards of one tensor as one array: replicas, partial sums, pieces along an axis."""
    shards = len(plan.arrays)
    if shards == 1:
        yield plan
        return
    shapes = [array.shape for array in plan.arrays]
    if len(set(shapes)) == 1:
        yield plan.then("replicated", shards)
        if additive:
            yield plan.then("sum", shards)
    for axis in range(len(shapes[0])):
        if len({_without(shape, axis) for shape in shapes}) == 1:
            yield plan.then("concat", axis, shards)


def into(plan: Plan, shape: Shape, *, transposable: bool) -> Iterator[Plan]:
    """One array in another shape. `transposable`: also when its shape fits as it is.

    Elements keep their row-major order but for a permutation of the axes.
    """
    own = plan.arrays[0].shape
    if own == shape:
        yield plan
    if own != shape or transposable:
        yield from _permuted(plan, shape)
    if own == shape:
        return
    if _long(own) == _long(shape):
        yield plan.then("squeeze" if len(own) > len(shape) else "unsqueeze", *shape)
    elif refines(own, shape):
        yield plan.then("merge", *shape)
    elif refines(shape, own):
        yield plan.then("unmerge", *shape)


def cut(plan: Plan, shape: Shape) -> Plan | None:
    """The leading part of one array that has a shape no larger along any axis, else None.

    Less than half of an axis is cut away, never a single element kept: the rest is padding to a
    round number, not a tensor of another size.
    """
    own = plan.arrays[0].shape
    if len(own) != len(shape) or own == shape:
        return None
    if any(a < b or (a != b and (b <= 1 or 2 * b <= a)) for a, b in zip(own, shape, strict=True)):
        return None
    for axis, (a, b) in enumerate(zip(own, shape, strict=True)):
        if a > b:
            plan = plan.then("pad_slice", axis, 0, b)
    return plan


def refines(fine: Sequence[int], coarse: Sequence[int]) -> bool:
    """Whether adjacent axes of one shape, multiplied, give the other: (2, 3, 4) and (6, 4)."""
    if math.prod(fine) != math.prod(coarse) or 0 in fine:
        return False
    rest = list(coarse)
    size = 1
    for length in fine:
        size *= length
        while rest and size == rest[0]:
            size //= rest.pop(0)
    return size == 1 and not rest


def _permuted(plan: Plan, shape: Shape) -> Iterator[Plan]:
    own = plan.arrays[0].shape
    if sorted(own) != sorted(shape) or not 2 <= len(own) <= _MOST_AXES:
        return
    for order in permutations(range(len(own))):
        moved = [axis for axis in order if own[axis] != 1]
        if moved != sorted(moved) and tuple(own[axis] for axis in order) == shape:
            yield plan.then("transpose", *order)


def _long(shape: Shape) -> Shape:
    return tuple(length for length in shape if length != 1)


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])
