"""A heat map as arrays: the worst pair of each cell, rows folded to what a screen can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.views_rows import worst_first

Array = NDArray[Any]
Span = tuple[int, int]  # first and last but one of the rows' names in execution order

_KEPT = ("pair", "operator", "verdict", "added", "times_floor")


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Cells of a heat map, every array (rows, columns).

    `pair` is the table's pair index of the worst tensor in a cell, -1 where there is none; `count`
    how many stand behind it. `path` is what a cell stands for, `value` the raw metric. `folded`
    says how many operators share a row at most, `spans` which of the `total_rows` names, half open.
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
    spans: tuple[Span, ...] = ()
    total_rows: int = 0


@dataclass(frozen=True, slots=True)
class Axis:
    """The rows of a grid before they are labelled: names, and the group each was folded into."""

    names: tuple[str, ...]
    groups: tuple[int, ...]
    first: int
    total: int

    @property
    def folded(self) -> int:
        return int(np.bincount(self.groups).max()) if self.groups else 1

    @property
    def spans(self) -> tuple[Span, ...]:
        starts = [i for i, group in enumerate(self.groups) if not i or group != self.groups[i - 1]]
        ends = [*starts[1:], len(self.groups)] if starts else []
        return tuple((self.first + a, self.first + b) for a, b in zip(starts, ends, strict=True))


def folded_rows(
    cells: pd.DataFrame, keys: Array, max_rows: int, span: Span | None
) -> tuple[Axis, pd.DataFrame]:
    """The axis of the names in `keys` (one a cell), and the cells on it with their `row`."""
    codes, names = pd.factorize(keys)
    first, last = span or (0, len(names))
    first = max(0, min(first, len(names) - 1))
    last = max(first, min(last, len(names)))
    if not len(names):
        return Axis((), (), 0, 0), cells.assign(row=0)
    groups = groups_of(last - first, max_rows)
    axis = Axis(tuple(map(str, names[first:last])), tuple(groups), first, len(names))
    inside = (codes >= first) & (codes < last)
    row = np.array(groups, np.int64)[codes[inside] - first]
    return axis, cells[inside].assign(row=row)


def farthest(cells: pd.DataFrame, far: Array) -> pd.DataFrame:
    """The first of the cells that are farthest in each row, and how many each row `held`."""
    if cells.empty:
        return cells.assign(far=0.0, held=1)
    order = np.argsort(cells["row"].to_numpy(), kind="stable")
    rows = cells["row"].to_numpy()[order]
    sizes = np.where(np.isnan(far), -np.inf, far)[order]
    starts = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1]]))
    counts = np.diff([*starts, len(rows)])
    at_peak = np.flatnonzero(sizes == np.repeat(np.maximum.reduceat(sizes, starts), counts))
    kept = order[at_peak[np.unique(rows[at_peak], return_index=True)[1]]]
    return cells.iloc[kept].assign(far=far[kept], held=counts)


def columns_of(rows: pd.DataFrame, *metrics: str) -> list[str]:
    """What a grid needs of a table; the other columns would only be copied along."""
    wanted = [*_KEPT, *metrics]
    return [name for name in dict.fromkeys(wanted) if name in rows]


def badness(values: Array, ideal: float) -> Array:
    """Distance from the ideal, larger is worse; negated where more is better. NaN stays."""
    if np.isinf(ideal):
        return -values
    with np.errstate(invalid="ignore"):
        return np.abs(values - (0.0 if np.isnan(ideal) else ideal))


def groups_of(count: int, limit: int) -> list[int]:
    size = -(-count // max(1, limit)) if count else 1
    return [i // size for i in range(count)]


def labels_of(names: Sequence[str], groups: Sequence[int]) -> tuple[str, ...]:
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
    names: Sequence[str] = (),
    axis: Axis | None = None,
) -> Grid:
    """The worst of `cells`, which carry `row`, `column` and `path`, in each place of a grid.

    `metric` names the column of the raw value; None: each column's own, from `names`. Cells that
    stand for several already say how many in `held`.
    """
    shape = len(rows), len(columns)
    worst = worst_first(cells).drop_duplicates(["row", "column"])
    at = worst["row"].to_numpy(int), worst["column"].to_numpy(int)
    counts = np.zeros(shape, np.int64)
    held = cells["held"].to_numpy(int) if "held" in cells else 1
    np.add.at(counts, (cells["row"].to_numpy(int), cells["column"].to_numpy(int)), held)

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
        folded=axis.folded if axis else 1,
        spans=axis.spans if axis else (),
        total_rows=axis.total if axis else len(rows),
    )
