"""Values of datasets stored in tiles. Sources hold descriptions only, no open file."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from h5py import h5d, h5g, h5s
from numpy.typing import NDArray

from core.runs import Array, Selection
from core.selection import axes_of
from loaders.crew import Order, filled
from loaders.encoding import Encoding
from loaders.file_bytes import FileBytes, bytes_at
from loaders.hdf5.filters import Filter, undone
from loaders.hdf5.library import library, opened
from loaders.hdf5.tiles import Box, bands, parts, reaching, restretched, skipped

# A tile by its number: which part of a box it fills, and with which part of itself.
_Touched = tuple[int, tuple[slice, ...], tuple[slice, ...]]

_PIECE = 1 << 19  # bytes that one thread decodes at a time


@dataclass(frozen=True, slots=True)
class Tiled:
    """Values in tiles. Subclasses read a box of raw elements."""

    bytes: FileBytes
    where: str
    shape: tuple[int, ...]
    tile: tuple[int, ...]
    encoding: Encoding
    seekable: ClassVar[bool] = True

    @abstractmethod
    def boxes(self, boxes: Iterable[Box]) -> Iterator[NDArray[Any]]:
        """The raw elements of each box, in any byte order: own arrays with one axis a range."""

    def chunks(self, elements: int, start: int = 0) -> Iterator[Array]:
        """Flat row-major stretches of exactly `elements` from `start` on, the last one shorter."""
        if 0 in self.shape:
            return iter(())
        itemsize = self.encoding.file.itemsize
        cut = bands(self.shape, self.tile, itemsize, wanted=elements * itemsize)
        cut, ahead = reaching(cut, start)
        flat = (self.encoding.decode(raw.reshape(-1)) for raw in self.boxes(cut))
        return restretched(skipped(flat, ahead), elements)

    def read(self, selection: Selection) -> Array:
        """The selected part; each storage chunk it touches is decoded once."""
        axes = axes_of(selection, self.shape)
        ranges = tuple(range(a, a + 1) if isinstance(a, int) else a for a in axes)
        lengths = tuple(len(axis) for axis in axes if isinstance(axis, range))
        if not all(ranges):
            return np.empty(lengths, self.encoding.decoded)
        (raw,) = self.boxes([tuple(r if r.step > 0 else r[::-1] for r in ranges)])
        turned = raw[tuple(slice(None, None, 1 if r.step > 0 else -1) for r in ranges)]
        return self.encoding.decode(np.ascontiguousarray(turned).reshape(lengths))


@dataclass(frozen=True, slots=True)
class OwnTiles(Tiled):
    """Storage chunks decoded here. `index` rows: tile number, address, stored bytes, filter mask.

    Rows ascend by row-major tile number; tiles not listed hold `fill`, an element of shape ().
    """

    pipeline: tuple[Filter, ...]
    index: NDArray[np.int64]  # (tiles, 4)
    fill: NDArray[Any]

    def boxes(self, boxes: Iterable[Box]) -> Iterator[NDArray[Any]]:
        """The raw elements of each box in the machine's byte order, decoded side by side."""
        with self.bytes.opened() as descriptor:
            yield from filled(self._order(descriptor, box) for box in boxes)

    def _order(self, descriptor: int, box: Box) -> Order:
        """The tiles of a box, so many to a piece that handing it over costs little."""
        native = self.encoding.file.newbyteorder("=")
        out = np.empty([len(axis) for axis in box], native)
        tiles = list(self._touched(box))
        each = max(1, _PIECE // (math.prod(self.tile) * native.itemsize))
        pieces = [
            partial(self._fill, descriptor, out, tiles[at : at + each])
            for at in range(0, len(tiles), each)
        ]
        return Order(out, pieces)

    def _touched(self, box: Box) -> Iterator[_Touched]:
        grid = [-(-length // tile) for length, tile in zip(self.shape, self.tile, strict=True)]
        steps = [math.prod(grid[axis + 1 :]) for axis in range(len(grid))]
        along = [
            [(number * step, into, of) for number, into, of in parts(axis, tile)]
            for axis, tile, step in zip(box, self.tile, steps, strict=True)
        ]
        for combination in itertools.product(*along):
            numbers, into, of = zip(*combination, strict=True)
            yield sum(numbers), into, of

    def _fill(self, descriptor: int, out: NDArray[Any], tiles: Sequence[_Touched]) -> None:
        for number, into, of in tiles:
            row = int(np.searchsorted(self.index[:, 0], number))
            if row == len(self.index) or self.index[row, 0] != number:
                out[into] = self.fill
            else:
                out[into] = self._tile(descriptor, row)[of]

    def _tile(self, descriptor: int, row: int) -> NDArray[Any]:
        _, address, size, mask = self.index[row].tolist()
        raw = bytes_at(descriptor, address, size, self.bytes)
        nbytes = math.prod(self.tile) * self.encoding.file.itemsize
        data = undone(raw, self.pipeline, mask, nbytes=nbytes, where=self.where)
        return data.view(self.encoding.file).reshape(self.tile)


@dataclass(frozen=True, slots=True)
class LibraryTiles(Tiled):
    """Storage that only the library can decode; `path` holds the raw link names from the root."""

    path: tuple[bytes, ...]

    def boxes(self, boxes: Iterable[Box]) -> Iterator[NDArray[Any]]:
        """The raw elements of each box, read with the file's own type: no conversion."""
        return map(self._box, boxes)

    def _box(self, box: Box) -> NDArray[Any]:
        out = np.empty([len(axis) for axis in box], self.encoding.file)
        with self.bytes.opened():
            pass  # the same file still
        with opened(self.bytes.file) as (handle, _), library(self.where, code="chunk"):
            item = h5g.open(handle, b"/")
            for name in self.path[:-1]:
                item = h5g.open(item, name)
            dataset = h5d.open(item, self.path[-1])
            memory = inside = h5s.ALL
            if box:
                inside = dataset.get_space()
                starts, counts = zip(*((axis.start, len(axis)) for axis in box), strict=True)
                inside.select_hyperslab(starts, counts, tuple(axis.step for axis in box))
                memory = h5s.create_simple(counts)
            dataset.read(memory, inside, out, dataset.get_type())
        return out
