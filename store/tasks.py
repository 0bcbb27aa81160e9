"""What runs inside a confined worker process: only there are dumps opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import loaders
from analysis.adapt.runs import adapted
from core.comparison import Pair
from core.runs import Run
from store.cache import Recent

_OPEN_RUNS = 6
_opened: Recent[Run] = Recent(_OPEN_RUNS)


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump to open. The run id changes when the dump does, so it says what may be reused.

    Archives are unpacked into `scratch`, which a worker may write to.
    """

    run_id: str
    path: str
    label: str
    scratch: str
    template: str = ""

    def open(self) -> Run:
        """The run; its description is kept in memory for the next task."""
        return _opened.get(f"{self.run_id} {self.template}", self._opened)

    def _opened(self) -> Run:
        return loaders.open_run(
            Path(self.path),
            label=self.label,
            scratch=Path(self.scratch),
            template=self.template or None,
        )


def call(
    function: Callable[..., Any],
    reference: Dump,
    candidate: Dump,
    arguments: Mapping[str, Any],
    pair: Pair | None = None,
) -> Any:
    """Run a question about two dumps; with a pair, its tensors read as they were compared."""
    runs = reference.open(), candidate.open()
    return function(*(runs if pair is None else adapted(*runs, pair)), **arguments)


def names_of(dump: Dump, most: int) -> tuple[str, ...]:
    """The names a dump itself uses, without any template; an even choice of at most `most`."""
    run = replace(dump, template="").open()
    every = [str(t.attrs.get("dump_name", t.name)) for t in run.tensors.values()]
    return tuple(dict.fromkeys(every[:: -(-len(every) // most) or 1]))
