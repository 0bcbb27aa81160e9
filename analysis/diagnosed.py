"""A judgement that knows the diagnosis: who adds error is measured, not inferred from sizes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from analysis.findings.texts import describe
from core.comparison import Comparison, Judgement, Verdict
from core.findings import Diagnosis, Finding, FloorKind, Replay
from core.numbers import count, times_floor
from language import say

_SHOWN: Mapping[str, Verdict] = {"fault": "fault", "setup": "fault", "watch": "watch"}


def diagnosed(comparison: Comparison, judgement: Judgement, diagnosis: Diagnosis) -> Judgement:
    """The judgement of the same comparison with verdicts and `added` from the replay.

    A finding's tensor carries the finding's verdict (a setup difference counts as a fault: the runs
    part there). What was replayed and is no finding only inherits, or is rounding; what could not
    be replayed keeps its verdict from sizes unless a finding explains it. `added` of a replayed
    output is the larger own error of the two sides in units of the operator's floor, and its
    `floor_kinds` says so; `times_floor` stays the whole error, what was handed on included, in
    units of the depth law: an operator's own floor knows nothing of what came before it. A
    tolerance of the user's overrules all of this, and so the judgement is returned as it is.
    """
    if comparison.settings.tolerance is not None or diagnosis.verdict == "uncompared":
        return judgement
    replays = {replay.tensor: replay for replay in diagnosis.replays}
    found = _found(diagnosis)
    verdicts, added = [], []
    for n, pair in enumerate(comparison.pairs):
        tensor = pair.reference.id
        verdicts.append(_verdict(judgement, n, found.get(tensor), bool(diagnosis.findings)))
        added.append(_added(judgement.added[n], replays.get(tensor)))
    first = _first(comparison, diagnosis)
    judged = replace(
        judgement,
        verdict=_overall(judgement, diagnosis),
        first_divergence=first,
        verdicts=tuple(verdicts),
        added=tuple(added),
        floor_kinds=_kinds(comparison, judgement, replays),
    )
    sentence, detail = _words(judged, diagnosis)
    return replace(judged, sentence=sentence, detail=detail)


def _found(diagnosis: Diagnosis) -> dict[str, Finding]:
    """The most important finding of each tensor."""
    found: dict[str, Finding] = {}
    for finding in diagnosis.findings:
        found.setdefault(finding.tensor, finding)
    return found


def _verdict(judgement: Judgement, n: int, finding: Finding | None, any_finding: bool) -> Verdict:
    before = judgement.verdicts[n]
    if before == "uncompared":
        return before
    if finding is not None:
        return _SHOWN[finding.verdict]
    if before in ("fault", "watch", "inherited"):
        return "inherited" if any_finding else "rounding"
    return before


def _added(before: float, replay: Replay | None) -> float:
    if replay is None:
        return before
    ratios = [r for r in (replay.ratio_candidate, replay.ratio_reference) if not math.isnan(r)]
    return max(ratios, default=before)


def _kinds(
    comparison: Comparison, judgement: Judgement, replays: Mapping[str, Replay]
) -> tuple[FloorKind, ...]:
    pairs = zip(comparison.pairs, judgement.floor_kinds, strict=True)
    found = ((replays.get(pair.reference.id), kind) for pair, kind in pairs)
    return tuple(kind if replay is None else replay.floor_kind for replay, kind in found)


def _first(comparison: Comparison, diagnosis: Diagnosis) -> int | None:
    wanted = next((f.tensor for f in diagnosis.findings if f.tensor), None)
    numbers = (n for n, pair in enumerate(comparison.pairs) if pair.reference.id == wanted)
    return next(numbers, None)


def _overall(judgement: Judgement, diagnosis: Diagnosis) -> Verdict:
    if diagnosis.findings:
        return _SHOWN[diagnosis.findings[0].verdict]
    return "uncompared" if judgement.verdict == "uncompared" else "rounding"


def _words(judged: Judgement, diagnosis: Diagnosis) -> tuple[str, str]:
    done = count(len(diagnosis.replays))
    if not diagnosis.findings:
        if judged.verdict == "uncompared":
            return judged.sentence, judged.detail
        largest = max((a for a in judged.added if not math.isnan(a)), default=math.nan)
        return say("The two runs agree to rounding."), say(
            "{n} outputs were recomputed in float64 from their own inputs; none is further from "
            "them than {times} what rounding allows.",
            n=done,
            times=times_floor(largest),
        )
    first = diagnosis.findings[0]
    text = describe(first)
    where = first.operator or first.module or say("the model itself")
    later = Counter(judged.verdicts)["inherited"]
    return say("{title}: {where}.", title=text.title, where=where), say(
        "{detail} {later} pairs inherit the error; {n} outputs were recomputed in float64.",
        detail=text.detail,
        later=count(later),
        n=done,
    )
