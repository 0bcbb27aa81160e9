"""How far a comparison is, how fast it goes and how long it will take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a comparison is; bytes count both runs as stored, `where` is the tensor at hand.

    `kept_bytes` of those done were measured before the comparison was stopped and resumed.
    """

    done_bytes: int
    total_bytes: int
    done_pairs: int
    total_pairs: int
    where: str
    elapsed_s: float = 0.0
    kept_bytes: int = 0

    @property
    def bytes_per_s(self) -> float:
        """Rate since the start or the resuming; NaN before anything was measured."""
        fresh = self.done_bytes - self.kept_bytes
        return fresh / self.elapsed_s if fresh > 0 and self.elapsed_s else math.nan

    @property
    def left_s(self) -> float:
        """Seconds that the rest will take at that rate; NaN while there is none."""
        return (self.total_bytes - self.done_bytes) / self.bytes_per_s


Report = Callable[[Progress], None]


class Teller:
    """Counts what was done and reports it; called with the bytes of a chunk and a tensor's id."""

    def __init__(
        self, report: Report, *, total_bytes: int, total_pairs: int, kept_bytes: int
    ) -> None:
        self._report, self._begun = report, time.monotonic()
        self._total_bytes, self._total_pairs = total_bytes, total_pairs
        self._kept_bytes = self._done_bytes = kept_bytes
        self.done_pairs = 0

    def __call__(self, nbytes: int, where: str) -> None:
        self._done_bytes += nbytes
        self._report(
            Progress(
                min(self._done_bytes, self._total_bytes),
                self._total_bytes,
                self.done_pairs,
                self._total_pairs,
                where,
                time.monotonic() - self._begun,
                self._kept_bytes,
            )
        )
