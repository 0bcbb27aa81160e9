"""Rows of the table of pairs: which kind, under which module, matching which words, in what order.

Functions take and return rows of `analysis.table.pair_table`. Where several tensors fall on one
place the worst stands for them: verdict first, then error added, then total error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from language import say

# What the head of a slot label stands for, in the order in which a page offers it.
KINDS: Mapping[str, str] = {
    "forward_output": say("forward outputs"),
    "value": say("values"),
    "output": say("outputs"),
    "forward_input": say("forward inputs"),
    "input": say("inputs"),
    "backward_output": say("gradients handed on"),
    "backward_input": say("gradients handed in"),
    "forward_params": say("parameters"),
    "parameter": say("parameters"),
    "backward_params": say("parameter gradients"),
    "update_params": say("updated parameters"),
}
EVERY_KIND = "all"
SEVERITY: Mapping[str, int] = {
    "fault": 4,
    "watch": 3,
    "inherited": 2,
    "rounding": 1,
    "uncompared": 0,
}
_SEARCHED = ("operator", "tensor", "module_class", "dtype_reference", "dtype_candidate", "verdict")


def kinds(rows: pd.DataFrame) -> dict[str, str]:
    """The kinds of tensor a table holds, as option -> words, `all` last when there are several."""
    present = set(_kind(rows))
    found = {kind: words for kind, words in KINDS.items() if kind in present}
    return (
        found | {EVERY_KIND: say("all tensors")}
        if len(found) > 1
        else found or {EVERY_KIND: say("all tensors")}
    )


def of_kind(rows: pd.DataFrame, kind: str) -> pd.DataFrame:
    """The rows of one kind."""
    return rows if kind == EVERY_KIND else rows[_kind(rows) == kind]


def under(rows: pd.DataFrame, path: str) -> pd.DataFrame:
    """The rows of a module and of everything inside it; the empty path is the whole model."""
    if not path:
        return rows
    operator = rows["operator"]
    return rows[(operator == path) | operator.str.startswith(f"{path}.")]


def matching(rows: pd.DataFrame, query: str) -> pd.DataFrame:
    """The rows where every word is part of the name, class, dtype or verdict; case is ignored."""
    keep = pd.Series(True, index=rows.index)
    if query.strip():
        columns = [name for name in _SEARCHED if name in rows]
        text = rows[columns].astype(str).agg(" ".join, axis=1).str.lower()
        for word in query.lower().split():
            keep &= text.str.contains(word, regex=False)
    return rows[keep]


def has_inside(operators: Iterable[str], path: str) -> bool:
    """Whether a module holds operators of its own, so that it can be opened."""
    return any(str(operator).startswith(f"{path}.") for operator in operators)


def trail(path: str) -> tuple[tuple[str, str], ...]:
    """The steps of a breadcrumb as (segment, path up to it)."""
    segments = path.split(".") if path else []
    return tuple((s, ".".join(segments[: i + 1])) for i, s in enumerate(segments))


def sorted_by(rows: pd.DataFrame, column: str, *, descending: bool) -> pd.DataFrame:
    """Rows by one column; undefined values last either way, equal ones in execution order."""
    if column == "verdict":
        rank = rows["verdict"].map(SEVERITY)
        size = rows["added"].fillna(rows["times_floor"])
        keyed = rows.assign(_rank=rank, _size=size)
        return keyed.sort_values(
            ["_rank", "_size"], ascending=not descending, kind="stable", na_position="last"
        ).drop(columns=["_rank", "_size"])
    return rows.sort_values(column, ascending=not descending, kind="stable", na_position="last")


def worst_first(rows: pd.DataFrame) -> pd.DataFrame:
    keys = ["far"] if "far" in rows else ["_rank", "_size"]
    ranked = rows.assign(
        _rank=rows["verdict"].map(SEVERITY), _size=rows["added"].fillna(rows["times_floor"])
    )
    return ranked.sort_values(keys, ascending=False, kind="stable", na_position="last")


def _kind(rows: pd.DataFrame) -> pd.Series[Any]:
    return rows["slot"].astype(str).str.partition(".")[0]
