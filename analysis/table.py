"""A comparison as one table: a row per pair, a column per fact and per metric."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from core.comparison import Comparison, Judgement, Pair
from core.numbers import shape
from metrics import METRICS

_FACTS = [
    *("tensor", "operator", "module", "module_class", "op", "slot", "pass", "step", "rank", "call"),
    *("order", "dtype_reference", "dtype_candidate", "shape", "elements"),
    *("match", "match_note", "problem", "basis"),
]


def pair_table(
    comparison: Comparison, judgement: Judgement, metrics: Iterable[str] = METRICS
) -> pd.DataFrame:
    """One row per pair in execution order; metrics of a pair without values are NaN.

    `metrics` names the columns that are wanted: all of them cost about 1.5 ms a pair.
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
    values = {
        name: [
            float("nan") if p.stats is None else METRICS[name](p.stats) for p in comparison.pairs
        ]
        for name in metrics
    }
    table = pd.concat([facts, judged, pd.DataFrame(values, dtype="float64")], axis=1)
    table.insert(0, "pair", range(len(table)))
    return table


def _facts(pair: Pair) -> dict[str, object]:
    a, b = pair.reference, pair.candidate
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
        "shape": shape(a.shape),
        "elements": a.size,
        "match": pair.match.method,
        "match_note": pair.match.note,
        "problem": pair.problem or "",
        "basis": "" if pair.problem else "values" if pair.stats else "statistics",
    }
