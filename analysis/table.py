"""A comparison as one table: a row per pair, a column per fact and per metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from analysis.rows import facts_of, metric_of
from core.comparison import Comparison, Judgement, Pair
from core.stats import FloatArray
from metrics import METRICS

_FACTS = [
    *("tensor", "operator", "module", "module_class", "op", "slot", "pass", "step", "rank", "call"),
    *("order", "dtype_reference", "dtype_candidate", "shape", "elements"),
    *("match", "match_note", "confidence", "adaptation", "problem", "basis"),
]

SAID = (
    "match_note",
    "adaptation",
    "problem",
)  # text made by `say`; a column of pandas' own loses it


def pair_table(
    comparison: Comparison,
    judgement: Judgement,
    metrics: Iterable[str] = METRICS,
    *,
    values: Mapping[str, Sequence[float] | FloatArray] | None = None,
) -> pd.DataFrame:
    """One row per pair in execution order; metrics of a pair without values are NaN.

    `metrics` names the columns that are wanted: all of them cost about 1.5 ms a pair, unless their
    `values` are known.
    """
    rows = [facts_of(p) for p in comparison.pairs]
    facts = pd.DataFrame(rows, columns=_FACTS)
    for name in SAID:
        facts[name] = pd.Series([row[name] for row in rows], dtype=object, index=facts.index)
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
    return [metric_of(pair, name) for pair in pairs]
