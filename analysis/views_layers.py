"""Heat maps of a table of pairs: blocks that repeat as columns, or metrics as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from analysis.views_grid import (
    Grid,
    Span,
    badness,
    columns_of,
    farthest,
    folded_rows,
    grid_of,
    groups_of,
    labels_of,
)
from language import say

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
    rows: pd.DataFrame,
    stack: Stack,
    *,
    by: str,
    metric: str,
    max_rows: int,
    max_columns: int = 160,
    span: Span | None = None,
) -> Grid:
    """Rows: operators of a block in execution order, or its modules; columns: blocks.

    `by` is `operator` or `module`. Neighbours are folded by worst where there are too many; `span`
    shows those rows alone.
    """
    codes, operators = pd.factorize(rows["operator"])
    placed = [stack.split(str(operator)) for operator in operators]
    named = [_in_block(place, by) for place in placed]
    paths = np.array([stack.block(n) + (f".{name}" if name else "") for n, name in named], object)
    inside = np.array([place is not None for place in placed], bool)[codes]
    keys = np.array([name for _, name in named], object)[codes[inside]]
    numbers = np.array([n for n, _ in named], np.int64)[codes[inside]]
    column_groups = groups_of(len(stack.numbers), max_columns)
    column_of = {number: column_groups[i] for i, number in enumerate(stack.numbers)}
    cells = rows.loc[inside, columns_of(rows, metric)].assign(
        column=[column_of[number] for number in numbers.tolist()], path=paths[codes[inside]]
    )
    axis, cells = folded_rows(cells, keys, max_rows, span)
    labels = labels_of([name or "block" for name in axis.names], axis.groups)
    columns = labels_of([str(n) for n in stack.numbers], column_groups)
    return grid_of(cells, labels, columns, metric, axis=axis)


def metric_grid(
    rows: pd.DataFrame,
    at: str,
    *,
    by: str,
    metrics: Mapping[str, float],
    max_rows: int,
    span: Span | None = None,
) -> Grid:
    """Rows: what lies directly under `at` (`by="module"`) or every operator; columns: metrics.

    `metrics` maps a column of the table to its ideal value; each cell holds the value farthest from
    it. Column `added` and `times_floor` are allowed among them.
    """
    codes, operators = pd.factorize(rows["operator"])
    named = [_child(str(o), at) if by == "module" else str(o) for o in operators]
    paths = np.array(named, object)[codes]
    cells = rows[columns_of(rows, *metrics)].assign(path=paths)
    axis, cells = folded_rows(cells, paths, max_rows, span)
    labels = labels_of([_inside(path, at) for path in axis.names], axis.groups)
    parts = [
        worst.assign(column=column)
        for column, (name, ideal) in enumerate(metrics.items())
        for worst in [farthest(cells, badness(cells[name].to_numpy(float), ideal))]
    ]
    stacked = pd.concat(parts) if parts else cells.assign(column=0, far=0.0, held=1)
    stacked = stacked.reset_index(drop=True)
    return grid_of(stacked, labels, tuple(metrics), None, names=tuple(metrics), axis=axis)


def place_grid(
    rows: pd.DataFrame,
    column: Literal["rank", "step"],
    *,
    by: str,
    metric: str,
    max_rows: int,
    max_columns: int = 160,
    span: Span | None = None,
) -> Grid:
    """Rows: operators, or the blocks and modules they lie in; columns: ranks or steps.

    Each cell stands for the worst tensor of its operator or block on one rank or at one step.
    Neighbours are folded by worst where there are too many.
    """
    held = rows[rows[column].notna()]
    codes, operators = pd.factorize(held["operator"])
    stack = stack_of(map(str, operators))
    named = [str(o) if by == "operator" else _block_of(str(o), stack) for o in operators]
    places = held[column].to_numpy(np.int64)
    numbers = np.unique(places)
    column_groups = groups_of(len(numbers), max_columns)
    cells = held[columns_of(held, metric)].assign(
        column=np.array(column_groups, np.int64)[np.searchsorted(numbers, places)],
        path=held["operator"],
    )
    axis, cells = folded_rows(cells, np.array(named, object)[codes], max_rows, span)
    labels = labels_of([path or "model" for path in axis.names], axis.groups)
    columns = labels_of([str(number) for number in numbers], column_groups)
    return grid_of(cells, labels, columns, metric, axis=axis)


def _in_block(place: tuple[int, str] | None, by: str) -> tuple[int, str]:
    number, name = place or (-1, "")
    return number, name if by == "operator" else name.partition(".")[0]


def _block_of(operator: str, stack: Stack | None) -> str:
    """The repeated block an operator lies in, else the first two segments of its path."""
    found = None if stack is None else stack.split(operator)
    if stack is not None and found is not None:
        return stack.block(found[0])
    return ".".join(operator.split(".")[:2])


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
