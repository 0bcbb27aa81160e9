"""The diagnosis of two runs: rounding or fault, where, which side, why, from their dumps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.floor import floors
from analysis.localise.places import Explain, findings_of
from analysis.localise.replicas import parted
from analysis.localise.setup import Given, differences
from analysis.localise.sites import Sites
from analysis.localise.suspects import Suspect, suspects
from analysis.localise.transfer import Grown, grown, is_activation
from analysis.localise.weights import stored_turned
from analysis.replay.engine import Engine
from analysis.replay.modes import with_modes
from analysis.replay.result import Output, Part, Replayed
from core.comparison import Comparison
from core.findings import Diagnosis, DiagnosisVerdict, Finding, Hypothesis, Replay
from core.runs import Array, Run
from core.tensors import TensorInfo
from language import say


@dataclass(frozen=True, slots=True)
class ReplayProgress:
    """How far the replay is: calls done and in all, and which is next."""

    done: int
    total: int
    where: str


Report = Callable[[ReplayProgress], None]


def unexplained(_: object) -> tuple[Hypothesis, ...]:
    """No hypotheses: the place alone."""
    return ()


def diagnose(
    reference: Run,
    candidate: Run,
    comparison: Comparison,
    *,
    explain: Explain = unexplained,
    progress: Report = lambda _: None,
) -> Diagnosis:
    """Replay every operator of both runs in float64 and say what is wrong.

    `explain` names the mechanisms of a place (`analysis.findings.explain`). `progress` is called
    before each call is replayed and may raise to stop.
    """
    engine = Engine(comparison, reference, candidate, turned=stored_turned(comparison))
    replayed, modes = with_modes(_replayed(engine, progress))
    given = differences(comparison, reference, candidate, engine.real)
    sites = Sites(comparison, reference, candidate, engine.reference, engine.candidate)
    suspected = suspects(replayed)
    unexplained_growth = _grown(engine, replayed, suspected, given)
    apart = parted(comparison, reference, candidate)
    found = findings_of(given, suspected, unexplained_growth, apart, sites, explain)
    return Diagnosis(
        comparison=comparison.id,
        verdict=_verdict(found, replayed, comparison),
        findings=tuple(found),
        replays=tuple(_replays(replayed)),
        not_replayed=_not_replayed(replayed),
        modes=modes,
    )


def _grown(
    engine: Engine,
    replayed: Sequence[Replayed],
    suspected: Sequence[Suspect],
    given: Sequence[Given],
) -> list[Grown]:
    """Where error grows unexplained among outputs without a replay, before any proven fault."""
    pairs = engine.comparison.pairs
    # Formats as recorded: that values happen to be narrower is a finding, not a wider floor.
    recorded = [
        replace(
            p,
            reference=engine.run_reference.tensors.get(p.reference.id, p.reference),
            candidate=engine.run_candidate.tensors.get(p.candidate.id, p.candidate),
        )
        for p in pairs
    ]
    limits = dict(zip((p.reference.id for p in pairs), floors(recorded), strict=True))
    parts = [o for r in replayed for o in r.outputs if o.reference and o.candidate]
    proven = frozenset(o.reference.side.tensor.id for o in parts if o.reference)
    orders = [s.replayed.lead.order for s in suspected]
    orders += [g.pair.reference.order for g in given]
    return list(grown(engine, limits, proven, min(orders, default=1 << 62)))


def _replayed(engine: Engine, progress: Report) -> list[Replayed]:
    pairs = engine.pairs()
    made = []
    for number, pair in enumerate(pairs):
        lead = pair.reference or pair.candidate
        progress(ReplayProgress(number, len(pairs), lead.operator if lead else ""))
        made.append(engine.replay(pair))
    return made


def _verdict(
    findings: Sequence[Finding], replayed: Sequence[Replayed], comparison: Comparison
) -> DiagnosisVerdict:
    """The gravest of the findings; without one, rounding if anything was recomputed or compared."""
    for verdict in ("setup", "fault", "watch"):
        if any(f.verdict == verdict for f in findings):
            return verdict
    judged = any(r.outputs for r in replayed) or any(map(is_activation, comparison.pairs))
    return "rounding" if judged else "uncompared"


def _replays(replayed: Iterable[Replayed]) -> Iterable[Replay]:
    for each in replayed:
        for output in (*each.outputs, *each.gradients):
            if output.reference is not None:
                yield _replay(each, output, output.reference)


def _replay(replayed: Replayed, output: Output, left: Part) -> Replay:
    """The four terms of the identity, on the elements that count and are finite on both sides."""
    right = output.candidate
    fit = replayed.fit
    counted = left.side.actual.size
    moved, total = _between(left, right)
    return Replay(
        tensor=left.side.tensor.id,
        total=total,
        propagated=moved,
        local_reference=_rms(left.local.error, left.valid),
        local_candidate=_rms(right.local.error, right.valid) if right else math.nan,
        floor=math.sqrt(float(np.mean(left.side.variance))) if counted else math.nan,
        ratio_reference=left.local.ratio,
        ratio_candidate=right.local.ratio if right else math.nan,
        worst_reference=left.local.worst,
        worst_candidate=right.local.worst if right else math.nan,
        rows=math.prod(left.side.actual.shape[:-1]),
        rows_total=math.prod(left.side.tensor.shape[:-1]),
        attributes=dict(fit.attributes) if fit else {},
        fitted=fit.names if fit else (),
    )


def _between(left: Part, right: Part | None) -> tuple[float, float]:
    """Root mean squares of F64(candidate) - F64(reference) and of candidate - reference."""
    if right is None or right.side.actual.shape != left.side.actual.shape:
        return math.nan, math.nan
    with np.errstate(all="ignore"):
        moved = right.side.expected.astype(np.float64) - left.side.expected
        total = right.side.actual.astype(np.float64) - left.side.actual
    valid = left.valid & right.valid
    return _rms(moved, valid), _rms(total, valid)


def _rms(error: Array, valid: Array) -> float:
    kept = error[valid & np.isfinite(error)]
    return math.sqrt(float(np.mean(kept**2))) if kept.size else math.nan


def _not_replayed(replayed: Iterable[Replayed]) -> dict[str, str]:
    def outputs(each: Replayed) -> Iterable[TensorInfo]:
        return each.reference.outputs.values() if each.reference else ()

    done = {o.reference.side.tensor.id for r in replayed for o in r.outputs if o.reference}
    reasons = {t.id: r.reason for r in replayed for t in outputs(r) if t.id not in done}
    return {
        name: reason or say("the function does not give this output")
        for name, reason in reasons.items()
    }
