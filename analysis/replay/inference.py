"""Which function an operator is whose class name says nothing: the one that reproduces it."""

from __future__ import annotations

import math
from collections.abc import Callable

from analysis.replay.fit import AT_FLOOR, UNFIT, fit, measured
from analysis.replay.operands import Read
from analysis.replay.registry import FUNCTIONS
from core.runs import Array

# Kinds that need more than one call's own tensors, or fit anything that copies.
_NOT_TRIED = frozenset({"all_reduce", "all_gather", "reduce_scatter", "convolution", "cache"})


def inferred(values: Read, valid_of: Callable[[Read, str], Array]) -> str:
    """The kind whose function brings the reference to its floor, `""` if none does.

    Defaults first, then with fitted attributes; of several the closest.
    """
    valid = {name: valid_of(values, name) for name in values.actual}
    ratios: dict[str, float] = {}
    for kind, function in FUNCTIONS.items():
        if kind in _NOT_TRIED:
            continue
        try:
            found = measured(values, function, function.defaults, valid, "")
        except UNFIT:
            continue
        if found and len(found) == len(values.actual):
            ratios[kind] = max(each.ratio for each in found.values())
    best = min(ratios, key=lambda k: ratios[k], default="")
    if not best or ratios[best] <= AT_FLOOR:
        return best
    for kind in sorted(ratios, key=lambda k: ratios[k]):
        made = fit(values, FUNCTIONS[kind], {}, valid, {})
        if made is not None and made.ratio <= AT_FLOOR and not math.isnan(made.ratio):
            return kind
    return ""
