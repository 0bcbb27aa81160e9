"""What runs inside a confined worker process: only there are dumps opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import loaders
from analysis.adapt.runs import adapted
from core.comparison import Pair
from core.runs import Problem, Run, nbytes
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


@dataclass(frozen=True, slots=True)
class Description:
    """What a run record says of a dump that was read."""

    fingerprint: str
    tensors: int
    nbytes: int
    steps: tuple[int, ...]
    ranks: tuple[int, ...]
    format: str
    provenance: Mapping[str, str]
    problems: tuple[Problem, ...]


def describe(dump: Dump) -> Description:
    """Open a dump and say what is in it."""
    run = dump.open()
    tensors = run.tensors.values()
    return Description(
        fingerprint=run.fingerprint,
        tensors=len(tensors),
        nbytes=sum(map(nbytes, tensors)),
        steps=tuple(sorted({t.step for t in tensors if t.step is not None})),
        ranks=tuple(sorted({t.rank for t in tensors if t.rank is not None})),
        format=run.provenance.get("format", ""),
        provenance=dict(run.provenance),
        problems=run.problems,
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
