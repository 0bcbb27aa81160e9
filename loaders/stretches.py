"""Values in one piece of a file, mapped and read there. Sources hold descriptions, no open file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from core.runs import Array, Selection
from core.selection import axes_of
from loaders.crew import Order, filled
from loaders.encoding import Encoding
from loaders.file_bytes import FileBytes

_MAPPED_AT_ONCE = 1 << 30  # bytes; workers run with bounded address space
_WINDOW = 1 << 20  # elements fetched at once when stretches are shorter
_PIECE, _CACHED = 1 << 18, 1 << 14  # elements turned by one thread at a time, and within its cache


@dataclass(frozen=True, slots=True)
class Contiguous:
    """Values in one piece at a known offset: views of the mapped file, without the library."""

    bytes: FileBytes
    offset: int
    shape: tuple[int, ...]
    encoding: Encoding
    seekable: ClassVar[bool] = True

    def chunks(self, elements: int, start: int = 0) -> Iterator[Array]:
        """Flat row-major stretches of exactly `elements` from `start` on, the last one shorter."""
        windows = self._windows(start, elements * max(1, _WINDOW // elements))
        if not self.encoding.file.isnative:
            windows = filled(map(_turned, windows))
        for raw in windows:
            flat = self.encoding.decode(raw if raw.flags.aligned else raw.copy())
            yield from (flat[i : i + elements] for i in range(0, flat.size, elements))

    def _windows(self, start: int, window: int) -> Iterator[NDArray[Any]]:
        size, itemsize = math.prod(self.shape), self.encoding.file.itemsize
        for at in range(start, size, window):
            count = min(window, size - at)
            ahead = min(window, size - at - count) * itemsize
            yield self._raw(at, count, ahead=ahead)

    def read(self, selection: Selection) -> Array:
        """The selected part, copied out of the mapped file."""
        axes = axes_of(selection, self.shape)
        lengths = tuple(len(axis) for axis in axes if isinstance(axis, range))
        out = np.empty(lengths, self.encoding.decoded)
        if out.size:
            self._fill(out, axes)
        return out

    def _fill(self, out: Array, axes: tuple[int | range, ...]) -> None:
        first, row = (axes[0] if axes else 0), math.prod(self.shape[1:])
        rows = range(first, first + 1) if isinstance(first, int) else first
        low, high = min(rows[0], rows[-1]), max(rows[0], rows[-1]) + 1
        nbytes = (high - low) * row * self.encoding.file.itemsize
        if nbytes > _MAPPED_AT_ONCE and isinstance(first, range) and len(first) > 1:
            half = len(first) // 2
            self._fill(out[:half], (first[:half], *axes[1:]))
            self._fill(out[half:], (first[half:], *axes[1:]))
            return
        block = self._raw(low * row, (high - low) * row).reshape(-1, *self.shape[1:])
        index = tuple(_index(axis, low if i == 0 else 0) for i, axis in enumerate(axes))
        raw = np.array(block[index or 0])
        out[...] = self.encoding.decode(raw)

    def _raw(self, start: int, count: int, *, ahead: int = 0) -> NDArray[Any]:
        file = self.encoding.file
        return self.bytes.elements(file, self.offset + start * file.itemsize, count, ahead=ahead)


def _turned(raw: NDArray[Any]) -> Order:
    """The elements in the machine's byte order."""
    out = np.empty(raw.size, raw.dtype.newbyteorder("="))
    cuts = range(0, raw.size, _PIECE)
    return Order(out, [partial(_turn, out[i : i + _PIECE], raw[i : i + _PIECE]) for i in cuts])


def _turn(out: NDArray[Any], raw: NDArray[Any]) -> None:
    for i in range(0, raw.size, _CACHED):  # six times faster than all at once
        out[i : i + _CACHED] = raw[i : i + _CACHED]


def _index(axis: int | range, low: int) -> int | slice:
    """An axis of a selection as an index into an array that begins at `low`."""
    if isinstance(axis, int):
        return axis - low
    stop = axis.stop - low
    return slice(axis.start - low, stop if stop >= 0 else None, axis.step)


@dataclass(frozen=True, slots=True)
class Unwritten:
    """Values never written: the fill value throughout. `fill` has shape ()."""

    shape: tuple[int, ...]
    fill: Array
    seekable: ClassVar[bool] = True

    def chunks(self, elements: int, start: int = 0) -> Iterator[Array]:
        """Flat stretches of exactly `elements` from `start` on, the last one shorter."""
        size = math.prod(self.shape)
        for at in range(start, size, elements):
            yield np.full(min(elements, size - at), self.fill, self.fill.dtype)

    def read(self, selection: Selection) -> Array:
        """The selected part."""
        axes = axes_of(selection, self.shape)
        lengths = [len(axis) for axis in axes if isinstance(axis, range)]
        return np.full(lengths, self.fill, self.fill.dtype)
