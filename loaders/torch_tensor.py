"""One tensor that `torch.save` wrote, found in its archive without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from loaders.archive import Member, members_of
from loaders.dtypes import BITS, canonical, holds
from loaders.encoding import Encoding, meant
from loaders.part import DumpFile, RefusedError, Source
from loaders.stretches import FileBytes, bytes_at
from loaders.strided import strided
from loaders.torch_pickle import Described, described

Order = Literal["<", ">"]

_LONGEST_NOTE = 64
_DESCRIPTION = 1 << 20


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor as a file holds it."""

    shape: tuple[int, ...]
    encoding: Encoding
    source: Source
    inferred: bool = False


def torch_tensor(file: DumpFile, declared: str | None = None) -> Stored:
    """The bare tensor in a `.pt` file; `declared` is the format a dump speaks of.

    RefusedError for anything else, for compressed values, and where less is stored than declared.
    """
    bytes_ = FileBytes.of(file)
    members, refused = members_of(bytes_)
    if refused:
        raise refused[0]
    top = next((name.rpartition("/")[0] for name in members if name.endswith("data.pkl")), None)
    if top is None:
        raise RefusedError("unknown-format", file.name, "the archive describes no tensor.")
    found = described(_text(bytes_, members, f"{top}/data.pkl", _DESCRIPTION), file.name)
    if not isinstance(found, Described):
        raise RefusedError("layout", file.name, "it holds something other than one tensor.")
    data = members.get(f"{top}/data/{found.storage.key}")
    if data is None:
        raise RefusedError("truncated", file.name, "its values are not in the archive.")
    order: Order = (
        ">" if _text(bytes_, members, f"{top}/byteorder", _LONGEST_NOTE) == b"big" else "<"
    )
    return _placed(bytes_, data, found, declared, order)


def _placed(
    bytes_: FileBytes, data: Member, found: Described, declared: str | None, order: Order
) -> Stored:
    where = bytes_.file.name
    if data.deflated:
        hint = "Write it with torch.save itself."
        raise RefusedError(
            "layout", where, "its values are compressed, which PyTorch never does.", hint
        )
    encoding = encoding_of_torch(found.dtype, declared, order, where)
    unit = encoding.file.itemsize if found.storage.dtype else 1
    if found.storage.count * unit > data.size:
        reason = f"it declares {found.storage.count * unit} bytes and stores {data.size}."
        raise RefusedError("truncated", where, reason)
    ahead = found.offset * encoding.file.itemsize
    if len(found.shape) != len(found.strides):
        raise RefusedError("damaged", where, "its shape and strides contradict each other.")
    source = strided(
        bytes_,
        where,
        encoding,
        offset=data.offset + ahead,
        stored=max(0, data.size - ahead),
        shape=found.shape,
        strides=found.strides,
    )
    return Stored(found.shape, encoding, source)


def encoding_of_torch(stored: str, declared: str | None, order: Order, where: str) -> Encoding:
    """How elements of a format lie in a file; a declared one may be narrower, never other bits."""
    logical = None if declared is None else canonical(declared)
    if logical is not None and logical != stored and (stored in BITS or not holds(stored, logical)):
        raise RefusedError(
            "dtype", where, f"the dump declares {logical}, the file {stored or '?'}."
        )
    if stored in BITS and stored != "float16":
        size = BITS[stored]
        return meant(np.dtype(f"{order}u{size}"), stored, logical, where)
    if stored == "bool":
        return meant(np.dtype("u1"), stored, logical, where)
    if not stored or canonical(stored) != stored or stored in ("tf32", "float4_e2m1fn"):
        raise RefusedError("dtype", where, "its elements are of no format known here.")
    return meant(np.dtype(stored).newbyteorder(order), stored, logical, where)


def _text(bytes_: FileBytes, members: dict[str, Member], name: str, most: int) -> bytes:
    """A small uncompressed member, empty if there is none."""
    member = members.get(name)
    if member is None:
        return b""
    if member.deflated or member.size > most:
        raise RefusedError("ratio", member.where, "it is compressed or too long.")
    with bytes_.opened() as descriptor:
        return bytes_at(descriptor, member.offset, member.size, bytes_)
