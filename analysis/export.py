"""The JSON of a comparison: a contract with scripts and CI, described in docs/cli-json.md."""

from __future__ import annotations

import math
from typing import Any

from core.adaptation import Adaptation
from core.comparison import Comparison, Judgement, Pair, RunSummary, SummaryPair
from core.coverage import Coverage
from core.tensors import TensorInfo, TensorSummary
from metrics import METRICS

SCHEMA_VERSION = 1


def comparison_json(comparison: Comparison, judgement: Judgement) -> dict[str, Any]:
    """The whole comparison as JSON types; NaN and infinities become null and "inf", "-inf"."""
    first = judgement.first_divergence
    pairs = [_pair(p, judgement, n) for n, p in enumerate(comparison.pairs)]
    return {
        "schema": SCHEMA_VERSION,
        "id": comparison.id,
        "verdict": judgement.verdict,
        "sentence": judgement.sentence,
        "detail": judgement.detail,
        "reference": _run(comparison.reference),
        "candidate": _run(comparison.candidate),
        "tolerance": _tolerance(comparison),
        "counts": {
            "pairs": len(comparison.pairs),
            "compared": sum(p.is_compared for p in comparison.pairs),
            "unmatched_reference": len(comparison.unmatched_reference),
            "unmatched_candidate": len(comparison.unmatched_candidate),
            "problems": sum(p.problem is not None for p in comparison.pairs),
        },
        "coverage": None if comparison.coverage is None else _coverage(comparison.coverage),
        "first_divergence": None if first is None else _divergence(comparison, pairs, first),
        "pairs": pairs,
        "unmatched": {
            "reference": [_name(t) for t in comparison.unmatched_reference],
            "candidate": [_name(t) for t in comparison.unmatched_candidate],
        },
    }


def number(value: float) -> float | str | None:
    """A float as JSON can say it."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def _tolerance(comparison: Comparison) -> dict[str, float] | None:
    chosen = comparison.settings.tolerance
    return None if chosen is None else {"atol": chosen.atol, "rtol": chosen.rtol}


def _run(run: RunSummary) -> dict[str, Any]:
    return {
        "label": run.label,
        "fingerprint": run.fingerprint,
        "content": run.content,
        "tensors": run.tensors,
        "bytes": run.nbytes,
        "provenance": dict(run.provenance),
        "problems": [
            {"code": p.code, "where": p.where, "message": p.message} for p in run.problems
        ],
    }


def _coverage(coverage: Coverage) -> dict[str, Any]:
    shares = {"tensors": coverage.tensors, "bytes": coverage.nbytes, "modules": coverage.modules}
    return {
        **{name: {"compared": s.compared, "total": s.total} for name, s in shares.items()},
        "suggested": coverage.suggested,
        "oddities": [
            {"check": o.check, "side": o.side, "count": o.count, "places": list(o.places)}
            for o in coverage.oddities
        ],
        "unmatched": [
            {"side": m.side, "module": m.module, "tensors": m.tensors} for m in coverage.unmatched
        ],
    }


def _adaptation(adaptation: Adaptation) -> dict[str, Any]:
    return {
        "steps": [
            {
                "side": step.side,
                "operation": step.operation,
                "arguments": list(step.arguments),
                "before": [list(shape) for shape in step.before],
                "after": [list(shape) for shape in step.after],
            }
            for step in adaptation.steps
        ],
        "reference_parts": [t.id for t in adaptation.reference_parts],
        "candidate_parts": [t.id for t in adaptation.candidate_parts],
        "error": number(adaptation.error),
    }


def _name(tensor: TensorInfo) -> dict[str, Any]:
    return {
        "name": tensor.id,
        "module": tensor.operator,
        "slot": tensor.slot_label,
        "step": tensor.step,
        "rank": tensor.rank,
    }


def _pair(pair: Pair, judgement: Judgement, n: int) -> dict[str, Any]:
    stats = pair.stats
    return {
        **_name(pair.reference),
        "candidate_name": pair.candidate.id,
        "match": {
            "method": pair.match.method,
            "confidence": pair.match.confidence,
            "note": pair.match.note,
            "suggested": pair.match.is_suggested,
            "adaptation": None if pair.adaptation is None else _adaptation(pair.adaptation),
        },
        "dtype": {"reference": pair.reference.dtype, "candidate": pair.candidate.dtype},
        "shape": list(pair.shape),
        "verdict": judgement.verdicts[n],
        "times_floor": number(judgement.times_floor[n]),
        "added": number(judgement.added[n]),
        "problem": pair.problem,
        "summary": None if pair.summary is None else _summary(pair.summary),
        "metrics": None
        if stats is None
        else {name: number(metric(stats)) for name, metric in METRICS.items()},
    }


def _summary(pair: SummaryPair) -> dict[str, Any]:
    return {"reference": _said(pair.reference), "candidate": _said(pair.candidate)}


def _said(summary: TensorSummary) -> dict[str, Any]:
    stated = ("minimum", "maximum", "mean", "norm", "magnitude")
    numbers = {name: getattr(summary, name) for name in stated}
    told = {name: None if value is None else _told(value) for name, value in numbers.items()}
    return {**told, "checksum": summary.checksum or None}


def _told(value: float) -> float | str:
    """A number that a dump states; unlike a metric's, its NaN is a statement."""
    return "nan" if math.isnan(value) else number(value) or 0.0


def _divergence(comparison: Comparison, pairs: list[dict[str, Any]], first: int) -> dict[str, Any]:
    row = pairs[first]
    return {
        "module": row["module"],
        "slot": row["slot"],
        "tensor": row["name"],
        "step": row["step"],
        "rank": row["rank"],
        "verdict": row["verdict"],
        "times_floor": row["times_floor"],
        "metrics": row["metrics"],
        "index": comparison.pairs[first].reference.order,
    }
