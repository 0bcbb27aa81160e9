"""The work of one job, inside a confined worker process: compare two dumps and keep the result."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from analysis import verdict
from analysis.progress import Progress
from core.comparison import Comparison, Judgement, Settings
from core.runs import Run
from store import comparisons
from store.comparisons import Kept
from store.progress import Standing, Teller
from store.records import ComparisonRecord, now
from store.tasks import Dump


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


def make_comparison(order: Order, compare: Compare) -> Kept:
    """Compare two dumps and keep the result; returns what the catalogue needs."""
    teller = Teller(order.progress, stall_s=order.stall_s)
    try:
        teller.tell(Standing(message="Opening both runs"))
        reference, candidate = order.reference.open(), order.candidate.open()
        comparison = compare(
            reference, candidate, order.settings, lambda p: teller.tell(_standing(p))
        )
        teller.wait_on()
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
        created=now(),
    )


def _standing(progress: Progress) -> Standing:
    return Standing(
        progress.done_bytes,
        progress.total_bytes,
        progress.done_pairs,
        progress.total_pairs,
        progress.where,
    )
