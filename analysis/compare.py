"""One pass over two runs: pairs, statistics, content ids."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from blake3 import blake3

from analysis.adapt.runs import extended, names_in_extended
from analysis.batches import Piece, Subject, Task, batches, pieces_of, sides_of, task_bytes
from analysis.coverage import coverage
from analysis.execution import Executor, Ledger, Memory, run_elsewhere, run_here
from analysis.floor import default_tolerance
from analysis.logical import with_logical_format
from analysis.matching import Matching, match, picked
from analysis.measuring import UNREADABLE, Outline
from analysis.progress import Report, Teller
from analysis.summaries import summarised
from core.comparison import Comparison, Match, Pair, RunSummary, Settings
from core.errors import CompareError
from core.numbers import shape
from core.records import changed
from core.runs import Run, nbytes
from core.tensors import TensorInfo
from language import say
from metrics import CPU, formats

# Part of every comparison id: raise it when the same dumps would give other statistics or pairs.
ENGINE_VERSION = 7

_CORES = len(os.sched_getaffinity(0))
_ID_LENGTH = 20


def compare(
    reference: Run,
    candidate: Run,
    settings: Settings | None = None,
    progress: Report = lambda _: None,
    *,
    executor: Executor | None = None,
    ledger: Ledger | None = None,
    device: str = CPU,
) -> Comparison:
    """Pair and measure two runs; every value of both is read once, in bounded pieces.

    Without an executor all work is done here, on all cores; statistics and id are the same to the
    bit whoever does it. On a `device` of PyTorch (`cuda`) sums may differ in their last bits, and
    nothing else does. A ledger keeps what was measured, so that a comparison that was stopped
    goes on where it was. `progress` hears of each chunk and may raise to stop. A tensor that cannot
    be read or compared is a pair with a problem. Raises CompareError when a run is empty.
    """
    for run in (reference, candidate):
        if not run.tensors:
            raise CompareError(
                say("{label} holds no tensor.", label=run.label),
                say("Check that the folder is a dump and was not empty."),
            )
    settings = settings or Settings()
    runs = picked(reference, candidate, settings)
    matching = match(*runs, settings)
    plan = _Plan(runs, matching, settings)
    ledger = ledger or Memory()
    found = plan.measured(ledger, executor, progress, device)
    pairs = plan.pairs(found, ledger)
    digests = plan.digests(found)
    ours, theirs = map(_summary, runs, digests)
    comparison = Comparison(
        id=comparison_id(ours, theirs, settings, pairs),
        reference=ours,
        candidate=theirs,
        settings=settings,
        pairs=pairs,
        unmatched_reference=matching.unmatched_reference,
        unmatched_candidate=matching.unmatched_candidate,
    )
    return replace(comparison, coverage=coverage(*runs, comparison, digests))


class _Plan:
    """What is measured: pairs in their order, then tensors of which only the digest counts."""

    def __init__(self, runs: tuple[Run, Run], matching: Matching, settings: Settings) -> None:
        self._pairs = [_pair(runs, *matched, settings) for matched in matching.pairs]
        self._compared = [n for n, pair in enumerate(self._pairs) if _has_elements(pair)]
        paired = [self._pairs[n] for n in self._compared]
        self._runs = extended(*runs, paired)
        self._subjects = [
            *(Subject(*names_in_extended(p), p.tolerance) for p in paired),
            *_alone(self._pairs, matching),
        ]
        self._as_measured = (
            _with_formats(self._runs[0], [pair.reference for pair in paired]),
            _with_formats(self._runs[1], [pair.candidate for pair in paired]),
        )

    def measured(
        self, ledger: Ledger, executor: Executor | None, report: Report, device: str
    ) -> list[Outline]:
        """Measure what the ledger does not know yet; an outline of each whole subject."""
        pieces = {(known.number, known.piece): known for known in ledger.known()}
        teller = self._teller(report, pieces)
        threads = _CORES if executor is None else 1
        known = frozenset(pieces)
        work = batches(
            self._as_measured, self._subjects, known=known, threads=threads, device=device
        )
        if executor is None:
            done = run_here(work, ledger, teller)
        else:
            done = run_elsewhere(executor, work, ledger, teller)
        for outline in done:
            pieces[outline.number, outline.piece] = outline
            teller.done_pairs += outline.number < len(self._compared) and outline.piece == 0
        return [self._folded(number, pieces) for number in range(len(self._subjects))]

    def pairs(self, found: Sequence[Outline], ledger: Ledger) -> tuple[Pair, ...]:
        """All pairs in order, with statistics, a summary or a problem."""
        pairs = [
            p if p.problem or _has_elements(p) else summarised(self._runs, p) for p in self._pairs
        ]
        for number, n in enumerate(self._compared):
            if found[number].problem is None:
                stats = ledger.stats(number, pieces_of(math.prod(pairs[n].shape)))
                pairs[n] = replace(pairs[n], stats=stats)
            else:
                pairs[n] = replace(pairs[n], problem=found[number].problem)
        return tuple(pairs)

    def digests(self, found: Sequence[Outline]) -> tuple[dict[str, str], dict[str, str]]:
        """Content digest of every tensor of either run, by its id."""
        by_subject = list(zip(self._subjects, found, strict=True))
        return (
            {s.reference: o.reference for s, o in by_subject if s.reference is not None},
            {s.candidate: o.candidate for s, o in by_subject if s.candidate is not None},
        )

    def _teller(self, report: Report, known: Mapping[Piece, Outline]) -> Teller:
        whole = (Task(n, s, 0, self._count(s)) for n, s in enumerate(self._subjects))
        total = sum(task_bytes(self._runs, task) for task in whole)
        kept = sum(
            task_bytes(self._runs, Task(number, self._subjects[number], piece, piece + 1))
            for number, piece in known
        )
        pairs = len(self._compared)
        teller = Teller(report, total_bytes=total, total_pairs=pairs, kept_bytes=kept)
        teller.done_pairs = sum(number < pairs and piece == 0 for number, piece in known)
        return teller

    def _folded(self, number: int, pieces: Mapping[Piece, Outline]) -> Outline:
        """One outline of a subject from those of its pieces."""
        count = self._count(self._subjects[number])
        if count == 1:
            return pieces[number, 0]
        parts = [pieces[number, piece] for piece in range(count)]
        return Outline(
            number,
            0,
            _digest_of_pieces([part.reference for part in parts]),
            _digest_of_pieces([part.candidate for part in parts]),
            next((part.problem for part in parts if part.problem is not None), None),
        )

    def _count(self, subject: Subject) -> int:
        """How many pieces a subject has."""
        run, name = next(sides_of(self._runs, subject))
        return pieces_of(run.tensors[name].size)


def _pair(
    runs: tuple[Run, Run], a: TensorInfo, b: TensorInfo, how: Match, settings: Settings
) -> Pair:
    a, b = with_logical_format(runs[0], a), with_logical_format(runs[1], b)
    tolerance = settings.tolerance or default_tolerance(a.dtype, b.dtype)
    pair = Pair(a, b, how, tolerance)
    return changed(pair, problem=incomparable(pair))


def _has_elements(pair: Pair) -> bool:
    """Whether a pair is compared element by element."""
    return pair.problem is None and pair.reference.has_values and pair.candidate.has_values


def _with_formats(run: Run, tensors: Sequence[TensorInfo]) -> Run:
    """A run in which tensors have the formats in which they are compared."""
    return replace(run, tensors={**run.tensors, **{tensor.id: tensor for tensor in tensors}})


def _alone(pairs: Sequence[Pair], matching: Matching) -> Iterator[Subject]:
    """Tensors of which only the digest is taken; those that are compared adapted are among them.

    Those without values have none to read.
    """
    apart = [p for p in pairs if not _has_elements(p) or p.adaptation is not None]
    ours = (*(t for p in apart for t in p.members("reference")), *matching.unmatched_reference)
    theirs = (*(t for p in apart for t in p.members("candidate")), *matching.unmatched_candidate)
    for name in dict.fromkeys(tensor.id for tensor in ours if tensor.has_values):
        yield Subject(name, None, None)
    for name in dict.fromkeys(tensor.id for tensor in theirs if tensor.has_values):
        yield Subject(None, name, None)


def _digest_of_pieces(digests: Sequence[str]) -> str:
    """Content digest of a tensor cut in pieces: a tree of two levels."""
    if UNREADABLE in digests:
        return UNREADABLE
    return str(blake3("".join(digests).encode()).hexdigest()) if digests[0] else ""


def incomparable(pair: Pair) -> str | None:
    """Why two tensors cannot be compared element by element; None when they can."""
    a, b, adaptation = pair.reference, pair.candidate, pair.adaptation
    theirs = b.shape if adaptation is None else adaptation.shape("candidate", b.shape)
    if pair.shape != theirs:
        return say(
            "shapes differ: {shape} against {theirs}", shape=shape(pair.shape), theirs=shape(theirs)
        )
    if pair.match.is_suggested:
        return say(
            "suggested match: {note}",
            note=pair.match.note or say("accept it in the mapping to compare"),
        )
    kinds = formats.kind(a.dtype), formats.kind(b.dtype)
    if kinds[0] != kinds[1]:
        return say("kinds differ: {dtype} against {dtype2}", dtype=a.dtype, dtype2=b.dtype)
    if a.size == 0:
        return say("both sides are empty")
    return None


def _summary(run: Run, digests: Mapping[str, str]) -> RunSummary:
    described = [
        (t.id, t.dtype, t.storage_dtype, t.shape, digests[t.id] if t.has_values else _said(t))
        for t in run.tensors.values()
    ]
    return RunSummary(
        label=run.label,
        fingerprint=run.fingerprint,
        content=_digest_of([described, sorted(run.provenance.items())]),
        tensors=len(run.tensors),
        nbytes=sum(map(nbytes, run.tensors.values())),
        provenance=run.provenance,
        problems=run.problems,
    )


def _said(tensor: TensorInfo) -> str:
    """A digest of what a dump says of a tensor without values."""
    return "" if tensor.summary is None else _digest_of(asdict(tensor.summary))


def comparison_id(
    reference: RunSummary,
    candidate: RunSummary,
    settings: Settings,
    pairs: Sequence[Pair],
    *,
    engine: int = ENGINE_VERSION,
) -> str:
    """The id that follows from both dumps' content, the settings, the pairs and the engine."""
    mapping = [(p.reference.id, p.candidate.id) for p in pairs]
    parts = [engine, reference.content, candidate.content, asdict(settings), mapping]
    return _digest_of(parts)[:_ID_LENGTH]


def _digest_of(value: Any) -> str:
    return blake3(json.dumps(value, separators=(",", ":")).encode()).hexdigest()
