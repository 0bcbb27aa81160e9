"""What runs inside a confined worker process: only there are dumps opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import loaders
from core.runs import Problem, Run, nbytes
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
    function: Callable[..., Any], reference: Dump, candidate: Dump, arguments: Mapping[str, Any]
) -> Any:
    """Run a question about a pair of dumps."""
    return function(reference.open(), candidate.open(), **arguments)
