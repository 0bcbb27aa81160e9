"""Compressed files as streams that never give more than they may, nor need much memory."""

from __future__ import annotations

import bz2
import lzma
import os
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from language import say
from loaders.file_bytes import FileBytes
from loaders.part import RefusedError

_PIECE = 1 << 18
_DICTIONARY = 256 << 20  # bytes of memory xz may ask for; its strongest preset needs 65 MiB


class _Decompressor(Protocol):
    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int = ...) -> bytes: ...


class _Gzip:
    """zlib's machine with the manners of the other two."""

    def __init__(self) -> None:
        self._machine = zlib.decompressobj(wbits=31)
        self._waiting = b""

    @property
    def eof(self) -> bool:
        return self._machine.eof

    @property
    def unused_data(self) -> bytes:
        return self._machine.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._waiting

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        made = self._machine.decompress(self._waiting + data, max_length)
        self._waiting = self._machine.unconsumed_tail
        return made


_MAGIC: Mapping[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": _Gzip,
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_DICTIONARY),
}


def is_compressed(head: bytes) -> bool:
    """Whether a file begins as gzip, bzip2 or xz."""
    return any(head.startswith(magic) for magic in _MAGIC)


class Metered:
    """The bytes of a file, decompressed if they are compressed; `read` as tarfile asks for it.

    RefusedError once more than `most` bytes came out in all, or more than was allowed since the
    last `allow`: a header may be declared as large as the rest of the archive.
    """

    def __init__(self, descriptor: int, file: FileBytes, head: bytes, most: int) -> None:
        self._descriptor, self._file, self._most = descriptor, file, most
        self._start = next((make for magic, make in _MAGIC.items() if head.startswith(magic)), None)
        self._machine = self._start() if self._start else None
        self._at = self.made = 0
        self._ahead = b""
        self._allowed = most

    def peek(self, count: int) -> bytes:
        """The next bytes, which are read again."""
        self._ahead = self.read(count)
        return self._ahead

    def allow(self, nbytes: int) -> None:
        """Give at most this many bytes until the next call."""
        self._allowed = nbytes

    def read(self, count: int) -> bytes:
        """At most `count` bytes, fewer only at the end."""
        parts = [self._ahead[:count]]
        self._ahead = self._ahead[count:]
        missing = count - len(parts[0])
        while missing > 0:
            part = self._some(min(missing, _PIECE))
            if not part:
                break
            parts.append(part)
            missing -= len(part)
            self._count(len(part))
        return b"".join(parts)

    def _count(self, made: int) -> None:
        self.made += made
        self._allowed -= made
        if self.made > self._most:
            reason = say("it unpacks to more than {most} bytes.", most=self._most)
            raise RefusedError("ratio", self._file.file.name, reason)
        if self._allowed < 0:
            reason = say("it holds a header longer than any archive of a dump needs.")
            raise RefusedError("objects", self._file.file.name, reason)

    def _some(self, most: int) -> bytes:
        if self._machine is None:
            return self._raw(most)
        while True:
            if self._machine.eof and not self._restarted():
                return b""
            data = self._raw(_PIECE) if self._machine.needs_input else b""
            if self._machine.needs_input and not data:
                raise RefusedError("truncated", self._file.file.name, say("it ends too early."))
            try:
                made: bytes = self._machine.decompress(data, most)
            except (lzma.LZMAError, zlib.error, OSError, ValueError, EOFError) as error:
                reason = say("it cannot be decompressed.")
                raise RefusedError("inflate", self._file.file.name, reason) from error
            if made:
                return made

    def _restarted(self) -> bool:
        """Begin the next of several streams in a row, if there is one."""
        assert self._machine is not None
        assert self._start is not None
        rest = self._machine.unused_data
        if not rest.strip(b"\0"):
            rest = self._raw(_PIECE)
        if not rest.strip(b"\0"):
            return False
        self._at -= len(rest)
        self._machine = self._start()
        return True

    def _raw(self, most: int) -> bytes:
        data = os.pread(self._descriptor, most, self._at)
        self._at += len(data)
        return data
