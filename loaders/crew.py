"""Arrays filled by several threads, the next one while its reader works on the last."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

_CORES = len(os.sched_getaffinity(0))
_ALONE = 1 << 20  # bytes; filling less is quicker than handing it over
_AHEAD = 64 << 20  # bytes of two arrays, the one in use and the one ahead of it


@dataclass(frozen=True, slots=True)
class Order:
    """An array and the work that fills it, in pieces that may be done in any order at once."""

    array: NDArray[Any]
    pieces: Sequence[Callable[[], None]]


def filled(orders: Iterator[Order]) -> Iterator[NDArray[Any]]:
    """The arrays in order, each once it is full; one is worked on ahead where memory allows.

    What a piece raises is raised here. Leaving early waits for pieces that have begun.
    """
    waiting: deque[tuple[Order, list[Future[None]]]] = deque()
    with _crew() as crew:
        for order in orders:
            while waiting and (len(waiting) > 1 or not _fit(waiting[-1][0], order)):
                yield _finished(waiting.popleft())
            waiting.append((order, _begun(crew, order, alone=not waiting)))
        while waiting:
            yield _finished(waiting.popleft())


@contextlib.contextmanager
def _crew() -> Iterator[Executor]:
    crew = ThreadPoolExecutor(_CORES, "reading")  # its threads start with the first piece
    try:
        yield crew
    finally:
        crew.shutdown(cancel_futures=True)


def _fit(last: Order, following: Order) -> bool:
    return last.array.nbytes + following.array.nbytes <= _AHEAD


def _begun(crew: Executor, order: Order, *, alone: bool) -> list[Future[None]]:
    if order.array.nbytes >= _ALONE or not alone:
        return [crew.submit(piece) for piece in order.pieces]
    for piece in order.pieces:
        piece()
    return []


def _finished(begun: tuple[Order, list[Future[None]]]) -> NDArray[Any]:
    order, pieces = begun
    for piece in pieces:
        piece.result()
    return order.array
