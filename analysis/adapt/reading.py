"""Reading a lazy array as a run is read: any selection, or flat stretches of equal length."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from analysis.adapt.lazy import LazyArray, Stored
from analysis.adapt.reshaped import Reshaped
from core.runs import Array, Selection
from core.selection import axes_of


def selected(array: LazyArray, selection: Selection) -> Array:
    """A selection as runs take it: negative indices and steps too."""
    axes = axes_of(selection, array.shape)
    forward = tuple(a if isinstance(a, int) else _forward(a) for a in axes)
    flips = tuple(slice(None, None, -1 if a.step < 0 else 1) for a in axes if isinstance(a, range))
    return np.asarray(array.read(forward)[flips])


def chunks(array: LazyArray, elements: int) -> Iterator[Array]:
    """Flat row-major stretches of exactly `elements`, the last one shorter, in order."""
    if isinstance(array, Stored):
        yield from array.run.chunks(array.tensor, elements)
    elif isinstance(array, Reshaped):
        yield from chunks(array.source, elements)
    else:
        yield from _exact(_blocks(array, elements), elements)


def _blocks(array: LazyArray, elements: int) -> Iterator[Array]:
    """The array in row-major blocks of at most `elements` (at least one row of the last axis)."""
    shape = array.shape
    axis = next((n for n in range(len(shape)) if math.prod(shape[n + 1 :]) <= elements), None)
    if axis is None or not shape:
        yield array.read(tuple(slice(0, n, 1) for n in shape)).reshape(-1)
        return
    rows = max(1, elements // max(1, math.prod(shape[axis + 1 :])))
    rest = tuple(slice(0, n, 1) for n in shape[axis + 1 :])
    for index in np.ndindex(shape[:axis]):
        for start in range(0, shape[axis], rows):
            stretch = slice(start, min(start + rows, shape[axis]), 1)
            yield array.read((*index, stretch, *rest)).reshape(-1)


def _exact(blocks: Iterator[Array], elements: int) -> Iterator[Array]:
    held: list[Array] = []
    size = 0
    for block in blocks:
        held.append(block)
        size += block.size
        while size >= elements:
            flat = np.concatenate(held) if len(held) > 1 else held[0]
            yield flat[:elements]
            held, size = [flat[elements:]], size - elements
    if size:
        yield np.concatenate(held) if len(held) > 1 else held[0]


def _forward(item: range) -> slice:
    rising = item if item.step > 0 else item[::-1]
    return slice(rising.start, max(rising.start, rising.stop), rising.step)
