"""The JSON of a diagnosis: a contract with scripts and CI, described in docs/cli-json.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.export import number
from analysis.findings.texts import describe
from core.findings import Diagnosis, Fact, Finding, Hypothesis, Replay

FINDINGS_SCHEMA = 1
_BEST = 3


def diagnosis_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """Verdict, the first finding in short, and all findings, as JSON types."""
    first = diagnosis.findings[0] if diagnosis.findings else None
    # What is to be watched is within rounding: readers of the verdict know no word between.
    verdict = "rounding" if diagnosis.verdict == "watch" else diagnosis.verdict
    return {
        "schema": FINDINGS_SCHEMA,
        "comparison": diagnosis.comparison,
        "verdict": verdict,
        "first": None if first is None else _place(first),
        "findings": [_finding(finding) for finding in diagnosis.findings],
        "replayed": len(diagnosis.replays),
        "not_replayed": dict(diagnosis.not_replayed),
    }


def replays_json(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """Every replayed output with its terms, in execution order."""
    return [_replay(replay) for replay in diagnosis.replays]


def _place(finding: Finding) -> dict[str, Any]:
    return {
        "module": finding.operator,
        "slot": finding.slot,
        "step": finding.step,
        "rank": finding.rank,
        "mechanisms": [h.mechanism for h in finding.hypotheses[:_BEST]],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    text = describe(finding)
    return {
        "id": finding.id,
        "verdict": finding.verdict,
        **_place(finding),
        "tensor": finding.tensor,
        "call": finding.call,
        "side": finding.side,
        "confidence": number(finding.confidence),
        "zone": list(finding.zone),
        "damage": number(finding.damage),
        "title": text.title,
        "detail": text.detail,
        "next_steps": list(text.next_steps),
        "facts": _facts(finding.facts),
        "hypotheses": [_hypothesis(h) for h in finding.hypotheses],
    }


def _hypothesis(hypothesis: Hypothesis) -> dict[str, Any]:
    return {
        "mechanism": hypothesis.mechanism,
        "confidence": number(hypothesis.confidence),
        "before": number(hypothesis.before),
        "after": number(hypothesis.after),
        "facts": _facts(hypothesis.facts),
        "tensors": list(hypothesis.tensors),
    }


def _replay(replay: Replay) -> dict[str, Any]:
    named = (
        "total", "propagated", "local_reference", "local_candidate", "floor", "ratio_reference",
        "ratio_candidate", "worst_reference", "worst_candidate",
    )  # fmt: skip
    return {
        "tensor": replay.tensor,
        **{name: number(getattr(replay, name)) for name in named},
        "rows": replay.rows,
        "rows_total": replay.rows_total,
        "floor_kind": replay.floor_kind,
        "attributes": _facts(replay.attributes),
        "fitted": list(replay.fitted),
    }


def _facts(facts: Mapping[str, Fact]) -> dict[str, Any]:
    return {
        name: number(value) if isinstance(value, float) else value for name, value in facts.items()
    }
