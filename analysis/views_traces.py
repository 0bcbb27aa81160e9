"""How the same tensor fares elsewhere: at every step, or in every block of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pandas as pd

from analysis.views_layers import Stack

Along = Literal["step", "layer"]
Trace = tuple[float, ...]

_PLACE = ("slot", "rank", "call")  # what else must be equal


def along(table: pd.DataFrame, stack: Stack | None) -> Along | None:
    """What a tensor can be followed along: steps where there are several, else repeated blocks."""
    if table["step"].nunique() > 1:
        return "step"
    return "layer" if stack is not None else None


def traces(
    table: pd.DataFrame, shown: pd.DataFrame, *, over: Along, stack: Stack | None, column: str
) -> Sequence[Trace]:
    """For each shown row the values of `column` of its likes, in order of their step or block.

    The worst of several calls; NaN where it is not known.
    """
    held = (
        table if over == "step" else table[table["step"].isin(shown["step"]) | table["step"].isna()]
    )
    wanted = {_key(str(name), over, stack) for name in shown["operator"].unique()}
    keys = {str(name): _key(str(name), over, stack) for name in held["operator"].unique()}
    likes = held[held["operator"].isin([name for name, key in keys.items() if key in wanted])]
    at = likes["step"] if over == "step" else likes["operator"].map(lambda n: _number(n, stack))
    found = pd.DataFrame(
        {"key": likes["operator"].map(keys), "at": at, "value": likes[column]}
        | {name: likes[name].fillna(-1) for name in _PLACE}
    )
    grouped = found.groupby(["key", *_PLACE, "at"], sort=True)["value"].max()
    lines: dict[tuple[object, ...], list[float]] = {}
    for place, value in grouped.items():
        lines.setdefault(tuple(place[:-1]), []).append(float(value))  # type: ignore[index]
    return [
        tuple(lines.get((_key(str(row["operator"]), over, stack), *_place(row)), ()))
        for row in shown.to_dict("records")
    ]


def _place(row: dict[object, object]) -> tuple[object, ...]:
    values = [row[name] for name in _PLACE]
    return tuple(-1 if pd.isna(value) else value for value in values)  # type: ignore[call-overload]


def _key(operator: str, over: Along, stack: Stack | None) -> str:
    """What the likes of an operator have in common: its path, without the block's number."""
    found = stack.split(operator) if stack is not None and over == "layer" else None
    return operator if found is None else f"\n{found[1]}"


def _number(operator: str, stack: Stack | None) -> int:
    found = stack.split(str(operator)) if stack is not None else None
    return -1 if found is None else found[0]
