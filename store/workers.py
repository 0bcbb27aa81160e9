"""Supervised worker processes: a crash, a hang or a memory hog costs one task."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from pebble import ProcessExpired, ProcessPool

from core.errors import ExplorerError
from language import say
from store.confinement import Bounds, confine

T = TypeVar("T")
Future = Any  # pebble's, a concurrent.futures.Future whose cancel() also ends a running task

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_PARENT_POLL_S = 2.0
_DAMAGED = say("The file is probably damaged or made to harm; every other dump still works.")


class Workers:
    """A pool of confined processes, started with the first task and again when it broke."""

    def __init__(self, count: int, bounds: Bounds, *, preload: tuple[str, ...] = ()) -> None:
        self._count, self._bounds, self._preload = count, bounds, preload
        self._pool: ProcessPool | None = None
        self._lock = threading.Lock()

    def schedule(self, function: Callable[..., Any], *arguments: Any, timeout_s: float) -> Future:
        """Queue a call of a module-level function; `timeout_s` counts from its start."""
        return self._running().schedule(function, args=arguments, timeout=timeout_s)

    def call(self, what: str, function: Callable[..., T], *arguments: Any, timeout_s: float) -> T:
        """Run a function in a worker and wait for it; `what` names the task in errors."""
        for attempt in (1, 2):
            future = self.schedule(function, *arguments, timeout_s=timeout_s)
            try:
                result: T = future.result()
                return result
            except BrokenProcessPool:  # an idle worker died and took the pool along
                if attempt == 2:
                    raise
            except BaseException as error:
                raise explained(error, what) from error
        raise AssertionError("unreachable")

    def warm(self) -> None:
        """Start the processes now, so that the first question does not wait for them."""
        self._running()

    def close(self) -> None:
        """End all processes, whatever they do."""
        with self._lock:
            if self._pool is not None:
                self._pool.stop()
                self._pool.join()
            self._pool = None

    def _running(self) -> ProcessPool:
        with self._lock:
            if self._pool is None or not self._pool.active:
                self._pool = ProcessPool(
                    max_workers=self._count,
                    initializer=_start,
                    initargs=(self._bounds, self._preload),
                    context=multiprocessing.get_context("spawn"),  # forked HDF5 deadlocks
                )
                self._pool.schedule(_nothing)  # pebble starts its processes with the first task
            return self._pool


def explained(error: BaseException, what: str) -> BaseException:
    """The error of a task as the user should see it; bugs and our own errors stay what they are."""
    if isinstance(error, TimeoutError):
        return ExplorerError(
            say("The worker that {what} took too long and was stopped.", what=what), _DAMAGED
        )
    if isinstance(error, MemoryError):
        hint = say("Choose a smaller part, or raise PX_WORKER_MEMORY if the dump is to be trusted.")
        return ExplorerError(
            say("The worker that {what} needed more memory than it may use.", what=what), hint
        )
    if isinstance(error, ProcessExpired):
        return ExplorerError(
            say("The worker that {what} {ending}.", what=what, ending=_ending(-error.exitcode)),
            _DAMAGED,
        )
    if isinstance(error, CancelledError):
        return ExplorerError(
            say("The worker that {what} was stopped.", what=what), say("Try again.")
        )
    return error


def _ending(number: int) -> str:
    if number == signal.SIGALRM:
        return say("made no progress for minutes and was stopped")
    if number == signal.SIGKILL:
        return say("was killed, most likely because memory ran out")
    name = (
        signal.Signals(number).name
        if number in set(signal.Signals)
        else say("exit code {value}", value=-number)
    )
    return say("crashed ({name})", name=name)


def _start(bounds: Bounds, preload: tuple[str, ...]) -> None:
    """First thing a worker does: confine itself, then import what tasks need."""
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))  # before NumPy is there; cores are ours
    os.environ["HDF5_PLUGIN_PRELOAD"] = "::"  # no filter libraries named by a dump
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # cancelling must not wait for Python to listen
    confine(bounds)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    for name in preload:
        importlib.import_module(name)


def _end_with(parent: int) -> None:
    """Follow the server when it is killed: nobody would read the result."""
    while os.getppid() == parent:
        time.sleep(_PARENT_POLL_S)
    os._exit(1)


def _nothing() -> None:
    """Do nothing, in a worker."""
