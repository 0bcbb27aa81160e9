"""Trees of `.npy` files and `.npz` archives: the path of an array is its name."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path, PurePosixPath

from language import say
from loaders import archive, npy_header
from loaders.archive import Member, members_of
from loaders.file_bytes import FileBytes, bytes_at
from loaders.names import shown
from loaders.naming import Gathering, Stored, path_naming
from loaders.npy_array import npy_tensor
from loaders.npy_header import LONGEST, header_of
from loaders.part import DumpFile, Part, RefusedError
from loaders.registry import LOADERS, Loader
from loaders.reprod_log import is_pickled
from loaders.streamed import Deflated, inflated, streamed
from loaders.strided import strided

_SUFFIX = ".npy"
_NAME_LENGTH = slice(26, 28)  # of a zip archive's first member
_NAME_AT = 30


def is_npy(head: bytes, path: Path) -> bool:
    """Whether a file begins as NumPy's, or is called so and ends within its first bytes.

    A pickle of objects is no array.
    """
    if head.startswith(npy_header.SIGNATURE):
        return not is_pickled(head, path)
    return path.suffix == _SUFFIX and npy_header.SIGNATURE.startswith(head)


def is_npz(head: bytes, path: Path) -> bool:
    """Whether a file is a zip archive whose first member is called like an array.

    What is called `.zip` may hold anything: it is unpacked.
    """
    if path.suffix.lower() == ".zip":
        return False
    length = int.from_bytes(head[_NAME_LENGTH], "little")
    name = head[_NAME_AT : _NAME_AT + length]
    return head.startswith(archive.SIGNATURE) and name.endswith(_SUFFIX.encode())


def open_npy(file: DumpFile) -> Part:
    """The one array of the file."""
    path = PurePosixPath(file.name)
    name = path.name.removesuffix(_SUFFIX)
    gathering = Gathering(file, recorded=False)
    stored = npy_tensor(file)
    gathering.add(path_naming([*path.parts[:-1], name], path.parts), lambda: stored)
    return gathering.part({"format": "NumPy"})


def open_npz(file: DumpFile) -> Part:
    """The arrays of the archive as it lists them; the order they were made in is not recorded."""
    bytes_ = FileBytes.of(file)
    members, refused = members_of(bytes_)
    gathering = Gathering(file, recorded=False)
    gathering.problems.extend(refusal.problem for refusal in refused)
    around = PurePosixPath(file.name).parts
    for member in members.values():
        parts = shown(member.name.removesuffix(_SUFFIX)).split("/")
        gathering.add(path_naming(parts, (*around, *parts)), partial(_array, bytes_, member))
    return gathering.part({"format": "NumPy"})


def _array(bytes_: FileBytes, member: Member) -> Stored:
    """An array of the archive: mapped where it is stored as it is, else inflated when read."""
    if not member.name.endswith(_SUFFIX):
        raise RefusedError("unknown-format", member.where, say("it is not called like an array."))
    header = header_of(_head(bytes_, member), None, member.where)
    if not member.deflated:
        source = strided(
            bytes_,
            member.where,
            header.encoding,
            offset=member.offset + header.offset,
            stored=member.size - header.offset,
            shape=header.shape,
            strides=header.strides,
        )
    else:
        source = streamed(Deflated(bytes_, member), header, member.size, bytes_.file, member.where)
    return Stored(header.shape, header.encoding, source, header.inferred)


def _head(bytes_: FileBytes, member: Member) -> bytes:
    if member.deflated:
        return next(itertools.chain(inflated(bytes_, member), [b""]))[:LONGEST]
    with bytes_.opened() as descriptor:
        return bytes_at(descriptor, member.offset, min(member.size, LONGEST), bytes_)


LOADERS.register(Loader("npy", "NumPy .npy", is_npy, open_npy, bare=True))
LOADERS.register(Loader("npz", "NumPy .npz", is_npz, open_npz, bare=True))
