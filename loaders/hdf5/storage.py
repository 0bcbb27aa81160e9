"""How a dataset is stored, checked against the file it is in, and turned into a source."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from h5py import h5d
from numpy.typing import NDArray

from language import say
from loaders.encoding import Encoding
from loaders.file_bytes import FileBytes
from loaders.hdf5.filters import FLETCHER32, is_ours, pipeline_of
from loaders.hdf5.places import Place
from loaders.hdf5.sources import LibraryTiles, OwnTiles
from loaders.part import RefusedError, Source
from loaders.stretches import Contiguous, Unwritten


@dataclass(slots=True)
class Budget:
    """What the datasets of one file may still claim: the bytes it has, and storage chunks."""

    stored: int
    tiles: int

    def spend(self, stored: int, tiles: int, where: str) -> None:
        """Count a dataset's storage; RefusedError when the file claims more than it has."""
        if stored > self.stored:
            raise RefusedError(
                "overlap", where, say("the datasets so far claim more bytes than the file has.")
            )
        if tiles > self.tiles:
            raise RefusedError(
                "storage-chunks", where, say("the file has too many storage chunks.")
            )
        self.stored -= stored
        self.tiles -= tiles


@dataclass(frozen=True, slots=True)
class Storage:
    """The storage of one open dataset. The caller holds the library."""

    item: Any
    plist: Any
    place: Place
    shape: tuple[int, ...]
    encoding: Encoding
    bytes: FileBytes
    budget: Budget

    def source(self) -> Source:
        """Where the values come from; RefusedError for storage that is not what it declares."""
        stored, layout = self.item.get_storage_size(), self.plist.get_layout()
        nbytes = math.prod(self.shape) * self.encoding.file.itemsize
        self._refuse_huge(nbytes, stored)
        if nbytes == 0 or (stored == 0 and layout == h5d.CONTIGUOUS):
            return Unwritten(self.shape, self.encoding.decode(self._fill()))
        if layout == h5d.CHUNKED:
            return self._tiled()
        self.budget.spend(stored, 0, self.place.where)
        if layout == h5d.CONTIGUOUS:
            offset = self._offset(self.item.get_offset(), stored, nbytes)
            return Contiguous(self.bytes, offset, self.shape, self.encoding)
        if layout == h5d.COMPACT:
            return self._through_library(self.shape)
        raise self._refusal("layout", say("its storage layout is not known."))

    def _tiled(self) -> Source:
        tile = tuple(self.plist.get_chunk())
        pipeline = pipeline_of(self.plist, self.place.where)
        nbytes = math.prod(tile) * self.encoding.file.itemsize
        if nbytes > self.bytes.file.limits.storage_chunk:
            reason = say(
                "one storage chunk is {nbytes} bytes, more than is read at once.", nbytes=nbytes
            )
            raise self._refusal("chunk-size", reason)
        index = self._index(tile, nbytes)
        self.budget.spend(int(index[:, 2].sum()), len(index), self.place.where)
        if is_ours(pipeline):
            common = (self.bytes, self.place.where, self.shape, tile, self.encoding)
            return OwnTiles(*common, pipeline, index, self._fill())
        if FLETCHER32 in (each.code for each in pipeline) and (index[:, 2] < 4).any():
            raise self._refusal("checksum", say("a storage chunk is too short for its checksum."))
        return self._through_library(tile)

    def _through_library(self, tile: tuple[int, ...]) -> Source:
        where, path = self.place.where, self.place.path
        return LibraryTiles(self.bytes, where, self.shape, tile, self.encoding, path)

    def _index(self, tile: tuple[int, ...], nbytes: int) -> NDArray[np.int64]:
        """Where the tiles lie: rows of tile number, address, stored bytes, filter mask."""
        grid = [-(-length // deep) for length, deep in zip(self.shape, tile, strict=True)]
        found = self._tiles(min(math.prod(grid), self.budget.tiles))
        if not found:
            return np.zeros((0, 4), np.int64)
        cells = np.array([info.chunk_offset for info in found]).T // np.array([tile]).T
        if (cells >= np.array([grid]).T).any():
            raise self._refusal("storage-chunks", say("a storage chunk lies outside its shape."))
        index = np.array([(0, *self._row(info, nbytes)) for info in found], np.int64)
        index[:, 0] = np.ravel_multi_index(tuple(cells.astype(np.int64)), grid)
        return index[np.argsort(index[:, 0])]

    def _tiles(self, most: int) -> list[Any]:
        found: list[Any] = []

        def keep(info: Any) -> bool | None:
            found.append(info)
            return True if len(found) > most else None  # ends a listing that runs in circles

        self.item.chunk_iter(keep)
        if len(found) > most:
            raise self._refusal("storage-chunks", say("it has more storage chunks than its shape."))
        return found

    def _row(self, info: Any, nbytes: int) -> tuple[int, int, int]:
        # A filter may make a chunk a little longer, never much.
        if info.size > 2 * nbytes + 4096:
            raise self._refusal("chunk-size", say("a storage chunk is far longer than declared."))
        return self._offset(info.byte_offset, info.size, info.size), info.size, info.filter_mask

    def _offset(self, offset: int | None, stored: int, needed: int) -> int:
        if offset is None or stored < needed:
            raise self._refusal("damaged", say("less is stored than its shape needs."))
        if offset + stored > self.bytes.size:
            raise self._refusal("truncated", say("its values lie beyond the end of the file."))
        return offset

    def _refuse_huge(self, nbytes: int, stored: int) -> None:
        limits = self.bytes.file.limits
        if nbytes > limits.ratio_from and nbytes > limits.ratio * stored:
            raise self._refusal(
                "ratio",
                say(
                    "it declares {nbytes} bytes and stores {stored}.", nbytes=nbytes, stored=stored
                ),
            )
        if nbytes > limits.tensor:
            raise self._refusal("tensor-size", say("it declares {nbytes} bytes.", nbytes=nbytes))

    def _fill(self) -> NDArray[Any]:
        """The fill value as a raw element of shape ()."""
        fill = np.zeros((), self.encoding.file)
        if self.plist.fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED:
            if self.encoding.storage != self.encoding.file.name:
                reason = say(
                    "it has a fill value of its own as {storage}.", storage=self.encoding.storage
                )
                raise self._refusal("fill-value", reason)
            self.plist.get_fill_value(fill)
        return fill

    def _refusal(self, code: str, reason: str) -> RefusedError:
        return RefusedError(code, self.place.where, reason)


def refuse_elsewhere(plist: Any, where: str) -> None:
    """Refuse values in other files: reading them hands out what the author may not see."""
    hint = say("Write the values into the dump itself.")
    if plist.get_layout() == h5d.VIRTUAL:
        reason = say("it is a virtual dataset, whose values lie in other files.")
        raise RefusedError("virtual", where, reason, hint)
    if plist.get_external_count():
        raise RefusedError("external-storage", where, say("its values lie in another file."), hint)
