"""Batches given to an executor, a few at a time; the results handed on as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from typing import Any, Protocol

from analysis.batches import Batch, Task, task_bytes
from analysis.measuring import UNREADABLE, Measured, Outline, Told, measure
from core.stats import PairStats
from language import say

_AHEAD = 2  # batches a worker: one at work, one that it finds when it is done
_POLL_S = 0.2  # how long a wish to stop may go unheard while all workers are busy
_LOST = say("cannot be read: the worker that read it died. The file is probably damaged.")


class Executor(Protocol):
    """Worker processes, here or elsewhere. `lost` are the errors of a task whose worker died."""

    workers: int
    lost: tuple[type[BaseException], ...]

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function of a module in a worker; cancelling ends it if the executor can."""


class Ledger(Protocol):
    """Where measured pieces are kept. `measure` runs in workers, `add` takes what it returned."""

    @property
    def measure(self) -> Callable[..., Any]:
        """Picklable, with the signature of `analysis.measuring.measure`."""

    def known(self) -> Iterable[Outline]:
        """The pieces that were kept before, by a comparison of the same runs that was stopped."""

    def add(self, result: Any) -> Iterable[Outline]:
        """Keep the result of a batch; what was in it."""

    def lost(self, outline: Outline) -> Iterable[Outline]:
        """Keep a piece that nobody could measure."""

    def stats(self, number: int, pieces: int) -> PairStats:
        """The statistics of a subject of which all pieces were added."""


class Memory:
    """A ledger that keeps everything as it is, in memory."""

    measure = staticmethod(measure)

    def __init__(self) -> None:
        self._stats: dict[tuple[int, int], PairStats] = {}

    def known(self) -> Iterable[Outline]:
        """Nothing."""
        return ()

    def add(self, result: list[Measured]) -> Iterable[Outline]:
        """Keep measured pieces."""
        for each in result:
            if each.stats is not None:
                self._stats[each.outline.number, each.outline.piece] = each.stats
        return [each.outline for each in result]

    def lost(self, outline: Outline) -> Iterable[Outline]:
        """Nothing to keep."""
        return (outline,)

    def stats(self, number: int, pieces: int) -> PairStats:
        """The pieces put together in order."""
        if pieces == 1:
            return self._stats[number, 0]
        return PairStats.merged([self._stats[number, piece] for piece in range(pieces)])


def run_here(work: Iterable[Batch], ledger: Ledger, told: Told) -> Iterator[Outline]:
    """One batch after the other, in this process."""
    for batch in work:
        yield from ledger.add(ledger.measure(batch, told))


def run_elsewhere(
    executor: Executor, work: Iterable[Batch], ledger: Ledger, told: Told
) -> Iterator[Outline]:
    """Some batches at once; results are kept in the order in which they come.

    `told` hears of batches, and at least every 0.2 s; if it raises, what runs is cancelled. A batch
    whose worker died is tried again task by task, so that one bad tensor costs only itself.
    """
    window = _Window(executor, ledger)
    try:
        for batch in work:
            yield from window.settled(executor.workers * _AHEAD - 1, told)
            window.submit(batch)
        yield from window.settled(0, told)
    finally:
        window.cancel()


class _Window:
    """The batches under way."""

    def __init__(self, executor: Executor, ledger: Ledger) -> None:
        self._executor, self._ledger = executor, ledger
        self._waiting: dict[Future[Any], Batch] = {}

    def submit(self, batch: Batch) -> None:
        """Give a batch to the workers."""
        self._waiting[self._executor.submit(self._ledger.measure, batch)] = batch

    def settled(self, most: int, told: Told) -> Iterator[Outline]:
        """What comes back until no more than `most` batches are under way."""
        while len(self._waiting) > most:
            done, _ = wait(self._waiting, timeout=_POLL_S, return_when=FIRST_COMPLETED)
            told(0, "")
            for future in done:
                batch = self._waiting.pop(future)
                yield from self._result(future, batch, told)

    def cancel(self) -> None:
        """End what is still under way."""
        for future in self._waiting:
            future.cancel()

    def _result(self, future: Future[Any], batch: Batch, told: Told) -> Iterable[Outline]:
        try:
            outlines = self._ledger.add(future.result())
        except self._executor.lost:
            if len(batch.tasks) > 1:
                for task in batch.tasks:
                    self.submit(replace(batch, tasks=(task,), nbytes=_share(batch, task)))
                return ()
            outlines = [o for lost in _lost(batch) for o in self._ledger.lost(lost)]
        told(batch.nbytes, batch.tasks[-1].subject.reference or "")
        return outlines


def _share(batch: Batch, task: Task) -> int:
    return task_bytes((batch.reference, batch.candidate), task)


def _lost(batch: Batch) -> Iterator[Outline]:
    (task,) = batch.tasks
    subject = task.subject
    a, b = ("" if name is None else UNREADABLE for name in (subject.reference, subject.candidate))
    problem = None if subject.tolerance is None else _LOST
    for piece in range(task.first, task.end):
        yield Outline(task.number, piece, a, b, problem)
