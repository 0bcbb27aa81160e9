"""The subtree of a module as boxes: how large each is, and the worst pair in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from analysis.views_grid import badness
from analysis.views_rows import SEVERITY, under, worst_first
from language import say

Size = Literal["elements", "order", "added"]
LEAVES = 64  # boxes side by side, as many as can carry a name
_FEW, _MOST = 12, 400  # fewer say little: then the next level is shown, of up to that many

_LEAST = 0.02  # share of a box that adds nothing, in units of one that adds its floor


@dataclass(frozen=True, slots=True)
class Node:
    """One box of the tree: `size` in the unit asked for, the worst pair and the number of operators
    inside. `value` is the metric asked for, farthest from its ideal among them; NaN without one.
    """

    path: str
    parent: str
    label: str
    elements: int
    size: float
    added: float
    total: float
    verdict: str
    value: float
    inside: int
    leaf: bool


@dataclass(frozen=True, slots=True)
class _Operators:
    """What is known of every operator of a subtree, by name."""

    worst: pd.DataFrame  # a row each, worst first
    place: Mapping[str, int]  # in `worst`
    far: Mapping[str, tuple[float, float]]  # distance from the ideal, value
    added: Sequence[float]  # of each row of `worst`
    elements: Mapping[str, int]
    size: Size

    def size_of(self, name: str) -> float:
        if self.size == "order":
            return 1.0
        if self.size == "added":
            added = self.added[self.place[name]]
            return max(_LEAST, added if math.isfinite(added) else 0.0)
        return float(max(1, self.elements[name]))


def tree(
    rows: pd.DataFrame,
    at: str,
    *,
    leaves: int = LEAVES,
    size: Size = "elements",
    metric: tuple[str, float] | None = None,
) -> tuple[Node, ...]:
    """The subtree of `at` down to the depth at which at most `leaves` boxes stand side by side.

    The first node is `at` itself. Below the cut a box stands for all it holds. A level so narrow
    that it says little is not the last: the next one is shown, however wide it is within reason.
    Where even the first level is too wide, its worst `leaves` children stay and one box `others`
    holds the rest. Boxes are as large as their elements, or one unit for each operator in execution
    order (`order`), or as the error their operators add, in floors. `metric` is a column and its
    ideal value.
    """
    held = under(rows, at)
    operators = _operators(held, size, metric)
    if not operators.place:
        return ()
    names = [str(name) for name in held["operator"].unique()]
    branches = _branches(names)
    # A module's own output repeats what its last operator made; only operators without others
    # inside have a size of their own.
    ends = [name for name in names if name not in branches]
    depth = _depth(ends, at, leaves)
    return _nodes(ends, operators, at, depth, leaves)


def _operators(held: pd.DataFrame, size: Size, metric: tuple[str, float] | None) -> _Operators:
    columns = ["operator", "elements", "added", "times_floor", "verdict"]
    worst = worst_first(held[columns]).drop_duplicates("operator")
    names = [str(name) for name in worst["operator"]]
    # Elements of an operator: its largest tensor, so that repeated calls do not count twice.
    sizes = held.groupby("operator", observed=True)["elements"].max()
    far = {} if metric is None else _far(held, *metric)
    place = {name: n for n, name in enumerate(names)}
    added = worst["added"].astype(float).tolist()
    return _Operators(worst, place, far, added, {n: int(sizes[n]) for n in names}, size)


def _far(held: pd.DataFrame, column: str, ideal: float) -> dict[str, tuple[float, float]]:
    """The value farthest from the ideal of each operator that has any, and how far that is."""
    values = held[column].to_numpy(float)
    known = pd.DataFrame(
        {"operator": held["operator"], "value": values, "far": badness(values, ideal)}
    ).dropna()
    kept = known.sort_values("far", ascending=False, kind="stable").drop_duplicates("operator")
    return {
        str(name): (float(far), float(value))
        for name, far, value in zip(kept["operator"], kept["far"], kept["value"], strict=True)
    }


def _branches(names: Sequence[str]) -> set[str]:
    branches: set[str] = set()
    for name in names:
        parts = name.split(".")
        branches.update(".".join(parts[:i]) for i in range(1, len(parts)))
    return branches


def _below(name: str, at: str) -> list[str]:
    """Segments of a name under `at`."""
    rest = name if not at else name.removeprefix(at).removeprefix(".")
    return rest.split(".") if rest else []


def _depth(ends: Sequence[str], at: str, leaves: int) -> int:
    deepest = max((len(_below(name, at)) for name in ends), default=0)
    for depth in range(deepest, 1, -1):
        if _wide(ends, at, depth) <= leaves:
            more = depth < deepest and _wide(ends, at, depth) < _FEW
            return depth + 1 if more and _wide(ends, at, depth + 1) <= _MOST else depth
    return min(1, deepest)


def _wide(ends: Sequence[str], at: str, depth: int) -> int:
    return len({tuple(_below(name, at)[:depth]) for name in ends})


def _nodes(
    ends: Sequence[str], operators: _Operators, at: str, depth: int, leaves: int
) -> tuple[Node, ...]:
    held: dict[str, list[str]] = {at: []}
    for name in ends:
        segments = _below(name, at)[:depth]
        held[at].append(name)
        for i in range(len(segments)):
            path = ".".join([at, *segments[: i + 1]] if at else segments[: i + 1])
            held.setdefault(path, []).append(name)
    nodes = [_node(path, at, names, operators, depth) for path, names in held.items()]
    if len(nodes) - 1 <= max(leaves, 1) or depth > 1:
        return tuple(nodes)
    root, *children = nodes
    ranked = sorted(children, key=lambda n: (SEVERITY[n.verdict], n.added), reverse=True)
    kept = {node.path for node in ranked[: leaves - 1]}
    rest = [node for node in children if node.path not in kept]
    shown = [node for node in children if node.path in kept]
    return (root, *shown, _others(rest, at))


def _others(rest: Sequence[Node], at: str) -> Node:
    """One box for all that there is no room for."""
    return Node(
        path=f"{at}.…", parent=at, label=say("{rest} others", rest=len(rest)),
        elements=sum(n.elements for n in rest), size=sum(n.size for n in rest),
        added=max((n.added for n in rest), default=0.0), total=max(n.total for n in rest),
        verdict=max((n.verdict for n in rest), key=lambda v: SEVERITY[v]), value=math.nan,
        inside=sum(n.inside for n in rest), leaf=False,
    )  # fmt: skip


def _node(path: str, at: str, names: Sequence[str], operators: _Operators, depth: int) -> Node:
    top = operators.worst.iloc[min(operators.place[name] for name in names)]
    far = [operators.far[name] for name in names if name in operators.far]
    segments = _below(path, at)
    cut = len(segments) == depth or names == [path]
    parent = "" if path == at else ".".join([at, *segments[:-1]] if at else segments[:-1])
    return Node(
        path=path,
        parent=parent,
        label=segments[-1] if segments else at.rpartition(".")[2] or "model",
        elements=sum(max(1, operators.elements[name]) for name in names),
        size=sum(operators.size_of(name) for name in names),
        added=float(top["added"]),
        total=float(top["times_floor"]),
        verdict=str(top["verdict"]),
        value=max(far)[1] if far else math.nan,
        inside=len(names),
        leaf=bool(cut and path != at) or (len(names) == 1 and names[0] == path),
    )
