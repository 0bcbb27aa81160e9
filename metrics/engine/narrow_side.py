"""One side of a block that fits float32: bounds, value histogram, significand bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine import layout as at
from metrics.engine import narrow
from metrics.engine import narrow_lanes as lanes
from metrics.engine.jit import float32_of_bits, inlined
from metrics.engine.loading import Floats, Floats32, Ints
from metrics.engine.narrow import Words
from metrics.engine.planes import GROUP, close_block


@inlined
def survey(
    values: Floats32, count: int, planes: Words, carries: Words, found: Ints
) -> tuple[float, float, int, int]:
    """As `narrow.scan`, with significand bits waiting in `carries`; any values but NaN."""
    lanes.survey(values, planes, carries, found, (count + GROUP - 1) // GROUP)
    least, top = found[lanes.V_LEAST], found[lanes.V_TOP]
    if count % GROUP or least == 0:
        return narrow.scan(values, count)
    low, high = np.uint32(found[lanes.V_LOW]), np.uint32(found[lanes.V_HIGH])
    return np.float64(float32_of_bits(low)), np.float64(float32_of_bits(high)), least, top


@inlined
def bounds(
    values: Floats32,
    count: int,
    surveyed: tuple[float, float, int, int],
    which: int,
    terms: Floats,
    orders: Ints,
    counts: Ints,
    extremes: Floats,
) -> None:
    """Take what was found of the finite values of a side."""
    low, high, least, top = surveyed
    extremes[at.MIN_A + 2 * which] = min(extremes[at.MIN_A + 2 * which], low + 0.0)
    extremes[at.MAX_A + 2 * which] = max(extremes[at.MAX_A + 2 * which], high + 0.0)
    highest, lowest = terms[at.HIGH_A + 2 * which], terms[at.LOW_A + 2 * which]
    saturates = orders[at.SATURATES_A + which]
    if saturates and (high >= highest or low <= lowest):
        own = np.int64(0)
        for i in range(count):
            own += np.int64(values[i] >= highest or (saturates == 2 and values[i] <= lowest))
        counts[at.SIDE_A + 5 * which + at.OWN_SATURATED] += own
    counts[at.SIDE_A + 5 * which + at.OWN_FINITE] += count
    seen = at.SEEN_A + 2 * which
    if top:
        counts[seen] = min(counts[seen], least >> 23)
        counts[seen + 1] = max(counts[seen + 1], top >> 23)


@inlined
def significands(count: int, which: int, planes: Words, carries: Words, counts: Ints) -> None:
    """Keep the significand bits of a side without subnormals; zeros filled its last group."""
    groups = (count + GROUP - 1) // GROUP
    close_block(carries, groups, planes)
    counts[at.PADDED_A + which] += groups * GROUP - count


@inlined
def own_values(
    values: Floats32, count: int, tiny: bool, tables: Any, marks: Words, spread: bool
) -> None:
    """Count the values of a side by themselves, subnormals too; with their significand bits."""
    if tiny:
        narrow.tally_subnormals(values, count, tables[0], marks)
    else:
        narrow.tally_values(values, count, tables, spread)


@inlined
def padded(values: Floats32, count: int) -> None:
    """Zeros after a part of a block, up to a whole group."""
    for i in range(count, (count + GROUP - 1) // GROUP * GROUP):
        values[i] = np.float32(0)
