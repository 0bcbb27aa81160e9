"""One side of a block that fits float32: bounds, value histogram, significand bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine import layout as at
from metrics.engine import narrow
from metrics.engine.jit import inlined
from metrics.engine.loading import Floats, Floats32, Ints
from metrics.engine.narrow import NORMAL, ONE, Words
from metrics.engine.narrow_lanes import count_significands
from metrics.engine.planes import GROUP, close_block


@inlined
def bounds(
    values: Floats32,
    count: int,
    found: tuple[int, int, int],
    which: int,
    terms: Floats,
    orders: Ints,
    counts: Ints,
    extremes: Floats,
    cell: Floats32,
) -> bool:
    """What `narrow.scan` found of the finite values of a side; whether some are subnormal."""
    least = narrow.value_of_key(found[0], cell)
    most = narrow.value_of_key(found[1], cell)
    extremes[at.MIN_A + 2 * which] = min(extremes[at.MIN_A + 2 * which], least)
    extremes[at.MAX_A + 2 * which] = max(extremes[at.MAX_A + 2 * which], most)
    high, low = terms[at.HIGH_A + 2 * which], terms[at.LOW_A + 2 * which]
    saturates = orders[at.SATURATES_A + which]
    if saturates and (most >= high or least <= low):
        own = np.int64(0)
        for i in range(count):
            own += np.int64(values[i] >= high or (saturates == 2 and values[i] <= low))
        counts[at.SIDE_A + 5 * which + at.OWN_SATURATED] += own
    counts[at.SIDE_A + 5 * which + at.OWN_FINITE] += count
    cell[0] = max(abs(least), abs(most))
    top = np.int64(cell.view(np.uint32)[0] >> np.uint32(23))
    seen = at.SEEN_A + 2 * which
    if top or found[2] != np.uint32(0xFFFFFFFF):
        counts[seen] = min(counts[seen], np.int64((np.int64(found[2]) + 1) >> 23))
        counts[seen + 1] = max(counts[seen + 1], top)
    return found[2] < NORMAL - ONE


@inlined
def significands(
    values: Floats32, count: int, which: int, planes: Words, carries: Words, counts: Ints
) -> None:
    """Count significand bits of a side without subnormals; zeros follow up to a whole group."""
    groups = (count + GROUP - 1) // GROUP
    count_significands(values, planes, carries, groups)
    close_block(carries, groups, planes)
    counts[at.PADDED_A + which] += groups * GROUP - count


@inlined
def own_values(
    values: Floats32, count: int, tiny: bool, tables: Any, marks: Words
) -> None:
    """Count the values of a side by themselves, subnormals too; with their significand bits."""
    if tiny:
        narrow.tally_subnormals(values, count, tables[0], marks)
    else:
        narrow.tally_values(values, count, tables)


@inlined
def padded(values: Floats32, count: int) -> None:
    """Zeros after a part of a block, up to a whole group."""
    for i in range(count, (count + GROUP - 1) // GROUP * GROUP):
        values[i] = np.float32(0)
