"""Statistics in a ledger's file, decoded field by field when they are asked for."""

from __future__ import annotations

import mmap
import struct
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from core.stats import FloatArray, PairStats
from store.cache import Recent
from store.packing import columns_of, values_of

_LENGTH = struct.Struct("<I16s")  # before each frame
_DECODED = 96  # columns of frames

Place = tuple[int, int]  # where the frame's content begins, row in it


class Frames:
    """The frames of a file. It may grow and may be moved or removed meanwhile."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        weakref.finalize(self, self._file.close)
        self._mapped: mmap.mmap | None = None
        self._lock = threading.Lock()
        self._decoded: Recent[list[Any]] = Recent(_DECODED)

    def value(self, place: Place, name: str) -> Any:
        """A field of the statistics in one row."""
        frame, row = place
        column = f"stats.{name}"

        def decoded() -> list[Any]:
            return values_of(columns_of(self._content(frame), [column]), column)

        return self._decoded.get((frame, name), decoded)[row]

    def metrics(self, frame: int, names: Sequence[str]) -> FloatArray:
        """Metrics of all rows of a frame, (metrics, rows); KeyError if one is not kept."""
        columns = columns_of(self._content(frame), [f"metric.{name}" for name in names])
        return np.array([column.to_numpy() for column in columns.values()])

    def _content(self, frame: int) -> memoryview:
        with self._lock:
            if self._mapped is None or frame >= len(self._mapped):
                self._mapped = mmap.mmap(self._file.fileno(), 0, prot=mmap.PROT_READ)
            whole = memoryview(self._mapped)
        (length, _) = _LENGTH.unpack(whole[frame - _LENGTH.size : frame])
        return whole[frame : frame + length]


class KeptStats(PairStats):
    """Statistics of a pair at one place of a ledger, or at several: pieces in their order."""

    __slots__ = ("frames", "places")

    frames: Frames
    places: tuple[Place, ...]

    def __init__(self, frames: Frames, places: Sequence[Place]) -> None:
        object.__setattr__(self, "frames", frames)
        object.__setattr__(self, "places", tuple(places))

    def __reduce__(self) -> tuple[Any, ...]:
        return PairStats, tuple(getattr(self, f.name) for f in fields(PairStats))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PairStats) and all(
            getattr(self, f.name) == getattr(other, f.name) for f in fields(PairStats)
        )

    __hash__ = None  # type: ignore[assignment]


def _field(name: str) -> Callable[[KeptStats], Any]:
    def value(self: KeptStats) -> Any:
        if len(self.places) == 1:
            return self.frames.value(self.places[0], name)
        pieces = [KeptStats(self.frames, [place]) for place in self.places]
        return getattr(PairStats.merged(pieces), name)

    return value


for _each in fields(PairStats):
    setattr(KeptStats, _each.name, property(_field(_each.name)))
