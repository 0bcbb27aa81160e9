"""The pairs of a comparison as plain rows, for whoever prints some of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from analysis.adapt.text import step_in_words
from core.comparison import Comparison, Judgement, Pair
from core.numbers import shape
from language import clauses
from metrics import METRICS

Row = dict[str, Any]

_JUDGED = ("verdict", "times_floor", "added", "inherited", "floor")


def pair_rows(
    comparison: Comparison, judgement: Judgement, metrics: Iterable[str] = METRICS
) -> list[Row]:
    """One row per pair in execution order: facts, judgement, metrics (NaN where not compared)."""
    metrics = tuple(metrics)
    judged = zip(
        judgement.verdicts,
        judgement.times_floor,
        judgement.added,
        judgement.inherited,
        judgement.floors,
        strict=True,
    )
    return [
        {"pair": number, **facts_of(pair), **dict(zip(_JUDGED, known, strict=True))}
        | {name: metric_of(pair, name) for name in metrics}
        for number, (pair, known) in enumerate(zip(comparison.pairs, judged, strict=True))
    ]


def metric_of(pair: Pair, name: str) -> float:
    """A metric of a pair; NaN when it was not compared."""
    return float("nan") if pair.stats is None else METRICS[name](pair.stats)


def facts_of(pair: Pair) -> Row:
    """What a pair is, without any number about it."""
    a, b = pair.reference, pair.candidate
    steps = () if pair.adaptation is None else pair.adaptation.steps
    return {
        "tensor": a.id,
        "operator": a.operator,
        "module": a.module,
        "module_class": a.module_class,
        "op": a.op,
        "slot": a.slot_label,
        "pass": a.pass_,
        "step": a.step,
        "rank": a.rank,
        "call": a.call,
        "order": a.order,
        "dtype_reference": a.dtype,
        "dtype_candidate": b.dtype,
        "shape": shape(pair.shape),
        "elements": math.prod(pair.shape),
        "match": pair.match.method,
        "match_note": pair.match.note,
        "confidence": pair.match.confidence,
        "adaptation": clauses(map(step_in_words, steps)),
        "problem": pair.problem or "",
        "basis": "" if pair.problem else "values" if pair.stats else "statistics",
    }
