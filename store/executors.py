"""Who measures batches: processes of this machine, or those of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pebble import ProcessExpired

from core.errors import CompareError
from language import say
from metrics.engine.place import cache_folder
from store.confinement import Bounds
from store.options import Options, workspace_root
from store.workers import Workers

_NO_LIMIT_S = 0.0
_PRELOADED = ("store.packing", "metrics.engine.accumulator")
_CONNECT_S = 30


class LocalWorkers:
    """Confined processes on this machine, which read these dumps and nothing else."""

    lost: tuple[type[BaseException], ...] = (ProcessExpired, BrokenProcessPool, MemoryError)

    def __init__(self, count: int, dumps: Sequence[Path]) -> None:
        self.workers = count
        readable = (*(str(dump.resolve()) for dump in dumps), str(cache_folder()))
        bounds = Bounds(
            readable=readable,
            writable=(),
            private=str(workspace_root()),
            nbytes=Options().memory,
        )
        self._pool = Workers(count, bounds, preload=_PRELOADED)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.close()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function of a module in a worker; cancelling ends the worker."""
        future: Future[Any] = self._pool.schedule(function, *arguments, timeout_s=_NO_LIMIT_S)
        return future


class Cluster:
    """The workers of a Dask cluster, which must see the dumps under the same paths as we do.

    They run this same checkout: the scheduler refuses what it cannot import. A task whose worker
    dies is given to another one by the scheduler, and lost only after several deaths.
    """

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client, KilledWorker
        except ImportError as error:
            hint = say("Install it: pip install -r requirements-cluster.txt")
            raise CompareError(say("A cluster needs dask.distributed."), hint) from error
        try:
            self._client = Client(address, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            hint = say("Give the scheduler's address, such as tcp://host:8786.")
            raise CompareError(
                say("There is no Dask scheduler at {address}.", address=address), hint
            ) from error
        self.lost: tuple[type[BaseException], ...] = (KilledWorker,)
        self.workers = sum(self._client.nthreads().values()) or 1
        self._executor = self._client.get_executor(pure=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function of a module in a worker of the cluster."""
        future: Future[Any] = self._executor.submit(function, *arguments)
        return future
