"""The same elements under another shape, read in stretches of the source."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from analysis.adapt.lazy import Axes, LazyArray
from core.adaptation import Shape
from core.runs import Array

_SPAN = 1 << 22  # elements of a source read at once for a selection that is cut differently


@dataclass(frozen=True, slots=True)
class Reshaped:
    """The same elements in the same row-major order under another shape."""

    source: LazyArray
    shape: Shape

    def read(self, axes: Axes) -> Array:
        """The selected part, in stretches of the source that fit in memory."""
        ranges = [range(a, a + 1) if isinstance(a, int) else _range(a) for a in axes]
        values = self._read(ranges)
        return values.reshape(
            [len(r) for r, a in zip(ranges, axes, strict=True) if isinstance(a, slice)]
        )

    def _read(self, ranges: list[range]) -> Array:
        flat = _flat(ranges, self.shape)
        if flat.size and int(flat.max() - flat.min()) > _SPAN:
            axis = next((n for n, r in enumerate(ranges) if len(r) > 1), None)
            if axis is not None:
                half, whole = len(ranges[axis]) // 2, ranges[axis]
                halves = (whole[:half], whole[half:])
                parts = [self._read([*ranges[:axis], h, *ranges[axis + 1 :]]) for h in halves]
                return np.concatenate(parts, axis)
        if not flat.size:
            return self.source.read(tuple(slice(0, 0, 1) for _ in self.source.shape)).reshape(
                flat.shape
            )
        stretch, start = _stretch(self.source, int(flat.min()), int(flat.max()) + 1)
        return np.asarray(stretch[flat - start])


def _range(item: slice) -> range:
    return range(item.start, item.stop, item.step)


def _flat(ranges: list[range], shape: Shape) -> Array:
    """Row-major positions of a selection, in the selection's own shape."""
    strides = [math.prod(shape[n + 1 :]) for n in range(len(shape))]
    flat = np.zeros([1] * len(shape), np.int64)
    for axis, (picked, stride) in enumerate(zip(ranges, strides, strict=True)):
        column = np.arange(picked.start, picked.stop, picked.step, dtype=np.int64) * stride
        flat = flat + column.reshape([-1 if n == axis else 1 for n in range(len(shape))])
    return flat


def _stretch(source: LazyArray, low: int, high: int) -> tuple[Array, int]:
    """The source's elements around [low, high), flat, and where they start."""
    shape = source.shape
    if not shape:
        return source.read(()).reshape(-1), 0
    row = max(1, math.prod(shape[1:]))
    first, last = low // row, (high - 1) // row
    if first == last and len(shape) > 1:
        inner, start = _stretch(_Row(source, first), low - first * row, high - first * row)
        return inner, start + first * row
    rest = tuple(slice(0, n, 1) for n in shape[1:])
    return source.read((slice(first, last + 1, 1), *rest)).reshape(-1), first * row


@dataclass(frozen=True, slots=True)
class _Row:
    """One index of the first axis."""

    source: LazyArray
    index: int

    @property
    def shape(self) -> Shape:
        return self.source.shape[1:]

    def read(self, axes: Axes) -> Array:
        return self.source.read((self.index, *axes))
