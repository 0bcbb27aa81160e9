"""The first look at what was uploaded or named, inside a confined worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.runs import Problem, nbytes
from store.bundles import bundle_at, take
from store.comparisons import Kept
from store.tasks import Dump


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


def describe(dump: Dump, folder: Path, owner: str) -> Description | Kept:
    """Open a dump and say what is in it; take a saved comparison into the folder of those."""
    bundle = bundle_at(Path(dump.path))
    if bundle is not None:
        return take(bundle, folder, owner)
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
