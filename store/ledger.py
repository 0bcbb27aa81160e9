"""A file that grows with every batch measured; killed at any point, it loses the last one at most.

After eight magic bytes come frames: four bytes of length, sixteen of a BLAKE3 digest, the content.
The first holds a key, each other one a package of measured pieces. A frame that is cut short or
damaged ends the file for its readers; its writer goes on from there.
"""

from __future__ import annotations

import fcntl
import functools
import itertools
import mmap
import os
import struct
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from blake3 import blake3

from analysis.measuring import Measured, Outline
from core.stats import PairStats
from store.kept_stats import Frames, KeptStats
from store.packing import measured_package, outlines_of, package

MAGIC = b"pxledg1\n"
_FRAME = struct.Struct("<I16s")
_SYNC_S = 2.0  # what a power cut may cost; a killed process loses nothing that was added
_TOGETHER = 256  # statistics in a frame


class LedgerBusyError(Exception):
    """Another process is writing to the ledger."""


class FileLedger:
    """A ledger of `analysis.execution` in a file. `key` says what is measured, and how.

    A file with another key is started anew. `metrics` are computed beside the statistics.
    """

    def __init__(self, path: Path, *, key: str, metrics: Sequence[str] = ()) -> None:
        self.path = path
        self.measure = functools.partial(measured_package, metrics=tuple(metrics))
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._file)
            raise LedgerBusyError(str(path)) from error
        self._places: dict[tuple[int, int], tuple[int, int]] = {}  # piece: frame, row
        self._known: list[Outline] = []
        self._end = self._taken_up(key.encode())
        self._synced = time.monotonic()
        self.frames = Frames(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def known(self) -> Iterable[Outline]:
        """The pieces that were kept before."""
        return self._known

    def add(self, packed: bytes) -> Iterable[Outline]:
        """Append the package of a batch."""
        outlines = outlines_of(packed)
        self._append(packed)
        self._enter(self._end - len(packed), outlines)
        if time.monotonic() - self._synced > _SYNC_S:
            self.sync()
        return outlines

    def lost(self, outline: Outline) -> Iterable[Outline]:
        """Keep a piece that nobody could measure."""
        return self.add(package([Measured(outline, None)]))

    def stats(self, number: int, pieces: int) -> PairStats:
        """The statistics of a subject, decoded when they are asked for."""
        return KeptStats(self.frames, [self._places[number, piece] for piece in range(pieces)])

    def holds(self, stats: PairStats) -> bool:
        """Whether statistics are in this file."""
        return isinstance(stats, KeptStats) and stats.frames is self.frames

    def keep(self, stats: Iterable[PairStats]) -> Iterator[PairStats]:
        """Append statistics that were measured elsewhere, in the order given."""
        rest = iter(stats)
        while some := list(itertools.islice(rest, _TOGETHER)):
            first = self._end
            outlines = [Outline(-1 - first - n, 0, "", "") for n in range(len(some))]
            self.add(package([Measured(*each) for each in zip(outlines, some, strict=True)]))
            yield from (self.stats(outline.number, 1) for outline in outlines)

    def sync(self) -> None:
        """Write through to the disk."""
        os.fsync(self._file)
        self._synced = time.monotonic()

    def close(self) -> None:
        """Give the file up; what was read of it stays readable."""
        with suppress(OSError):
            os.close(self._file)

    def _taken_up(self, key: bytes) -> int:
        """Enter what the file holds under this key; where the next frame goes."""
        found = list(frames_of(self.path))
        if not found or found[0][1] != key:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, MAGIC, 0)
            self._end = len(MAGIC)
            self._append(key)
            return self._end
        end = found[0][0] + len(key)
        for place, packed in found[1:]:
            outlines = outlines_of(packed)
            self._known.extend(outlines)
            self._enter(place, outlines)
            end = place + len(packed)
        os.ftruncate(self._file, end)
        return end

    def _append(self, content: bytes) -> None:
        frame = _FRAME.pack(len(content), _digest(content)) + content
        done = 0
        while done < len(frame):
            done += os.pwrite(self._file, frame[done:], self._end + done)
        self._end += len(frame)

    def _enter(self, place: int, outlines: Sequence[Outline]) -> None:
        for row, outline in enumerate(outlines):
            self._places[outline.number, outline.piece] = (place, row)


def frames_of(path: Path) -> Iterator[tuple[int, Any]]:
    """Place and content of each whole frame of a file; nothing if it is no ledger."""
    size = path.stat().st_size
    if size <= len(MAGIC):
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        at = len(MAGIC)
        if mapped[:at] != MAGIC:
            return
        while at + _FRAME.size <= size:
            length, digest = _FRAME.unpack(mapped[at : at + _FRAME.size])
            at += _FRAME.size
            if at + length > size:
                return
            content = mapped[at : at + length]
            if _digest(content) != digest:
                return
            yield at, content
            at += length


def _digest(content: bytes) -> bytes:
    return bytes(blake3(content).digest(length=16))
