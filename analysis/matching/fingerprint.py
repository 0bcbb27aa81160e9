"""Pairs by their values: equal weights are the same module, whatever a framework calls it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from analysis.adapt.checks import SAME
from analysis.adapt.proposals import proposals
from analysis.matching.naming import common_argument, common_operator, counter_of
from analysis.matching.sides import Bundle, Found, Sides
from analysis.matching.similar import Samples
from core.comparison import Match
from core.errors import LoadError
from core.runs import Run
from language import say

_WEIGHTS, _MODULE, _CONSTANT, _GUESS = 0.95, 0.9, 0.55, 0.4
_TRIED = 4  # nearest fingerprints whose values are compared
_WORSE = 2.0  # times the best error that the next best must reach
_CHUNK = 1 << 20
# Moments of one weight in two formats agree to a rounding of the extremes: 2^-3 for e4m3, half of
# it each way. What is further apart is another weight.
_APART = 0.07

Key = tuple[object, ...]


Print = NDArray[np.float64]  # minimum, maximum, mean magnitude, root mean square


def fingerprint(run: Run, tensor_id: str) -> Print | None:
    """What is left of a weight when the order of its elements and its format are forgotten.

    None when it cannot be read, is complex or holds non-finite values.
    """
    if not run[tensor_id].has_values:
        return None
    low, high, total, squares, count = np.inf, -np.inf, 0.0, 0.0, 0
    try:
        for chunk in run.chunks(tensor_id, _CHUNK):
            if np.iscomplexobj(chunk):
                return None
            wide = np.asarray(chunk).astype(np.float64)
            low, high = min(low, float(wide.min())), max(high, float(wide.max()))
            with np.errstate(over="ignore", invalid="ignore"):
                total += float(np.abs(wide).sum())
                squares += float((wide**2).sum())
            count += wide.size
    except LoadError:
        return None
    if not count or not np.isfinite(squares):
        return None
    return np.array([low, high, total / count, np.sqrt(squares / count)])


def apart(mine: Print, others: NDArray[np.float64]) -> Print:
    """Largest difference of a moment to each of the others (rows), in units of its own size.

    No moment's size is less than the root mean square.
    """
    scale = np.maximum(mine[3], others[:, 3])[:, None]
    size = np.maximum(np.maximum(np.abs(mine), np.abs(others)), scale)
    return np.asarray(np.max(np.abs(others - mine) / np.where(size > 0, size, 1.0), axis=1))


def by_weights(
    sides: Sides, left: Sequence[Bundle], right: Sequence[Bundle], samples: Samples
) -> Iterator[Found]:
    """Parameters that hold the same values, transposed or not, in whatever format.

    Constant ones (fresh norms, zero biases) are paired in order: any of them is as good.
    """
    ours, theirs = _parameters(left), _parameters(right)
    for key in ours.keys() & theirs.keys():
        constant, varied = _parted(ours[key], 0, samples)
        constant_r, varied_r = _parted(theirs[key], 1, samples)
        yield from _nearest(sides, varied, varied_r)
        same_count = len(constant) == len(constant_r)
        sure = _CONSTANT if same_count else _GUESS
        for a, b in zip(constant, constant_r, strict=False):
            if samples.distance(a, b) <= SAME:
                yield Found(
                    a, b, Match("fingerprint", sure, say("equal constants, paired in order"))
                )


def by_module(
    left: Sequence[Bundle], right: Sequence[Bundle], known: Sequence[Found]
) -> Iterator[Found]:
    """What belongs to modules that were found to be the same, by slot and call."""
    modules = same_modules(known)
    theirs: dict[Key, list[Bundle]] = defaultdict(list)
    for bundle in right:
        theirs[_role(bundle, bundle.lead.module)].append(bundle)
    for a in left:
        module = modules.get(a.lead.module)
        partners = theirs.get(_role(a, module), []) if module is not None else []
        if len(partners) == 1:
            note = say("belongs to {module}, whose weights are equal", module=module)
            yield Found(a, partners[0], Match("fingerprint", _MODULE, note))


def same_modules(known: Sequence[Found]) -> Mapping[str, str]:
    """Modules of the candidate for those of the reference that `known` pairs speak for.

    A pair speaks for the modules around its own as well, as many levels up as both have. Where
    pairs contradict each other the module has no partner.
    """
    votes: dict[str, set[str]] = defaultdict(set)
    for found in known:
        a, b = found.reference.lead.module.split("."), found.candidate.lead.module.split(".")
        for up in range(min(len(a), len(b))):
            votes[".".join(a[: len(a) - up])].add(".".join(b[: len(b) - up]))
    single = {a: next(iter(bs)) for a, bs in votes.items() if len(bs) == 1}
    claimed: dict[str, int] = defaultdict(int)
    for module in single.values():
        claimed[module] += 1
    return {a: module for a, module in single.items() if claimed[module] == 1}


def _nearest(sides: Sides, ours: Sequence[Bundle], theirs: Sequence[Bundle]) -> Iterator[Found]:
    """For each weight the one that fits best among those with the nearest fingerprints."""
    known = [(b, p) for b in theirs if (p := fingerprint(sides.candidate, b.key)) is not None]
    if not ours or not known:
        return
    others = np.stack([p for _, p in known])
    free = np.ones(len(known), bool)
    for a in ours:
        mine = fingerprint(sides.reference, a.key)
        if mine is None:
            continue
        distances = np.where(free, apart(mine, others), np.inf)
        near = [n for n in np.argsort(distances)[:_TRIED] if distances[n] <= _APART]
        errors = sorted((_error(sides, a, known[n][0]), int(n)) for n in near)
        if errors and errors[0][0] <= SAME and not (errors[1:] and _rivals(errors)):
            free[errors[0][1]] = False
            b = known[errors[0][1]][0]
            note = say("equal weights: {name} and {name2}", name=a.lead.name, name2=b.lead.name)
            yield Found(a, b, Match("fingerprint", _WEIGHTS, note))


def _rivals(errors: Sequence[tuple[float, int]]) -> bool:
    """Whether the second best is no worse: norm weights near 1 are all alike."""
    return errors[1][0] < _WORSE * errors[0][0]


def _error(sides: Sides, a: Bundle, b: Bundle) -> float:
    ways = proposals(sides.reference, sides.candidate, a.members, b.members, check=True)
    return ways[0].error if ways and not np.isnan(ways[0].error) else np.inf


def _parameters(bundles: Sequence[Bundle]) -> dict[Key, list[Bundle]]:
    """Parameters by step and by the lengths of their axes in any order, those of 1 left out."""
    groups: dict[Key, list[Bundle]] = defaultdict(list)
    for bundle in bundles:
        if bundle.lead.pass_ in ("parameter", "unknown"):
            shape = tuple(sorted(n for n in bundle.lead.shape if n != 1))
            groups[bundle.place, len(bundle.members), shape].append(bundle)
    return groups


def _parted(
    bundles: Sequence[Bundle], side: int, samples: Samples
) -> tuple[list[Bundle], list[Bundle]]:
    constant = [b for b in bundles if samples.is_constant(side, b)]
    keys = {b.key for b in constant}
    return constant, [b for b in bundles if b.key not in keys]


def _role(bundle: Bundle, module: str | None) -> Key:
    tensor = bundle.lead
    op = (common_operator(tensor.op), counter_of(tensor.op))
    slot = (tensor.pass_, tensor.slot, common_argument(tensor.argument))
    return (bundle.place, module, op, slot, tensor.call)
