"""Rows of the table of pairs: which kind, under which module, matching which words, in what order.

Functions take and return rows of `analysis.table.pair_table`. Where several tensors fall on one
place the worst stands for them: verdict first, then error added, then total error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

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
    present = {str(slot).partition(".")[0] for slot in rows["slot"].unique()}
    found = {kind: words for kind, words in KINDS.items() if kind in present}
    return (
        found | {EVERY_KIND: say("all tensors")}
        if len(found) > 1
        else found or {EVERY_KIND: say("all tensors")}
    )


def of_kind(rows: pd.DataFrame, kind: str) -> pd.DataFrame:
    """The rows of one kind."""
    if kind == EVERY_KIND:
        return rows
    slots = [slot for slot in rows["slot"].unique() if str(slot).partition(".")[0] == kind]
    return rows[rows["slot"].isin(slots)]


def under(rows: pd.DataFrame, path: str) -> pd.DataFrame:
    """The rows of a module and of everything inside it; the empty path is the whole model."""
    if not path:
        return rows
    operator = rows["operator"]
    return rows[(operator == path) | operator.str.startswith(f"{path}.")]


def matching(rows: pd.DataFrame, query: str) -> pd.DataFrame:
    """The rows where every word is part of the name, class, dtype or verdict; case is ignored."""
    keep = pd.Series(True, index=rows.index)
    columns = [name for name in _SEARCHED if name in rows]
    for word in query.split():
        keep &= np.logical_or.reduce([_holds(rows[name], word) for name in columns])
    return rows[keep]


def _holds(texts: pd.Series, word: str) -> NDArray[np.bool_]:
    """Whether each text contains a word; texts that repeat are looked at once."""
    codes, distinct = pd.factorize(texts)
    found = pc.match_substring(pa.array(distinct, pa.string()), word, ignore_case=True)
    return np.asarray(found.to_numpy(zero_copy_only=False)[codes], bool)


def has_inside(operators: Iterable[str], path: str) -> bool:
    """Whether a module holds operators of its own, so that it can be opened."""
    return any(str(operator).startswith(f"{path}.") for operator in operators)


def trail(path: str) -> tuple[tuple[str, str], ...]:
    """The steps of a breadcrumb as (segment, path up to it)."""
    segments = path.split(".") if path else []
    return tuple((s, ".".join(segments[: i + 1])) for i, s in enumerate(segments))


def sorted_by(rows: pd.DataFrame, column: str, *, descending: bool) -> pd.DataFrame:
    """Rows by one column; undefined values last either way, equal ones in execution order."""
    return rows.loc[order_by(rows, column, descending=descending)]


def order_by(rows: pd.DataFrame, column: str, *, descending: bool) -> pd.Index:
    """The index of `rows` in that order, for whoever needs the first few of very many."""
    if column == "verdict":
        keyed = _severity(rows)
        columns = list(keyed.columns)
    else:
        keyed, columns = rows[[column]], [column]
    return keyed.sort_values(
        columns, ascending=not descending, kind="stable", na_position="last"
    ).index


def worst_first(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows by `far` where they have it, else by verdict, then error added, then total error."""
    keyed = rows[["far"]] if "far" in rows else _severity(rows)
    order = keyed.sort_values(
        list(keyed.columns), ascending=False, kind="stable", na_position="last"
    )
    return rows.loc[order.index]


def _severity(rows: pd.DataFrame) -> pd.DataFrame:
    size = rows["added"].fillna(rows["times_floor"])
    codes, verdicts = pd.factorize(rows["verdict"])
    rank = np.array([SEVERITY[str(verdict)] for verdict in verdicts], np.int64)
    return pd.DataFrame({"rank": rank[codes], "size": size}, index=rows.index)
