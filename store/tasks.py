"""What runs inside a confined worker process: only there are dumps opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import loaders
from core.runs import Run
from store.cache import Recent

_OPEN_RUNS = 6
_opened: Recent[Run] = Recent(_OPEN_RUNS)


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump to open. The run id changes when the dump does, so it says what may be reused."""

    run_id: str
    path: str
    label: str

    def open(self) -> Run:
        """The run; its description is kept in memory for the next task."""
        return _opened.get(self.run_id, lambda: loaders.open_run(Path(self.path), label=self.label))


def call(
    function: Callable[..., Any], reference: Dump, candidate: Dump, arguments: Mapping[str, Any]
) -> Any:
    """Run a question about a pair of dumps."""
    return function(reference.open(), candidate.open(), **arguments)
