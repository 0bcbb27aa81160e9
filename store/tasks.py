"""What runs inside a confined worker process: the only place where dumps are opened."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import loaders
from analysis import verdict
from analysis.compare import Progress
from core.comparison import Comparison, Judgement, Settings
from core.runs import Problem, Run, nbytes
from store import catalogue, comparisons
from store.cache import Recent
from store.comparisons import Kept
from store.progress import Standing, Teller
from store.records import ComparisonRecord

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
        return _opened.get(
            self.run_id, lambda: loaders.open_run(Path(self.path), label=self.label)
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


@dataclass(frozen=True, slots=True)
class Order:
    """A comparison to make. `stall_s`: seconds without progress after which the worker is ended."""

    reference: Dump
    candidate: Dump
    settings: Settings
    folder: Path
    progress: Path
    owner: str
    engine: int
    stall_s: int


Compare = Callable[[Run, Run, Settings, Callable[[Progress], None]], Comparison]


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


def make_comparison(order: Order, compare: Compare) -> Kept:
    """Compare two dumps and keep the result; returns what the catalogue needs."""
    teller = Teller(order.progress, stall_s=order.stall_s)
    try:
        teller.tell(Standing(message="Opening both runs"))
        reference, candidate = order.reference.open(), order.candidate.open()
        comparison = compare(
            reference, candidate, order.settings, lambda p: teller.tell(_standing(p))
        )
        record = recorded(comparison, verdict.judge(comparison))
        kept = Kept(record, order.reference.run_id, order.candidate.run_id, order.engine)
        comparisons.write(order.folder, comparison, kept, owner=order.owner)
        return kept
    finally:
        signal.alarm(0)


def recorded(comparison: Comparison, judgement: Judgement) -> ComparisonRecord:
    """A comparison in a line."""
    first = judgement.first_divergence
    return ComparisonRecord(
        id=comparison.id,
        label_reference=comparison.reference.label,
        label_candidate=comparison.candidate.label,
        verdict=judgement.verdict,
        first_divergence="" if first is None else comparison.pairs[first].reference.operator,
        worst_added=max((a for a in judgement.added if not math.isnan(a)), default=math.nan),
        compared=sum(pair.stats is not None for pair in comparison.pairs),
        total=len(comparison.pairs) + len(comparison.unmatched_reference),
        created=catalogue.now(),
    )


def _standing(progress: Progress) -> Standing:
    return Standing(
        progress.done_bytes,
        progress.total_bytes,
        progress.done_pairs,
        progress.total_pairs,
        progress.where,
    )
