"""Tensors that `torch.save` wrote, found in their archive without PyTorch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from language import say
from loaders.archive import Member, members_of
from loaders.dtypes import BITS, canonical, holds
from loaders.encoding import Encoding, meant
from loaders.file_bytes import FileBytes, bytes_at
from loaders.naming import Stored
from loaders.part import DumpFile, RefusedError, Source
from loaders.pickle_machine import Opaque
from loaders.strided import strided
from loaders.torch_pickle import LONGEST, Described, described

Order = Literal["<", ">"]

_LONGEST_NOTE = 64
_DEEPEST = 16  # containers within a content
_MOST_VALUES = 1_000_000


@dataclass(frozen=True, slots=True)
class Saved:
    """What `torch.save` wrote into one file: `content` has a `Described` for each tensor."""

    content: Any
    bytes: FileBytes
    members: Mapping[str, Member]
    top: str
    order: Order

    def stored(self, found: Described | Opaque, where: str, declared: str | None = None) -> Stored:
        """A tensor of the content; `declared` is the format a dump speaks of.

        RefusedError for compressed values, and where less is stored than declared.
        """
        if isinstance(found, Opaque):
            raise found.refusal(where)
        data = self.members.get(f"{self.top}/data/{found.storage.key}")
        if data is None:
            raise RefusedError("truncated", where, say("its values are not in the archive."))
        if data.deflated:
            hint = say("Write it with torch.save itself.")
            reason = say("its values are compressed, which PyTorch never does.")
            raise RefusedError("layout", where, reason, hint)
        encoding = encoding_of_torch(found.dtype, declared, self.order, where)
        unit = encoding.file.itemsize if found.storage.dtype else 1
        if found.storage.count * unit > data.size:
            reason = say(
                "it declares {count} bytes and stores {size}.",
                count=found.storage.count * unit,
                size=data.size,
            )
            raise RefusedError("truncated", where, reason)
        return Stored(found.shape, encoding, self._placed(data, found, encoding, where))

    def _placed(self, data: Member, found: Described, encoding: Encoding, where: str) -> Source:
        ahead = found.offset * encoding.file.itemsize
        if len(found.shape) != len(found.strides):
            raise RefusedError(
                "damaged", where, say("its shape and strides contradict each other.")
            )
        return strided(
            self.bytes,
            where,
            encoding,
            offset=data.offset + ahead,
            stored=max(0, data.size - ahead),
            shape=found.shape,
            strides=found.strides,
        )


def saved(file: DumpFile) -> Saved:
    """The content of a `.pt` file; RefusedError if it is no archive of `torch.save`."""
    bytes_ = FileBytes.of(file)
    members, refused = members_of(bytes_)
    if refused:
        raise refused[0]
    top = next((name.rpartition("/")[0] for name in members if name.endswith("data.pkl")), None)
    if top is None:
        raise RefusedError("unknown-format", file.name, say("the archive describes no tensor."))
    content = described(_text(bytes_, members, f"{top}/data.pkl", LONGEST), file.name)
    big = _text(bytes_, members, f"{top}/byteorder", _LONGEST_NOTE) == b"big"
    return Saved(content, bytes_, members, top, ">" if big else "<")


def torch_tensor(file: DumpFile, declared: str | None = None) -> Stored:
    """The bare tensor in a `.pt` file; `declared` is the format a dump speaks of.

    RefusedError for anything else.
    """
    content = saved(file)
    if isinstance(content.content, Described):
        return content.stored(content.content, file.name, declared)
    for _, found in tensors_in(content.content, file.name):
        if isinstance(found, Opaque):
            raise found.refusal(file.name)
    raise RefusedError("layout", file.name, say("it holds something other than one tensor."))


def tensors_in(content: Any, where: str) -> Iterator[tuple[tuple[str, ...], Described | Opaque]]:
    """The tensors of a content by their path of keys and positions, in its order, and what stands
    where some may be.

    RefusedError where it is nested too deep, or so often that it would not end.
    """
    waiting: list[tuple[tuple[str, ...], Any]] = [((), content)]
    looked_at = 0
    while waiting:
        path, value = waiting.pop()
        looked_at += 1
        if looked_at > _MOST_VALUES or len(path) > _DEEPEST:
            raise RefusedError("depth", where, say("its values are nested too deep or too often."))
        if isinstance(value, Described | Opaque):
            yield path, value
        elif isinstance(value, dict):
            inside = [((*path, str(key)), each) for key, each in value.items()]
            waiting.extend(reversed(inside))
        elif isinstance(value, list | tuple):
            inside = [((*path, str(n)), each) for n, each in enumerate(value)]
            waiting.extend(reversed(inside))


def encoding_of_torch(stored: str, declared: str | None, order: Order, where: str) -> Encoding:
    """How elements of a format lie in a file; a declared one may be narrower, never other bits."""
    logical = None if declared is None else canonical(declared)
    if logical is not None and logical != stored and (stored in BITS or not holds(stored, logical)):
        raise RefusedError(
            "dtype",
            where,
            say(
                "the dump declares {logical}, the file {stored}.",
                logical=logical,
                stored=stored or "?",
            ),
        )
    if stored in BITS and stored != "float16":
        size = BITS[stored]
        return meant(np.dtype(f"{order}u{size}"), stored, logical, where)
    if stored == "bool":
        return meant(np.dtype("u1"), stored, logical, where)
    if not stored or canonical(stored) != stored or stored in ("tf32", "float4_e2m1fn"):
        raise RefusedError("dtype", where, say("its elements are of no format known here."))
    return meant(np.dtype(stored).newbyteorder(order), stored, logical, where)


def _text(bytes_: FileBytes, members: Mapping[str, Member], name: str, most: int) -> bytes:
    """A small uncompressed member, empty if there is none."""
    member = members.get(name)
    if member is None:
        return b""
    if member.deflated or member.size > most:
        raise RefusedError("ratio", member.where, say("it is compressed or too long."))
    with bytes_.opened() as descriptor:
        return bytes_at(descriptor, member.offset, member.size, bytes_)
