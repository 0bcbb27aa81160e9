"""The pairs of a kept comparison, decoded when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import overload

from core.comparison import Pair
from core.stats import PairStats
from store.kept_stats import Frames, KeptStats, Place
from store.tables import Rows


@dataclass(frozen=True, slots=True)
class Places:
    """Where the statistics of a pair are: a frame of the ledger and a row in it for each piece."""

    frames: tuple[int, ...]
    rows: tuple[int, ...]

    @classmethod
    def of(cls, stats: PairStats | None) -> Places:
        """Of statistics that are in a ledger; of none, nowhere."""
        if not isinstance(stats, KeptStats):
            return cls((), ())
        return cls(tuple(f for f, _ in stats.places), tuple(r for _, r in stats.places))


class KeptPairs(Sequence[Pair]):
    """The pairs in a comparison's folder."""

    def __init__(self, folder: Path) -> None:
        self._pairs = Rows(folder / "pairs.parquet", Pair)
        self._places = Rows(folder / "places.parquet", Places)
        self.frames = Frames(folder / "stats.ledger")

    def places(self) -> Iterator[Place]:
        """Everywhere that statistics of these pairs are said to be."""
        for at in self._places:
            yield from zip(at.frames, at.rows, strict=True)

    def __len__(self) -> int:
        return len(self._pairs)

    @overload
    def __getitem__(self, place: int) -> Pair: ...
    @overload
    def __getitem__(self, place: slice) -> list[Pair]: ...
    def __getitem__(self, place: int | slice) -> Pair | list[Pair]:
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(len(self)))]
        pair, at = self._pairs[place], self._places[place]
        if not at.frames:
            return pair
        stats = KeptStats(self.frames, tuple(zip(at.frames, at.rows, strict=True)))
        return replace(pair, stats=stats)
