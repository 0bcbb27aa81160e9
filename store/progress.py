"""How far a job is, told through a small file: worker writes, server reads."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path

from store.jsonable import to_plain

INTERVAL_S = 0.2
_MAX_BYTES = 4096
_MAX_MESSAGE = 300
_COUNTS = ("done_bytes", "total_bytes", "done_pairs", "total_pairs")


@dataclass(frozen=True, slots=True)
class Standing:
    """State of a running job."""

    done_bytes: int = 0
    total_bytes: int = 0
    done_pairs: int = 0
    total_pairs: int = 0
    message: str = ""
    bytes_per_s: float = math.nan
    left_s: float = math.nan


class Teller:
    """Writes a job's standing, at most five times a second.

    Every call also puts off the alarm that ends a worker without progress: a reader that hangs
    inside a C library can be ended by nothing else.
    """

    def __init__(self, path: Path, *, stall_s: int) -> None:
        self._path, self._stall_s, self._next = path, stall_s, 0.0

    def wait_on(self) -> None:
        """Put off the alarm alone."""
        signal.alarm(self._stall_s)

    def tell(self, standing: Standing) -> None:
        """Write a standing, or skip it when one was written just now."""
        self.wait_on()
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + INTERVAL_S
        text = json.dumps(to_plain(replace(standing, message=standing.message[:_MAX_MESSAGE])))
        draft = self._path.with_suffix(".draft")
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, self._path)  # noqa: PTH105 - atomic, whatever is there


def standing(path: Path) -> Standing | None:
    """What the worker told last; None before it started.

    A worker may have been taken over by a crafted dump: whatever else it left here counts as
    "running, nothing known".
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file, contextlib.suppress(ValueError, TypeError, KeyError):
        told = json.loads(file.read(_MAX_BYTES))
        counts = {name: int(told[name]) for name in _COUNTS}
        return Standing(
            **counts,
            message=str(told["message"])[:_MAX_MESSAGE],
            bytes_per_s=float(told["bytes_per_s"]),
            left_s=float(told["left_s"]),
        )
    return Standing()


def forget(path: Path) -> None:
    """Remove a job's progress file."""
    path.unlink(missing_ok=True)
    path.with_suffix(".draft").unlink(missing_ok=True)
