"""The work of one job, inside a confined worker process: compare two dumps and keep the result."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.diagnose import diagnose
from analysis.findings import explain
from analysis.progress import Progress
from core.collector import collect_seldom
from core.comparison import Comparison, Judgement, Settings
from language import say
from metrics import METRICS
from store import comparisons, derived, diagnoses, ledgers
from store.comparisons import Kept
from store.derived import derive
from store.jsonable import to_plain
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


Compare = Callable[..., Comparison]


def make_comparison(order: Order, compare: Compare) -> Kept:
    """Compare two dumps and keep the result; returns what the catalogue needs.

    What was measured stays in a ledger until then: stopped in any way, it goes on where it was.
    """
    collect_seldom()
    teller = Teller(order.progress, stall_s=order.stall_s)
    try:
        teller.tell(Standing(message=say("Opening both runs")))
        runs = order.reference.open(), order.candidate.open()
        sides = zip((order.reference, order.candidate), runs, strict=True)
        key = measured_by(
            order.engine, order.settings, [(dump.run_id, run.fingerprint) for dump, run in sides]
        )
        with ledgers.opened(order.folder, key, metrics=tuple(METRICS)) as ledger:
            comparison = compare(
                *runs, order.settings, lambda p: teller.tell(_standing(p)), ledger=ledger
            )
            teller.wait_on()
            teller.tell(Standing(message=say("Recomputing every operator in float64")))
            found = diagnose(
                *runs, comparison, explain=explain, progress=lambda _: teller.wait_on()
            )
            made = derive(comparison, found)
            record = recorded(comparison, made[0])
            kept = Kept(record, order.reference.run_id, order.candidate.run_id, order.engine)
            comparisons.write(
                order.folder, comparison, kept, owner=order.owner, ledger=ledger, made=made
            )
            diagnoses.write(order.folder, found)
            ledgers.remove(ledger)
        return kept
    finally:
        signal.alarm(0)


def measured_by(engine: int, settings: Settings, dumps: Sequence[tuple[str, str]]) -> object:
    """All that measured statistics depend on; of each dump a name and its fingerprint."""
    return [engine, derived.made_by(), to_plain(settings), *dumps]


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
        compared=sum(pair.is_compared for pair in comparison.pairs),
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
        progress.bytes_per_s,
        progress.left_s,
    )
