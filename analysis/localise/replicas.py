"""Ranks that should hold the same and do not.

Which tensors are replicas is told by the other run, whose ranks hold the same bits, or by the dims
and shapes that merged the ranks. What an all-reduce, a broadcast or a shared seed gave must be
equal to the last bit on every rank; where it is not, the ranks have parted.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from analysis.coverage import SIDES, replicas_of
from analysis.floor import floors
from core.comparison import Comparison, Pair
from core.coverage import CheckedSide
from core.errors import LoadError
from core.moments import Moments
from core.runs import Array, Run
from core.stats import SideStats
from core.tensors import TensorInfo
from metrics import formats

# Elements read at once, and tensors looked at before the search for one that differs is given up.
_PIECE = 1 << 20
_TRIES = 16


@dataclass(frozen=True, slots=True)
class Parted:
    """The first tensor, in execution order, on which the ranks of one side disagree.

    `tensors` are two that differ; `times` is the relative L2 norm of their difference in units of
    the pair's floor, infinite for whole numbers; `places` counts tensors like it.
    """

    side: CheckedSide
    pair: Pair
    tensors: tuple[TensorInfo, TensorInfo]
    times: float
    places: int


def parted(comparison: Comparison, reference: Run, candidate: Run) -> list[Parted]:
    """At most one place for each side; runs of one rank have none."""
    runs = {"reference": reference, "candidate": candidate}
    groups = [*_by_name(comparison.pairs), *((p,) for p in comparison.pairs if p.adaptation)]
    groups.sort(key=lambda group: group[0].reference.order)
    differing: dict[CheckedSide, list[tuple[Pair, ...]]] = {side: [] for side in SIDES}
    for group in groups:
        for side in _doubtful(group):
            differing[side].append(group)
    limits: Mapping[str, float] | None = None
    found = []
    for side, doubtful in differing.items():
        for group in doubtful[:_TRIES]:
            tensors = _unequal(runs[side], _tensors(group, side))
            if tensors is None:
                continue
            limits = limits or _limits(comparison)
            times = _times(runs[side], tensors, limits[group[0].reference.id])
            found.append(Parted(side, group[0], tensors, times, len(doubtful)))
            break
    return found


def _by_name(pairs: Iterable[Pair]) -> Iterator[tuple[Pair, ...]]:
    """Pairs of one tensor on several ranks, none of them merged."""
    groups: dict[tuple[object, ...], list[Pair]] = defaultdict(list)
    for pair in pairs:
        tensor = pair.reference
        if tensor.rank is not None and pair.adaptation is None and pair.stats is not None:
            groups[tensor.step, tensor.name, tensor.shape].append(pair)
    yield from (tuple(group) for group in groups.values() if len(group) > 1)


def _doubtful(group: Sequence[Pair]) -> tuple[CheckedSide, ...]:
    """The sides on which the group should hold the same and, by its statistics, may not."""
    if len(group) == 1:
        return tuple(side for side in SIDES if any(replicas_of(group[0], side)))
    alike = [side for side in SIDES if _alike(group, side)]
    if len(alike) != 1 or _constant(group[0], alike[0]):
        return ()
    return tuple(side for side in SIDES if side not in alike)


def _alike(group: Sequence[Pair], side: CheckedSide) -> bool:
    """Whether all have the same counts, extremes and histograms, which equal values have.

    Moments are left out: their last bits depend on the other side too.
    """
    counted = [replace(_side(pair, side), moments=Moments()) for pair in group]
    return all(a == b for a, b in pairwise(counted))


def _constant(pair: Pair, side: CheckedSide) -> bool:
    """Zeros and ones are equal on all ranks by chance."""
    stats = _side(pair, side)
    return not stats.finite or stats.minimum == stats.maximum


def _side(pair: Pair, side: CheckedSide) -> SideStats:
    stats: SideStats = getattr(pair.stats, side)
    return stats


def _tensors(group: Sequence[Pair], side: CheckedSide) -> Iterator[tuple[TensorInfo, ...]]:
    """Sets of tensors that should be equal."""
    if len(group) > 1:
        yield tuple(pair.members(side)[0] for pair in group)
    else:
        yield from replicas_of(group[0], side)


def _unequal(
    run: Run, sets: Iterable[tuple[TensorInfo, ...]]
) -> tuple[TensorInfo, TensorInfo] | None:
    """The first two of a set that differ in any bit; None too where they cannot be read."""
    for tensors in sets:
        for other in tensors[1:]:
            try:
                if not all(
                    np.array_equal(a, b, equal_nan=True) for a, b in _both(run, tensors[0], other)
                ):
                    return tensors[0], other
            except LoadError:
                return None
    return None


def _both(run: Run, one: TensorInfo, other: TensorInfo) -> Iterator[tuple[Array, Array]]:
    pieces = zip(run.chunks(one.id, _PIECE), run.chunks(other.id, _PIECE), strict=True)
    for a, b in pieces:
        kind = np.complex128 if np.iscomplexobj(a) else np.float64
        yield (a, b) if a.dtype.kind in "iub" else (a.astype(kind), b.astype(kind))


def _times(run: Run, tensors: tuple[TensorInfo, TensorInfo], floor: float) -> float:
    if formats.kind(tensors[0].dtype) in ("int", "bool") or not floor:
        return math.inf
    difference = energy = 0.0
    with np.errstate(all="ignore"):
        for a, b in _both(run, *tensors):
            valid = np.isfinite(a) & np.isfinite(b)
            if not np.array_equal(np.isfinite(a), np.isfinite(b)):
                return math.inf
            difference += float(np.sum(np.abs(a - b)[valid] ** 2))
            energy += float(np.sum(np.abs(a)[valid] ** 2))
    return math.sqrt(difference / energy) / floor if energy else math.inf


def _limits(comparison: Comparison) -> dict[str, float]:
    pairs = comparison.pairs
    return dict(zip((p.reference.id for p in pairs), floors(pairs), strict=True))
