"""A comparison as one table: a row per pair, a column per fact and per metric."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from analysis.adapt.text import step_in_words
from core.comparison import Comparison, Judgement, Pair
from core.numbers import shape
from core.stats import FloatArray
from metrics import METRICS

_FACTS = [
    *("tensor", "operator", "module", "module_class", "op", "slot", "pass", "step", "rank", "call"),
    *("order", "dtype_reference", "dtype_candidate", "shape", "elements"),
    *("match", "match_note", "confidence", "adaptation", "problem"),
]


def pair_table(
    comparison: Comparison,
    judgement: Judgement,
    metrics: Iterable[str] = METRICS,
    *,
    values: Mapping[str, Sequence[float] | FloatArray] | None = None,
) -> pd.DataFrame:
    """One row per pair in execution order; metrics of a pair with a problem are NaN.

    `metrics` names the columns that are wanted: all of them cost about 1.5 ms a pair, unless their
    `values` are known.
    """
    facts = pd.DataFrame([_facts(p) for p in comparison.pairs], columns=_FACTS)
    judged = pd.DataFrame(
        {
            "verdict": judgement.verdicts,
            "times_floor": judgement.times_floor,
            "added": judgement.added,
            "inherited": judgement.inherited,
            "floor": judgement.floors,
        }
    )
    known = values or {}
    numbers = {n: known[n] if n in known else _column(n, comparison.pairs) for n in metrics}
    table = pd.concat([facts, judged, pd.DataFrame(numbers, dtype="float64")], axis=1)
    table.insert(0, "pair", range(len(table)))
    return table


def _column(name: str, pairs: Sequence[Pair]) -> list[float]:
    return [float("nan") if p.stats is None else METRICS[name](p.stats) for p in pairs]


def _facts(pair: Pair) -> dict[str, object]:
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
        "adaptation": "; ".join(map(step_in_words, steps)),
        "problem": pair.problem or "",
    }
