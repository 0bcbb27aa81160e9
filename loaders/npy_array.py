"""One array that NumPy wrote, mapped at its place."""

from __future__ import annotations

from loaders.file_bytes import FileBytes, bytes_at
from loaders.naming import Stored
from loaders.npy_header import LONGEST, header_of
from loaders.part import DumpFile
from loaders.strided import strided


def npy_tensor(file: DumpFile, declared: str | None = None) -> Stored:
    """The array in a `.npy` file; `declared` is the format a dump speaks of."""
    bytes_ = FileBytes.of(file)
    with bytes_.opened() as descriptor:
        head = bytes_at(descriptor, 0, min(bytes_.size, LONGEST), bytes_)
    header = header_of(head, declared, file.name)
    source = strided(
        bytes_,
        file.name,
        header.encoding,
        offset=header.offset,
        stored=bytes_.size - header.offset,
        shape=header.shape,
        strides=header.strides,
    )
    return Stored(header.shape, header.encoding, source, header.inferred)
