"""Arrays that are read when asked: a stored tensor, and what the steps of an adaptation make of it.

Every class has a `shape` and `read(axes)`, where `axes` has one item for each axis: an index from 0
or a slice with its three bounds and a positive step. An index drops its axis. A read needs memory
for what it returns, and for the stretch of the source it covers where a shape is cut differently.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from core.adaptation import Shape
from core.runs import Array, Values
from core.tensors import TensorInfo

Axes = tuple[int | slice, ...]


class LazyArray(Protocol):
    """An array that is read in parts."""

    @property
    def shape(self) -> Shape:
        """Elements along each axis."""

    def read(self, axes: Axes) -> Array:
        """The selected part."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor as its run holds it."""

    values: Values
    tensor: TensorInfo

    @property
    def shape(self) -> Shape:
        """Elements along each axis."""
        return self.tensor.shape

    def read(self, axes: Axes) -> Array:
        """The selected part."""
        return self.values.read(self.tensor, axes)


@dataclass(frozen=True, slots=True)
class Permuted:
    """Axis n is axis `order[n]` of the source."""

    source: LazyArray
    order: tuple[int, ...]

    @property
    def shape(self) -> Shape:
        """Elements along each axis."""
        return tuple(self.source.shape[axis] for axis in self.order)

    def read(self, axes: Axes) -> Array:
        """The selected part."""
        wanted = dict(zip(self.order, axes, strict=True))
        values = self.source.read(tuple(wanted[axis] for axis in range(len(self.order))))
        kept = [axis for axis in self.order if isinstance(wanted[axis], slice)]
        return values.transpose([sorted(kept).index(axis) for axis in kept])


@dataclass(frozen=True, slots=True)
class Sliced:
    """A stretch [start, stop) of one axis."""

    source: LazyArray
    axis: int
    start: int
    stop: int

    @property
    def shape(self) -> Shape:
        """Elements along each axis."""
        whole = self.source.shape
        return (*whole[: self.axis], self.stop - self.start, *whole[self.axis + 1 :])

    def read(self, axes: Axes) -> Array:
        """The selected part."""
        item = axes[self.axis]
        if isinstance(item, int):
            moved: int | slice = item + self.start
        else:
            moved = slice(item.start + self.start, item.stop + self.start, item.step)
        return self.source.read((*axes[: self.axis], moved, *axes[self.axis + 1 :]))


@dataclass(frozen=True, slots=True)
class Joined:
    """Arrays one after the other along an axis; their other axes agree."""

    parts: tuple[LazyArray, ...]
    axis: int

    @property
    def shape(self) -> Shape:
        """Elements along each axis."""
        length = sum(part.shape[self.axis] for part in self.parts)
        whole = self.parts[0].shape
        return (*whole[: self.axis], length, *whole[self.axis + 1 :])

    def read(self, axes: Axes) -> Array:
        """The selected part."""
        item = axes[self.axis]
        pieces, start = [], 0
        for part in self.parts:
            stop = start + part.shape[self.axis]
            inside = _within(item, start, stop)
            if inside is not None:
                at = (*axes[: self.axis], inside, *axes[self.axis + 1 :])
                pieces.append(part.read(at))
            start = stop
        if isinstance(item, int):
            return pieces[0]
        if not pieces:
            return self.parts[0].read((*axes[: self.axis], slice(0, 0, 1), *axes[self.axis + 1 :]))
        return np.concatenate(pieces, sum(_kept(a) for a in axes[: self.axis]))


@dataclass(frozen=True, slots=True)
class Added:
    """Arrays of one shape, added in float64 and rounded once to the format they are stored in."""

    parts: tuple[LazyArray, ...]

    @property
    def shape(self) -> Shape:
        """Elements along each axis."""
        return self.parts[0].shape

    def read(self, axes: Axes) -> Array:
        """The selected part."""
        values = [part.read(axes) for part in self.parts]
        wide = np.complex128 if np.iscomplexobj(values[0]) else np.float64
        total = values[0].astype(wide)
        with np.errstate(invalid="ignore", over="ignore"):
            for more in values[1:]:
                total = total + more.astype(wide)
            return np.asarray(total).astype(values[0].dtype)


def _kept(item: int | slice) -> bool:
    return isinstance(item, slice)


def _within(item: int | slice, start: int, stop: int) -> int | slice | None:
    """The part of an index or slice that lies in [start, stop), counted from `start`."""
    if isinstance(item, int):
        return item - start if start <= item < stop else None
    first = item.start + -(-max(0, start - item.start) // item.step) * item.step
    last = min(stop, item.stop)
    return slice(first - start, last - start, item.step) if first < last else None
