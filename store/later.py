"""Answers that take longer than a page may wait: asked for once, there when they are ready."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import TimeoutError as NotYetError
from typing import Any

from store.workers import Future, explained

_PATIENCE_S = 0.25  # what is nearly there is waited for
_KEPT = 64


class Later:
    """Tasks in the background by what they answer; the latest are remembered."""

    def __init__(self) -> None:
        self._asked: OrderedDict[Hashable, Future] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self,
        key: Hashable,
        what: str,
        start: Callable[[], Future],
        *,
        still: Callable[[Any], bool] = lambda _answer: True,
    ) -> Any | None:
        """The answer, or None while it is being made; an error is raised once, then tried again.

        An answer that does not hold any more (`still`) is asked for again.
        """
        with self._lock:
            future = self._asked.get(key)
            if future is None or (_is_answered(future) and not still(future.result())):
                future = self._asked[key] = start()
            self._asked.move_to_end(key)
            self._forget()
        try:
            return future.result(timeout=_PATIENCE_S)
        except NotYetError as error:
            if not future.done():
                return None
            self._drop(key)
            raise explained(error, what) from error
        except BaseException as error:
            self._drop(key)
            raise explained(error, what) from error

    def _drop(self, key: Hashable) -> None:
        with self._lock:
            self._asked.pop(key, None)

    def _forget(self) -> None:
        """Forget old answers, and stop what nobody asked about for long."""
        while len(self._asked) > _KEPT:
            _, future = self._asked.popitem(last=False)
            future.cancel()


def _is_answered(future: Future) -> bool:
    return bool(future.done() and not future.cancelled() and future.exception() is None)
