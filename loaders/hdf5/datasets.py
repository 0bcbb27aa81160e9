"""One dataset of an untrusted file: checked, described, and given a source for its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from h5py import h5s

from core.runs import Problem
from loaders.encoding import Encoding
from loaders.file_bytes import FileBytes
from loaders.hdf5.attributes import attributes_of, text_of
from loaders.hdf5.places import Place
from loaders.hdf5.sources import OwnTiles
from loaders.hdf5.storage import Budget, Storage, refuse_elsewhere
from loaders.hdf5.types import encoding_of
from loaders.part import Source
from loaders.stretches import Contiguous, Unwritten

_DTYPE_NAMES = ("dtype", "orig_dtype", "logical_dtype")


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset that may be read. `address` is where its header lies in the file."""

    place: Place
    address: int
    shape: tuple[int, ...]
    encoding: Encoding
    source: Source
    attributes: Mapping[str, Any]

    @property
    def values_at(self) -> int | None:
        """Where its values begin in the file, None if there are none or only the library knows."""
        if isinstance(self.source, Contiguous):
            return self.source.offset
        if isinstance(self.source, OwnTiles) and len(self.source.index):
            return int(self.source.index[:, 1].min())
        return None


@dataclass(frozen=True, slots=True)
class Checker:
    """Checks the datasets of one file against its limits. The caller holds the library."""

    bytes: FileBytes
    budget: Budget

    def dataset(self, item: Any, place: Place, address: int) -> tuple[Dataset, Problem | None]:
        """An open dataset described, and what is doubtful about it; or a RefusedError."""
        plist = item.get_create_plist()
        refuse_elsewhere(plist, place.where)  # first of all: asking for more may open other files
        attributes = attributes_of(item, self.bytes.file.limits, place.where)
        declared = text_of(attributes, *_DTYPE_NAMES)
        encoding, doubt = encoding_of(item.get_type(), declared, place.where)
        space = item.get_space()
        if space.get_simple_extent_type() == h5s.NULL:
            shape: tuple[int, ...] = (0,)
            source: Source = Unwritten(shape, np.zeros((), encoding.decoded))
        else:
            shape = tuple(space.shape)
            storage = Storage(item, plist, place, shape, encoding, self.bytes, self.budget)
            source = storage.source()
        return Dataset(place, address, shape, encoding, source, attributes), doubt
