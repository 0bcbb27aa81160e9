"""A judgement in the light of a diagnosis: replay floors, and findings instead of thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from core.comparison import Comparison, Judgement, Pair, Verdict
from core.findings import Diagnosis, Finding, Replay

_Number = Literal["floor", "times", "inherited", "added"]


def diagnosed(comparison: Comparison, judged: Judgement, diagnosis: Diagnosis) -> Judgement:
    """The judgement with a replay's numbers where there is one and the findings' verdicts.

    A pair named by a finding is a fault; one that was off by the statistics is inherited when a
    finding stands before it, and rounding when none does. `times_floor` of a replayed output is
    R of the candidate, without what was handed to it.
    """
    by_id = {r.tensor: r for r in diagnosis.replays}
    found = {f.tensor: f for f in reversed(diagnosis.findings) if f.tensor}
    replays = [by_id.get(p.reference.id) for p in comparison.pairs]
    verdicts = _verdicts(comparison, judged, found)
    first = _first(comparison.pairs, diagnosis.findings)
    kinds = zip(judged.floor_kinds, replays, strict=True)
    return replace(
        judged,
        verdict=_overall(judged, diagnosis),
        first_divergence=first,
        floors=_numbers(comparison, judged.floors, replays, "floor"),
        times_floor=_numbers(comparison, judged.times_floor, replays, "times"),
        inherited=_numbers(comparison, judged.inherited, replays, "inherited"),
        added=_numbers(comparison, judged.added, replays, "added"),
        verdicts=verdicts,
        floor_kinds=tuple(k if r is None else r.floor_kind for k, r in kinds),
    )


def _overall(judged: Judgement, diagnosis: Diagnosis) -> Verdict:
    """Different inputs or weights fail a comparison as a fault does; thin coverage never passes."""
    if diagnosis.verdict in ("fault", "setup"):
        return "fault"
    if diagnosis.verdict == "watch":
        return "watch"
    return "uncompared" if judged.verdict == "uncompared" else "rounding"


def _first(pairs: Sequence[Pair], findings: Sequence[Finding]) -> int | None:
    """The pair of the first finding that one of the pairs shows."""
    places = {p.reference.id: n for n, p in enumerate(pairs)}
    return next((places[f.tensor] for f in findings if f.tensor in places), None)


def _verdicts(
    comparison: Comparison, judged: Judgement, found: dict[str, Finding]
) -> tuple[Verdict, ...]:
    verdicts: list[Verdict] = []
    after = False
    for pair, before in zip(comparison.pairs, judged.verdicts, strict=True):
        finding = found.get(pair.reference.id)
        if finding is not None:
            after = True
            verdicts.append("watch" if finding.verdict == "watch" else "fault")
        elif before in ("rounding", "uncompared"):
            verdicts.append(before)
        else:
            verdicts.append("inherited" if after else "rounding")
    return tuple(verdicts)


def _numbers(
    comparison: Comparison, before: Sequence[float], replays: Sequence[Replay | None], what: _Number
) -> tuple[float, ...]:
    return tuple(
        value if replay is None else _number(pair, replay, what)
        for pair, value, replay in zip(comparison.pairs, before, replays, strict=True)
    )


def _number(pair: Pair, replay: Replay, what: _Number) -> float:
    """One number of a replay in the judgement's units; NaN where it is unknown."""
    if what == "floor":
        stats = pair.stats
        energy = stats.moments.reference.energy if stats and stats.finite else None
        return replay.floor / float((energy / stats.finite).sqrt()) if stats and energy else 0.0
    if what == "times":
        return replay.ratio_candidate
    error = replay.propagated if what == "inherited" else replay.local_candidate
    if replay.floor == 0:
        return error if error == 0 or math.isnan(error) else math.inf
    return error / replay.floor
