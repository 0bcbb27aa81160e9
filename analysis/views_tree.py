"""The subtree of a module as boxes: how many elements, and the worst pair in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.views_rows import SEVERITY, under, worst_first
from language import say


@dataclass(frozen=True, slots=True)
class Node:
    """One box of the tree: `elements`, the worst pair and the number of operators inside."""

    path: str
    parent: str
    label: str
    elements: int
    added: float
    total: float
    verdict: str
    inside: int
    leaf: bool


def tree(rows: pd.DataFrame, at: str, *, leaves: int = 64) -> tuple[Node, ...]:
    """The subtree of `at` down to the depth at which at most `leaves` boxes stand side by side.

    The first node is `at` itself. Below the cut a box stands for all it holds. Where even the first
    level is too wide, its worst `leaves` children stay and one box `others` holds the rest.
    """
    held = worst_first(under(rows, at))
    per_operator = held.drop_duplicates("operator").set_index("operator")
    if per_operator.empty:
        return ()
    # Elements of an operator: its largest tensor, so that repeated calls do not count twice.
    sizes = held.groupby("operator")["elements"].max()
    operators = {str(name): int(sizes[name]) for name in per_operator.index}
    order = rows["operator"].drop_duplicates()
    names = [str(name) for name in order if str(name) in operators]
    branches = _branches(names)
    # A module's own output repeats what its last operator made; only operators without others
    # inside have a size of their own.
    ends = [name for name in names if name not in branches]
    depth = _depth(ends, at, leaves)
    return _nodes(ends, operators, per_operator, at, depth, leaves)


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
        if len({tuple(_below(name, at)[:depth]) for name in ends}) <= leaves:
            return depth
    return min(1, deepest)


def _nodes(
    ends: Sequence[str],
    sizes: Mapping[str, int],
    worst: pd.DataFrame,
    at: str,
    depth: int,
    leaves: int,
) -> tuple[Node, ...]:
    held: dict[str, list[str]] = {at: []}
    for name in ends:
        segments = _below(name, at)[:depth]
        held[at].append(name)
        for i in range(len(segments)):
            path = ".".join([at, *segments[: i + 1]] if at else segments[: i + 1])
            held.setdefault(path, []).append(name)
    nodes = [_node(path, at, names, sizes, worst, depth) for path, names in held.items()]
    if len(nodes) - 1 <= max(leaves, 1) or depth > 1:
        return tuple(nodes)
    root, *children = nodes
    ranked = sorted(children, key=lambda n: (SEVERITY[n.verdict], n.added), reverse=True)
    kept = {node.path for node in ranked[: leaves - 1]}
    rest = [node for node in children if node.path not in kept]
    others = Node(
        f"{at}.…", at, say("{rest} others", rest=len(rest)), sum(n.elements for n in rest),
        max((n.added for n in rest), default=0.0), max(n.total for n in rest),
        max((n.verdict for n in rest), key=lambda v: SEVERITY[v]),
        sum(n.inside for n in rest), False,
    )  # fmt: skip
    return (root, *(node for node in children if node.path in kept), others)


def _node(
    path: str,
    at: str,
    names: Sequence[str],
    sizes: Mapping[str, int],
    worst: pd.DataFrame,
    depth: int,
) -> Node:
    held = worst.loc[list(names)]
    top = worst_first(held.drop(columns=["_rank", "_size"])).iloc[0]
    segments = _below(path, at)
    cut = len(segments) == depth or names == [path]
    parent = "" if path == at else ".".join([at, *segments[:-1]] if at else segments[:-1])
    return Node(
        path=path,
        parent=parent,
        label=segments[-1] if segments else at.rpartition(".")[2] or "model",
        elements=sum(max(1, sizes[name]) for name in names),
        added=float(top["added"]),
        total=float(top["times_floor"]),
        verdict=str(top["verdict"]),
        inside=len(names),
        leaf=bool(cut and path != at) or (len(names) == 1 and names[0] == path),
    )
