"""Ulp errors of a block: which loop counts them, and what they say of the whole pair."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine import layout as at
from metrics.engine import ulp_lanes
from metrics.engine.jit import inlined
from metrics.engine.loading import Floats, Floats32, Ints
from metrics.engine.narrow import Words
from metrics.engine.planes import GROUP, close_block

_HUGE = np.uint32(0x80000000)


@inlined
def _compare(
    form: int,
    a: Floats32,
    b: Floats32,
    ulps: Words,
    planes: Words,
    carries: Words,
    masks: Any,
    found: Ints,
    ahead: Ints,
    groups: int,
) -> None:
    """Shifts must be constants to be quick: one loop for each format of `ulp_lanes.KNOWN`."""
    if form == 0:
        ulp_lanes.compare_fine(a, b, ulps, planes, carries, masks, found, ahead, groups)
    elif form == 1:
        ulp_lanes.compare_tf32(a, b, ulps, planes, carries, masks, found, ahead, groups)
    elif form == 2:
        ulp_lanes.compare_bfloat16(a, b, ulps, planes, carries, masks, found, ahead, groups)
    elif form == 3:
        ulp_lanes.compare_float16(a, b, ulps, planes, carries, masks, found, ahead, groups)
    elif form == 4:
        ulp_lanes.compare_e4m3(a, b, ulps, planes, carries, masks, found, ahead, groups)
    elif form == 5:
        ulp_lanes.compare_e4m3_fnuz(a, b, ulps, planes, carries, masks, found, ahead, groups)
    elif form == 6:
        ulp_lanes.compare_e5m2(a, b, ulps, planes, carries, masks, found, ahead, groups)
    elif form == 7:
        ulp_lanes.compare_e5m2_fnuz(a, b, ulps, planes, carries, masks, found, ahead, groups)
    else:
        ulp_lanes.compare_e2m1(a, b, ulps, planes, carries, masks, found, ahead, groups)


@inlined
def compare(
    form: int,
    a: Floats32,
    b: Floats32,
    count: int,
    ulps: Words,
    planes: Words,
    carries: Words,
    masks: Any,
    found: Ints,
    ahead: Ints,
    counts: Ints,
) -> None:
    """Count ulp errors and sign flips; fills `ulps`, `masks`, `found` as `ulp_lanes.comparing`."""
    groups = (count + GROUP - 1) // GROUP
    _compare(form, a, b, ulps, planes, carries, masks, found, ahead, groups)
    close_block(carries, groups, planes)
    counts[at.FLIPS] += found[ulp_lanes.D_FLIPS]
    if found[ulp_lanes.D_LARGEST] > np.int64(_HUGE):
        huge = np.int64(0)
        for i in range(count):
            huge += np.int64(ulps[i] > _HUGE)
        counts[at.ULP_HUGE] += huge


@inlined
def keep_largest(
    a: Floats32,
    b: Floats32,
    ulps: Words,
    largest: int,
    position: int,
    where: Ints,
    whole: bool,
    counts: Ints,
    extremes: Floats,
) -> None:
    """The first element of the largest ulp error, if it is larger than any before.

    `ulps` is of the block, `a` and `b` are of those of its elements that `where` tells.
    """
    if counts[at.ULP_AT] >= 0 and largest <= counts[at.LARGEST_ULP]:
        return
    i = 0
    while np.int64(ulps[i if whole else where[i]]) != largest:
        i += 1
    counts[at.LARGEST_ULP] = largest
    extremes[at.ULP], extremes[at.ULP_A], extremes[at.ULP_B] = largest, a[i], b[i]
    counts[at.ULP_AT] = position + (i if whole else where[i])
