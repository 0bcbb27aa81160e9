"""Heat maps of a table of pairs: blocks that repeat as columns, or metrics as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.views_rows import worst_first
from language import say

Array = NDArray[Any]

_MIN_COVER = 1 / 3  # of the operators in sight that a stack of blocks must hold to be the columns


@dataclass(frozen=True, slots=True)
class Stack:
    """Blocks that repeat under numbers: `prefix` `model.layers`, numbers ascending."""

    prefix: str
    numbers: tuple[int, ...]

    def split(self, operator: str) -> tuple[int, str] | None:
        """Block number and the path inside the block; None for an operator outside."""
        head = f"{self.prefix}." if self.prefix else ""
        number, _, inside = operator.removeprefix(head).partition(".")
        if not operator.startswith(head) or not number.isdecimal():
            return None
        return int(number), inside

    def block(self, number: int | str) -> str:
        """Path of one block."""
        return f"{self.prefix}.{number}" if self.prefix else str(number)


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Cells of a heat map, every array (rows, columns).

    `pair` is the table's pair index of the worst tensor in a cell, -1 where there is none; `count`
    how many stand behind it. `path` is what a cell stands for, `value` the raw metric. `folded`
    says how many operators share a row at most.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    pair: Array
    count: Array
    path: Array
    added: Array
    total: Array
    value: Array
    verdict: Array
    folded: int = 1


def stack_of(operators: Iterable[str], at: str = "") -> Stack | None:
    """The blocks to lay out as columns for a place in the model.

    Of the stacks under `at` the one that holds most operators, if it holds enough of them; else the
    innermost one that `at` itself lies in. None when nothing repeats.
    """
    names = list(dict.fromkeys(operators))
    found = _stacks(names)
    inside = [n for n in names if not at or n == at or n.startswith(f"{at}.")]
    below = {p: held for p, held in found.items() if not at or f"{p}.".startswith(f"{at}.")}
    around = [p for p in found if p != at and f"{at}.".startswith(f"{p}." if p else "") and at]
    if below:
        best = max(below, key=lambda p: (_cover(below[p]), -p.count(".")))
        if _cover(below[best]) >= _MIN_COVER * len(inside):
            return Stack(best, tuple(sorted(found[best])))
    if around:
        inner = max(around, key=len)
        return Stack(inner, tuple(sorted(found[inner])))
    return None


def block_grid(
    rows: pd.DataFrame, stack: Stack, *, by: str, metric: str, max_rows: int, max_columns: int = 160
) -> Grid:
    """Rows: operators of a block in execution order, or its modules; columns: blocks.

    `by` is `operator` or `module`. Neighbours are folded by worst where there are too many.
    """
    placed = [stack.split(str(operator)) for operator in rows["operator"]]
    held = rows[[place is not None for place in placed]]
    inside = [place for place in placed if place is not None]
    names = [name if by == "operator" else name.partition(".")[0] for _, name in inside]
    order = list(dict.fromkeys(names))
    groups = _groups(len(order), max_rows)
    column_groups = _groups(len(stack.numbers), max_columns)
    row_of = {name: groups[i] for i, name in enumerate(order)}
    column_of = {number: column_groups[i] for i, number in enumerate(stack.numbers)}
    paths = [
        stack.block(n) if not name else f"{stack.block(n)}.{name}"
        for (n, _), name in zip(inside, names, strict=True)
    ]
    cells = held.assign(
        row=[row_of[name] for name in names],
        column=[column_of[number] for number, _ in inside],
        path=paths,
    )
    row_labels = _labels([name or "block" for name in order], groups)
    column_labels = _labels([str(n) for n in stack.numbers], column_groups)
    folded = max(np.bincount(groups)) if groups else 1
    return grid_of(cells, row_labels, column_labels, metric, int(folded))


def metric_grid(
    rows: pd.DataFrame, at: str, *, by: str, metrics: Mapping[str, float], max_rows: int
) -> Grid:
    """Rows: what lies directly under `at` (`by="module"`) or every operator; columns: metrics.

    `metrics` maps a column of the table to its ideal value; each cell holds the value farthest from
    it. Column `added` and `times_floor` are allowed among them.
    """
    paths = [
        _child(str(operator), at) if by == "module" else str(operator)
        for operator in rows["operator"]
    ]
    order = list(dict.fromkeys(paths))
    groups = _groups(len(order), max_rows)
    row_of = {path: groups[i] for i, path in enumerate(order)}
    cells = rows.assign(row=[row_of[path] for path in paths], path=paths)
    labels = _labels([_inside(path, at) for path in order], groups)
    parts = []
    for column, (name, ideal) in enumerate(metrics.items()):
        far = badness(cells[name].to_numpy(float), ideal)
        parts.append(cells.assign(column=column, far=far))
    stacked = pd.concat(parts) if parts else cells.assign(column=0, far=0.0)
    folded = int(max(np.bincount(groups))) if groups else 1
    return grid_of(stacked, labels, tuple(metrics), None, folded, names=tuple(metrics))


def place_grid(
    rows: pd.DataFrame,
    column: Literal["rank", "step"],
    *,
    by: str,
    metric: str,
    max_rows: int,
    max_columns: int = 160,
) -> Grid:
    """Rows: operators, or the blocks and modules they lie in; columns: ranks or steps.

    Each cell stands for the worst tensor of its operator or block on one rank or at one step.
    Neighbours are folded by worst where there are too many.
    """
    held = rows[rows[column].notna()]
    stack = stack_of(held["operator"].astype(str))
    paths = [
        str(operator) if by == "operator" else _block_of(str(operator), stack)
        for operator in held["operator"]
    ]
    order = list(dict.fromkeys(paths))
    groups = _groups(len(order), max_rows)
    row_of = {path: groups[i] for i, path in enumerate(order)}
    numbers = sorted({int(number) for number in held[column]})
    column_groups = _groups(len(numbers), max_columns)
    column_of = {number: column_groups[i] for i, number in enumerate(numbers)}
    cells = held.assign(
        row=[row_of[path] for path in paths],
        column=[column_of[int(number)] for number in held[column]],
        path=held["operator"],
    )
    labels = _labels([path or "model" for path in order], groups)
    columns = _labels([str(number) for number in numbers], column_groups)
    folded = int(max(np.bincount(groups))) if groups else 1
    return grid_of(cells, labels, columns, metric, folded)


def _block_of(operator: str, stack: Stack | None) -> str:
    """The repeated block an operator lies in, else the first two segments of its path."""
    found = None if stack is None else stack.split(operator)
    if stack is not None and found is not None:
        return stack.block(found[0])
    return ".".join(operator.split(".")[:2])


def badness(values: Array, ideal: float) -> Array:
    """Distance from the ideal, larger is worse; negated where more is better. NaN stays."""
    if np.isinf(ideal):
        return -values
    with np.errstate(invalid="ignore"):
        return np.abs(values - (0.0 if np.isnan(ideal) else ideal))


def _stacks(names: Sequence[str]) -> dict[str, dict[int, set[str]]]:
    """Prefix -> block number -> paths inside, for prefixes with at least two numbered blocks."""
    found: dict[str, dict[int, set[str]]] = {}
    for name in names:
        segments = name.split(".")
        for i, segment in enumerate(segments):
            if segment.isdecimal():
                blocks = found.setdefault(".".join(segments[:i]), {})
                blocks.setdefault(int(segment), set()).add(".".join(segments[i + 1 :]))
    return {prefix: blocks for prefix, blocks in found.items() if len(blocks) > 1}


def _cover(blocks: Mapping[int, set[str]]) -> int:
    """Operators whose place in the block exists in another block as well."""
    seen: dict[str, int] = {}
    for inside in blocks.values():
        for name in inside:
            seen[name] = seen.get(name, 0) + 1
    return sum(n for n in seen.values() if n > 1)


def _child(operator: str, at: str) -> str:
    """What an operator belongs to directly under `at`: itself, or the module one level down."""
    if not at or operator == at:
        return operator.partition(".")[0] if not at else operator
    return f"{at}.{operator.removeprefix(f'{at}.').partition('.')[0]}"


def _inside(path: str, at: str) -> str:
    """A row's name: the path under `at`, the module itself as such."""
    if path == at:
        return say("the module itself") if at else "model"
    return path.removeprefix(f"{at}.") if at else path


