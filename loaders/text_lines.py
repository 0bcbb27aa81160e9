"""Logs of text: lines of a file, read within bounds."""

from __future__ import annotations

from collections.abc import Iterator

from language import say
from loaders.file_bytes import FileBytes, bytes_at
from loaders.part import DumpFile, RefusedError

_PIECE = 1 << 20
_LONGEST = 1 << 16  # bytes of one line; the rest of a longer one is passed over


def lines_of(file: DumpFile) -> Iterator[str]:
    """The lines without their ends; bytes that are not UTF-8 come out escaped."""
    bytes_ = FileBytes.of(file)
    if bytes_.size > file.limits.document:
        raise RefusedError(
            "objects", file.name, say("it is a log of {size} bytes.", size=bytes_.size)
        )
    rest = b""
    with bytes_.opened() as descriptor:
        for at in range(0, bytes_.size, _PIECE):
            text = rest + bytes_at(descriptor, at, min(_PIECE, bytes_.size - at), bytes_)
            *whole, rest = text.split(b"\n")
            yield from map(_text, whole)
    if rest:
        yield _text(rest)


def _text(line: bytes) -> str:
    return line[:_LONGEST].decode("utf-8", "backslashreplace").rstrip("\r")
