"""Reading a lazy array as a run is read: any selection, or flat stretches of equal length."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from analysis.adapt.lazy import LazyArray, Stored
from analysis.adapt.reshaped import Reshaped
from core.runs import Array, Selection
from core.selection import axes_of
from loaders.hdf5.tiles import restretched


def selected(array: LazyArray, selection: Selection) -> Array:
    """A selection as runs take it: negative indices and steps too."""
    axes = axes_of(selection, array.shape)
    forward = tuple(a if isinstance(a, int) else _forward(a) for a in axes)
    flips = tuple(slice(None, None, -1 if a.step < 0 else 1) for a in axes if isinstance(a, range))
    return np.asarray(array.read(forward)[flips])


def chunks(array: LazyArray, elements: int, start: int = 0) -> Iterator[Array]:
    """Flat row-major stretches of exactly `elements` from element `start` on, in order.

    The last one is shorter.
    """
    if isinstance(array, Stored):
        yield from array.values.chunks(array.tensor, elements, start)
    elif isinstance(array, Reshaped):
        yield from chunks(array.source, elements, start)
    else:
        yield from restretched(_blocks(array, elements, start), elements)


def _blocks(array: LazyArray, elements: int, start: int) -> Iterator[Array]:
    """The rest of the array in row-major blocks of about `elements`, at least one element each."""
    shape = array.shape
    axis = next((n for n in range(len(shape)) if math.prod(shape[n + 1 :]) <= elements), None)
    if axis is None:
        yield array.read(()).reshape(-1)[start:]
        return
    row = math.prod(shape[axis + 1 :])
    rows = max(1, elements // max(1, row))
    rest = tuple(slice(0, n, 1) for n in shape[axis + 1 :])
    for number, index in enumerate(np.ndindex(shape[:axis])):
        for first in range(0, shape[axis], rows):
            last = min(first + rows, shape[axis])
            skipped = start - (number * shape[axis] + first) * row
            if skipped < (last - first) * row:
                block = array.read((*index, slice(first, last, 1), *rest))
                yield block.reshape(-1)[max(0, skipped) :]


def _forward(item: range) -> slice:
    rising = item if item.step > 0 else item[::-1]
    return slice(rising.start, max(rising.start, rising.stop), rising.step)