def _groups(count: int, limit: int) -> list[int]:
    size = -(-count // max(1, limit)) if count else 1
    return [i // size for i in range(count)]


def _labels(names: Sequence[str], groups: Sequence[int]) -> tuple[str, ...]:
    """A name a group, `first … last` where neighbours were folded."""
    held: dict[int, list[str]] = {}
    for name, group in zip(names, groups, strict=True):
        held.setdefault(group, []).append(name)
    return tuple(n[0] if len(n) == 1 else f"{n[0]} … {n[-1]}" for n in held.values())


def grid_of(
    cells: pd.DataFrame,
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    metric: str | None,
    folded: int,
    names: Sequence[str] = (),
) -> Grid:
    """The worst of `cells`, which carry `row`, `column` and `path`, in each place of a grid.

    `metric` names the column of the raw value; None: each column's own, from `names`.
    """
    shape = len(rows), len(columns)
    worst = worst_first(cells).drop_duplicates(["row", "column"])
    at = worst["row"].to_numpy(int), worst["column"].to_numpy(int)
    counts = np.zeros(shape, np.int64)
    np.add.at(counts, (cells["row"].to_numpy(int), cells["column"].to_numpy(int)), 1)

    def spread(values: Any, empty: Any, kind: Any) -> Array:
        filled: Array = np.full(shape, empty, kind)
        filled[at] = values
        return filled

    value = worst[metric] if metric else [worst[names[c]].iat[i] for i, c in enumerate(at[1])]
    return Grid(
        rows,
        columns,
        pair=spread(worst["pair"], -1, np.int64),
        count=counts,
        path=spread(worst["path"].to_numpy(object), "", object),
        added=spread(worst["added"], np.nan, np.float64),
        total=spread(worst["times_floor"], np.nan, np.float64),
        value=spread(np.asarray(value, float), np.nan, np.float64),
        verdict=spread(worst["verdict"].to_numpy(object), "", object),
        folded=folded,
    )
