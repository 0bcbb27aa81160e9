"""Values that are not bytes of a file as they are: deflated in an archive, or text of base64."""

from __future__ import annotations

import base64
import binascii
import math
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from core.runs import Array, Selection
from core.selection import axes_of
from language import say
from loaders.archive import Member
from loaders.encoding import Encoding
from loaders.file_bytes import FileBytes, bytes_at
from loaders.hdf5.tiles import restretched, skipped
from loaders.npy_header import Header
from loaders.part import DumpFile, RefusedError, Source
from loaders.stretches import Unwritten

_PIECE = 1 << 20  # bytes, on both sides of the decompressor


def inflated(bytes_: FileBytes, member: Member) -> Iterator[bytes]:
    """The bytes of a deflated member in pieces of at most 1 MiB; RefusedError where they differ
    in number or checksum from what the archive declares.
    """
    machine, made, checksum = zlib.decompressobj(-zlib.MAX_WBITS), 0, 0
    for piece in _pieces(bytes_, member, machine):
        made += len(piece)
        checksum = zlib.crc32(piece, checksum)
        if made > member.size:
            raise RefusedError(
                "inflate", member.where, say("it inflates to more than it declares.")
            )
        yield piece
    if made < member.size:
        raise RefusedError(
            "chunk-length", member.where, say("it inflates to less than it declares.")
        )
    if checksum != member.checksum:
        raise RefusedError("checksum", member.where, say("its checksum is wrong."))


def _pieces(bytes_: FileBytes, member: Member, machine: Any) -> Iterator[bytes]:
    at, end, waiting = member.offset, member.offset + member.stored, b""
    with bytes_.opened() as descriptor:
        while not machine.eof and (waiting or at < end):
            if not waiting:
                waiting = os.pread(descriptor, min(_PIECE, end - at), at)
                at += len(waiting)
            if not waiting:
                return  # shorter than it was; said as too little made
            try:
                piece = machine.decompress(waiting, _PIECE)
            except zlib.error as error:
                raise RefusedError(
                    "inflate", member.where, say("it cannot be inflated.")
                ) from error
            waiting = machine.unconsumed_tail
            if piece:
                yield piece


class Stream(Protocol):
    """Bytes that come in order only. Small, picklable, holds no open file."""

    def pieces(self) -> Iterator[bytes]:
        """All bytes, in pieces of at most some MiB."""


@dataclass(frozen=True, slots=True)
class Deflated:
    """The bytes of a deflated member of an archive."""

    file: FileBytes
    member: Member

    def pieces(self) -> Iterator[bytes]:
        """Inflated, never more than declared."""
        return inflated(self.file, self.member)


@dataclass(frozen=True, slots=True)
class Base64:
    """Bytes written as text of base64, `length` characters from byte `offset` of a file on."""

    file: FileBytes
    offset: int
    length: int

    def pieces(self) -> Iterator[bytes]:
        """Decoded; RefusedError for other characters."""
        with self.file.opened() as descriptor:
            for at in range(0, self.length, _PIECE):
                count = min(_PIECE, self.length - at)
                text = bytes_at(descriptor, self.offset + at, count, self.file)
                try:
                    yield base64.b64decode(text, validate=True)
                except binascii.Error as error:
                    name = self.file.file.name
                    raise RefusedError("damaged", name, say("its base64 is damaged.")) from error


@dataclass(frozen=True, slots=True)
class Streamed:
    """An array in a stream of bytes; the whole of it counts as one storage chunk.

    `skipped` bytes stand before the values; `fortran`: the first axis varies fastest.
    """

    stream: Stream
    skipped: int
    shape: tuple[int, ...]
    encoding: Encoding
    fortran: bool
    seekable: ClassVar[bool] = False

    def chunks(self, elements: int, start: int = 0) -> Iterator[Array]:
        """Flat row-major stretches of exactly `elements` from `start` on, the last one shorter."""
        if 0 in self.shape:
            return iter(())
        if self.fortran:
            flat: Iterator[Array] = iter([self._whole().reshape(-1)])
        else:
            flat = (self.encoding.decode(raw) for raw in self._elements())
        return restretched(skipped(flat, start), elements)

    def read(self, selection: Selection) -> Array:
        """The selected part, out of all of it."""
        index = tuple(_index(axis) for axis in axes_of(selection, self.shape))
        return np.array(self._whole()[index])

    def _whole(self) -> Array:
        raw = np.empty(math.prod(self.shape), self.encoding.file)
        at = 0
        for piece in self._elements():
            raw[at : at + piece.size] = piece
            at += piece.size
        order = self.shape[::-1] if self.fortran else self.shape
        whole = self.encoding.decode(raw).reshape(order)
        return np.array(whole.T, order="C") if self.fortran else whole

    def _elements(self) -> Iterator[NDArray[Any]]:
        """Raw elements in the order of the file, as many in a piece as are whole."""
        unit, skip, rest = self.encoding.file.itemsize, self.skipped, b""
        for piece in self.stream.pieces():
            data = rest + piece[skip:]
            skip = max(0, skip - len(piece))
            whole = len(data) - len(data) % unit
            rest = data[whole:]
            yield np.frombuffer(data[:whole], self.encoding.file)


def streamed(stream: Stream, header: Header, size: int, file: DumpFile, where: str) -> Source:
    """The array in a stream of `size` bytes that begins with a NumPy header; else RefusedError."""
    nbytes = math.prod(header.shape) * header.encoding.file.itemsize
    if nbytes > file.limits.storage_chunk:
        hint = say("Write it as it is, without compression and not as text.")
        reason = say("it unpacks to {nbytes} bytes, more than is read at once.", nbytes=nbytes)
        raise RefusedError("chunk-size", where, reason, hint)
    if header.offset + nbytes != size:
        reason = say(
            "its shape needs {nbytes} bytes, it has {size}.",
            nbytes=nbytes,
            size=size - header.offset,
        )
        raise RefusedError("damaged", where, reason)
    if nbytes == 0:
        return Unwritten(header.shape, header.encoding.decode(np.zeros((), header.encoding.file)))
    return Streamed(stream, header.offset, header.shape, header.encoding, header.fortran)


def _index(axis: int | range) -> int | slice:
    if isinstance(axis, int):
        return axis
    stop = axis.stop if axis.stop >= 0 else None
    return slice(axis.start, stop, axis.step)
