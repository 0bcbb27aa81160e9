"""What a worker does with a batch: statistics and content digests from one reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

import numpy as np
from blake3 import blake3

from analysis.batches import PIECE, Batch, Task
from core.errors import LoadError
from core.runs import Array, Run
from core.stats import PairStats
from language import say
from metrics import accumulator, formats

CHUNK = 1 << 22  # elements; some segments of the engine for each core; memory grows with it
_ASIDE_BYTES = 1 << 20  # chunks from here on are hashed beside the statistics
UNREADABLE = "unreadable"

Told = Callable[[int, str], None]  # bytes of a chunk, tensor id


@dataclass(frozen=True, slots=True)
class Outline:
    """What is known of a piece of a subject without its statistics.

    `reference` and `candidate` are content digests of the piece, "unreadable", or empty where the
    subject has no such side; `problem` says why there are no statistics although there should be.
    """

    number: int
    piece: int
    reference: str
    candidate: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """A piece of a subject, measured; no statistics where it is a side alone or has a problem."""

    outline: Outline
    stats: PairStats | None


def measure(batch: Batch, told: Told = lambda _nbytes, _where: None) -> list[Measured]:
    """Measure every piece of a batch; `told` hears of each chunk and may raise to stop."""
    with ThreadPoolExecutor(2) as hashing:  # starts no thread before it is asked
        aside = hashing if batch.threads > 1 else None
        return [
            measured
            for task in batch.tasks
            for measured in _task(batch, task, _Reading(told, aside))
        ]


@dataclass(frozen=True, slots=True)
class _Reading:
    """How chunks are read: who hears of it, who hashes large ones (None: the reader itself)."""

    told: Told
    aside: Executor | None


def _task(batch: Batch, task: Task, reading: _Reading) -> Iterator[Measured]:
    subject = task.subject
    sides = [
        None if name is None else _Side(run, name, task.first * PIECE, reading)
        for run, name in (
            (batch.reference, subject.reference),
            (batch.candidate, subject.candidate),
        )
    ]
    for piece in range(task.first, task.end):
        for side in sides:
            if side is not None:
                side.begin()
        yield _piece(batch, task, piece, sides)


def _piece(batch: Batch, task: Task, piece: int, sides: list[_Side | None]) -> Measured:
    stats, problem = None, None
    ours, theirs = sides
    if task.subject.tolerance is not None and ours is not None and theirs is not None:
        gathered = accumulator(
            task.subject.tolerance,
            dtype=formats.coarser_of(ours.tensor.dtype, theirs.tensor.dtype),
            dtypes=(ours.tensor.dtype, theirs.tensor.dtype),
            shape=ours.tensor.shape,
            start=piece * PIECE,
            threads=batch.threads,
            device=batch.device,
        )
        try:
            for x, y in zip(ours, theirs, strict=True):
                gathered.add(x, y)
            stats = gathered.stats()
        except LoadError as error:
            problem = say("cannot be read: {error}", error=error)
    digests = ["" if side is None else side.digest() for side in (ours, theirs)]
    return Measured(Outline(task.number, piece, digests[0], digests[1], problem), stats)


class _Side:
    """One side of a subject, read chunk by chunk; the bytes leave a digest for every piece."""

    def __init__(self, run: Run, name: str, start: int, reading: _Reading) -> None:
        self.tensor = run[name]
        self._reading = reading
        self._chunks = run.chunks(name, min(CHUNK, PIECE), start)
        self._rest = self.tensor.size - start
        self._unreadable = False
        self._left = 0
        self._hash = blake3()
        self._hashed: Future[object] | None = None

    def begin(self) -> None:
        """The next piece starts here."""
        self._hash = blake3()
        self._left = min(PIECE, self._rest)
        self._rest -= self._left

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Array:
        self._wait()
        if not self._left:
            raise StopIteration
        if self._unreadable:
            raise LoadError(say("an earlier part of it cannot be read."))
        try:
            flat = np.ascontiguousarray(next(self._chunks))
        except (LoadError, StopIteration) as error:
            self._unreadable = True
            if isinstance(error, LoadError):
                raise
            raise LoadError(say("{id} ends early.", id=self.tensor.id)) from error
        self._reading.told(flat.nbytes, self.tensor.id)
        self._left -= flat.size
        self._add(flat)
        return flat

    def digest(self) -> str:
        """Content digest of the whole piece, the rest of which is read now."""
        try:
            for _ in self:
                pass
        except LoadError:
            return UNREADABLE
        return str(self._hash.hexdigest())

    def _add(self, flat: Array) -> None:
        raw = flat.view(np.uint8).data if flat.size else b""
        if self._reading.aside is None or flat.nbytes < _ASIDE_BYTES:
            self._hash.update(raw)
        else:
            self._hashed = self._reading.aside.submit(self._hash.update, raw)

    def _wait(self) -> None:
        if self._hashed is not None:
            self._hashed.result()
            self._hashed = None
