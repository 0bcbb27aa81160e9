"""One block of a pair that fits float32, all stages in turn.

An element that is not finite on both sides becomes a pair of zeros at its place, and zeros fill the
last group of a block: they add nothing to sums and profiles, and counts of zeros are put right when
tables are collected.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine import layout as at
from metrics.engine import narrow, narrow_ulps
from metrics.engine import narrow_lanes as lanes
from metrics.engine.jit import borrowed, bytes_at, inlined, kernel, tick
from metrics.engine.layout import BLOCK
from metrics.engine.loading import F32, Floats, Floats32, Ints, load_narrow
from metrics.engine.merging import merge_sums
from metrics.engine.narrow import INFINITE, NORMAL
from metrics.engine.narrow_side import bounds, own_values, padded, significands, survey
from metrics.engine.narrow_sums import keep_worst, moments, own_moments, sweep_block
from metrics.engine.planes import GROUP
from metrics.engine.sieve import sieve
from metrics.engine.ulp_lanes import D_LARGEST

A, B, OWN_A, OWN_B, BOTH_A, BOTH_B = 0, 1, 2, 3, 4, 5  # rows of the floats of a block
FLOAT_ROWS = 6
T_A, T_B, T_BOTH = 0, 1, 2  # tables of values: T_BOTH counts for both sides
TABLES = 3
CLOSE = 4 * BLOCK


@inlined
def _loaded(raw: Any, kind: int, table: Floats32, first: int, count: int, room: Floats32) -> Any:
    """A block as float32: where it lies, or in `room`; zeros after a part of a block."""
    if kind == F32 and count % GROUP == 0:
        return raw[4 * first : 4 * (first + count)].view(np.float32)
    load_narrow(raw, kind, table, first, count, room[:count])
    padded(room, count)
    return room[:count]


@inlined
def _with_holes(values: Floats32, where: Ints, count: int, size: int, out: Floats32) -> None:
    """Values at their places, zeros elsewhere."""
    for i in range((size + GROUP - 1) // GROUP * GROUP):
        out[i] = np.float32(0)
    for i in range(count):
        out[where[i]] = values[i]


@inlined
def _values(a: Floats32, b: Floats32, count: int, masks: Any, tops: Any, spread: bool) -> None:
    """Value histograms of both sides of a block without holes and subnormals."""
    if 4 * narrow.apart(masks, count) > count:
        narrow.tally_values(a, count, tops[T_A], spread)
        narrow.tally_values(b, count, tops[T_B], spread)
    else:
        narrow.tally_values(a, count, tops[T_BOTH], spread)
        narrow.move_values(a, b, masks, count, tops[T_B, 0])


@kernel
def run_narrow(
    address_a: int,
    address_b: int,
    count: int,
    position: int,
    table_a: Floats32,
    table_b: Floats32,
    terms: Floats,
    orders: Ints,
    shape: Ints,
    offsets: Ints,
    tops: Any,
    joint: Any,
    planes: Any,
    marks: Any,
    words: Any,
    masks: Any,
    floats: Any,
    e: Floats,
    swept: Any,
    found: Ints,
    ahead: Ints,
    where: Ints,
    place: Ints,
    counts: Ints,
    extremes: Floats,
    sums: Floats,
    part: Floats,
    profile: Floats,
    clock: Ints,
) -> None:
    """`count` elements from flat `position` on, added to everything."""
    tops, joint, planes, marks = borrowed(tops), borrowed(joint), borrowed(planes), borrowed(marks)
    words, masks, floats, e = borrowed(words), borrowed(masks), borrowed(floats), borrowed(e)
    swept, found, where, counts = (
        borrowed(swept),
        borrowed(found),
        borrowed(where),
        borrowed(counts),
    )
    extremes, sums, part, profile = (
        *(borrowed(extremes), borrowed(sums), borrowed(part), borrowed(profile)),
    )
    terms, orders, shape, offsets = (
        *(borrowed(terms), borrowed(orders), borrowed(shape), borrowed(offsets)),
    )
    place, ahead = borrowed(place), borrowed(ahead)
    keys, ulps, carries_a, carries_b = words[0], words[1], words[2], words[3]
    carries, form = carries_a, orders[at.ULP_FORM]
    raw_a, raw_b = bytes_at(address_a, 4 * count), bytes_at(address_b, 4 * count)
    tick(clock, at.T_REST)
    done = 0
    while done < count:
        n = min(BLOCK - (position + done) % BLOCK, count - done)
        a = _loaded(raw_a, orders[at.KIND_A], table_a, done, n, floats[A])
        b = _loaded(raw_b, orders[at.KIND_B], table_b, done, n, floats[B])
        spread = position + done >= CLOSE  # little is collected sooner from one table each
        counts[at.SPREAD] |= spread
        tick(clock, at.T_LOAD)
        side_a = survey(a, n, planes[0], carries_a, found)
        side_b = survey(b, n, planes[1], carries_b, found)
        whole = max(side_a[3], side_b[3]) < INFINITE
        own_a, own_b, both_a, both_b, n_a, n_b, m = a, b, a, b, n, n, n
        if not whole:
            own_a, own_b = floats[OWN_A], floats[OWN_B]
            both_a, both_b = floats[BOTH_A], floats[BOTH_B]
            n_a, n_b, m = sieve(a, b, n, own_a, own_b, both_a, both_b, where, counts)
            padded(own_a, n_a)
            padded(own_b, n_b)
            side_a = survey(own_a, n_a, planes[0], carries_a, found)
            side_b = survey(own_b, n_b, planes[1], carries_b, found)
            a, b = floats[A], floats[B]
            _with_holes(both_a, where, m, n, a)
            _with_holes(both_b, where, m, n, b)
        tiny_a, tiny_b = side_a[2] < NORMAL, side_b[2] < NORMAL
        if n_a:
            bounds(own_a, n_a, side_a, 0, terms, orders, counts, extremes)
            if not tiny_a:
                significands(n_a, 0, planes[0], carries_a, counts)
        if n_b:
            bounds(own_b, n_b, side_b, 1, terms, orders, counts, extremes)
            if not tiny_b:
                significands(n_b, 1, planes[1], carries_b, counts)
        tick(clock, at.T_SIDES)
        ahead[at.NEXT_A] = address_a + ahead[at.WIDTH_A] * (done + n)
        ahead[at.NEXT_B] = address_b + ahead[at.WIDTH_B] * (done + n)
        part[:] = 0.0
        if m:
            counts[at.FINITE] += m
            counts[at.SINCE] += m
            counts[at.HOLES] += n - m
            start = position + done
            counts[at.MISMATCHES] += sweep_block(
                a, b, n, start, shape, offsets, place, profile, terms, keys, swept, e
            )
            moments(both_a, both_b, m, swept[0], swept[1], part)
            worst = swept[0, lanes.S_PEAK]
            keep_worst(both_a, both_b, worst, start, where, whole, counts, extremes)
            tick(clock, at.T_SUMS)
            narrow_ulps.compare(
                form, a, b, n, ulps, planes[2], carries, masks, found, ahead, counts
            )
            largest = found[D_LARGEST]
            narrow_ulps.keep_largest(
                both_a, both_b, ulps, largest, start, where, whole, counts, extremes
            )
            tick(clock, at.T_ULPS)
            if tiny_a:
                narrow.joint_keys_with_subnormals(a, b, n, keys)
            narrow.tally(keys, n, joint, spread)
            tick(clock, at.T_JOINT)
        if whole and not tiny_a and not tiny_b:
            _values(a, b, n, masks, tops, spread)
        else:
            own_values(own_a, n_a, tiny_a, tops[T_A], marks[0], spread)
            own_values(own_b, n_b, tiny_b, tops[T_B], marks[1], spread)
        tick(clock, at.T_VALUES)
        if whole:
            part[at.OWN_A], part[at.OWN_A + 1], part[at.OWN_A + 2] = part[0], part[1], part[2]
            part[at.OWN_B], part[at.OWN_B + 1], part[at.OWN_B + 2] = part[0], part[3], part[4]
        else:
            if n_a:
                own_moments(own_a, n_a, at.OWN_A, part)
            if n_b:
                own_moments(own_b, n_b, at.OWN_B, part)
        merge_sums(sums, part)
        tick(clock, at.T_MERGE)
        done += n
