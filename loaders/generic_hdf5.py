"""Any HDF5 file: every numeric dataset is a tensor, its path is its name."""

from __future__ import annotations

from loaders.hdf5.attributes import number_of
from loaders.hdf5.naming import plain_naming, tensor_of
from loaders.hdf5.superblock import is_hdf5
from loaders.hdf5.walk import walk
from loaders.part import DumpFile, Part
from loaders.registry import LOADERS, Loader


def open_file(file: DumpFile) -> Part:
    """Datasets by their attribute `order` if all have one, else as the groups list them."""
    contents = walk(file)
    orders = [number_of(each.attributes, "order") for each in contents.datasets]
    numbered = [order for order in orders if order is not None]
    if len(numbered) < len(orders):
        numbered = list(range(len(orders)))
        recorded = [each.place.throughout for each in contents.datasets]
    else:
        recorded = [True] * len(orders)
    items = (
        tensor_of(each, plain_naming(each), order=order, recorded=known)
        for each, order, known in zip(contents.datasets, numbered, recorded, strict=True)
    )
    in_order = tuple(sorted(items, key=lambda item: item[0].order))
    return Part(in_order, {"format": "HDF5"}, contents.problems)


LOADERS.register(Loader("hdf5", "Any HDF5 file", is_hdf5, open_file, fallback=True, bare=True))
