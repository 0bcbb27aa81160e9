"""The rows along execution order: which ones the path shows, and which block each belongs to."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
import pandas as pd

from language import _

Direction = Literal["forward", "backward"]
Slots = Literal["outputs", "inputs", "both"]

_PASSES = {
    "forward": ("forward", "parameter", "unknown"),
    "backward": ("backward", "gradient", "update"),
}
_MADE = re.compile(r"^(forward_output|backward_output|backward_params|update_params|value)\b")
_GIVEN = re.compile(r"^(forward_input|backward_input|input)\b")
_FIRST_OUTPUT = re.compile(r"^(forward_output|backward_output)(\.0)?$")
_BLOCK = re.compile(r"^(.*?[^.\d][^.]*)\.(\d+)(?=\.|$)")
_FINDINGS = ("fault", "watch")
_COLUMNS = (
    *("pair", "tensor", "operator", "module", "op", "slot", "pass", "step", "rank", "problem"),
    *("verdict", "times_floor", "added", "relative_l2"),
)


def on_path(
    table: pd.DataFrame, direction: Direction, *metrics: str, slots: Slots = "outputs"
) -> pd.DataFrame:
    """The rows the path shows: what operators made in this direction, and every finding in it.

    With `slots` what they were given instead, or as well; `given` says which a row is.

    Of the columns those that a path needs, and `metrics`. Adds `x`, the position in execution
    order, and `block`, the number of the repeated block the operator belongs to (-1 outside of
    any).
    """
    inside = table["pass"].isin(_PASSES[direction])
    every = [str(slot) for slot in table["slot"].unique()]
    given = [slot for slot in every if _GIVEN.match(slot)] if slots != "outputs" else []
    wanted = [slot for slot in every if _MADE.match(slot)] if slots != "inputs" else []
    made = table["slot"].isin([*wanted, *given]) | table["verdict"].isin(_FINDINGS)
    kept = [name for name in dict.fromkeys((*_COLUMNS, *metrics)) if name in table]
    rows = table[kept][inside & made].copy()
    rows["x"] = np.arange(len(rows))
    rows["given"] = rows["slot"].isin([slot for slot in every if _GIVEN.match(slot)])
    rows["block"] = blocks(rows["operator"])
    return rows


def directions(table: pd.DataFrame) -> list[Direction]:
    """The directions the table has anything of; forward when it has nothing at all."""
    every: list[Direction] = ["forward", "backward"]
    return [d for d in every if table["pass"].isin(_PASSES[d]).any()] or ["forward"]


def direction_of(table: pd.DataFrame, pair: int | None) -> Direction:
    """The direction a pair belongs to; forward for none."""
    passes = table.loc[table["pair"] == pair, "pass"]
    return "backward" if passes.isin(_PASSES["backward"]).any() else "forward"


def blocks(operators: pd.Series) -> pd.Series:
    """Number of the top-level repeated block an operator is in, -1 for none.

    The repeated blocks are the dotted prefix with the most numbers under it: `model.layers`.
    """
    codes, names = pd.factorize(operators)
    found = [_BLOCK.match(str(name)) for name in names]
    held: dict[str, set[int]] = {}
    for match in found:
        if match:
            held.setdefault(match[1], set()).add(int(match[2]))
    prefix = max(sorted(held), key=lambda p: len(held[p]), default="")
    if len(held.get(prefix, ())) < 2:
        return pd.Series(-1, index=operators.index)
    numbers = np.array([int(m[2]) if m and m[1] == prefix else -1 for m in found], np.int64)
    return pd.Series(numbers[codes], index=operators.index)


def stream(rows: pd.DataFrame) -> pd.DataFrame:
    """The first output of each repeated block itself: the curve the model's state follows."""
    inside = rows[rows["block"] >= 0]
    numbers = {str(n) for n in inside["block"].unique()}
    names = [n for n in inside["operator"].unique() if str(n).rpartition(".")[2] in numbers]
    ends = inside["operator"].isin(names)
    slots = [slot for slot in inside["slot"].unique() if _FIRST_OUTPUT.match(str(slot))]
    first_output = inside["slot"].isin(slots)
    return inside[ends & first_output & (inside["op"] == "")]


def marks(rows: pd.DataFrame) -> tuple[list[int], list[str], str]:
    """Ticks along execution order and their title: steps if several, else blocks, else none."""
    steps = rows["step"].dropna()
    if steps.nunique() > 1:
        starts = rows.loc[steps.index].groupby("step")["x"].min()
        return _spread(starts, _("step, in execution order"))
    inside = rows[rows["block"] >= 0]
    if len(inside):
        return _spread(inside.groupby("block")["x"].min(), _("layer, in execution order"))
    return [], [], _("execution order")


def _spread(starts: pd.Series, title: str, most: int = 9) -> tuple[list[int], list[str], str]:
    every = -(-len(starts) // most)
    kept = starts.iloc[::every]
    return list(kept), [str(int(number)) for number in kept.index], title


def thinned(rows: pd.DataFrame, most: int) -> pd.DataFrame:
    """At most `most` rows: the largest `y` of every stretch of x."""
    if len(rows) <= most:
        return rows
    stretch = np.arange(len(rows)) * most // len(rows)
    return rows.loc[rows["y"].groupby(stretch).idxmax()]
