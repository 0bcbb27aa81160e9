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
from metrics.engine.jit import borrowed, bytes_at, inlined, kernel, prefetch, tick
from metrics.engine.layout import BLOCK
from metrics.engine.loading import F32, Floats, Floats32, Ints, load_narrow
from metrics.engine.merging import merge_sums
from metrics.engine.narrow_side import bounds, own_values, padded, significands
from metrics.engine.narrow_sums import keep_worst, moments, own_moments, sweep_block
from metrics.engine.planes import GROUP
from metrics.engine.sieve import sieve

A, B, OWN_A, OWN_B, BOTH_A, BOTH_B, CELL = 0, 1, 2, 3, 4, 5, 6  # rows of the floats of a block
FLOAT_ROWS = 7
T_A, T_B, T_BOTH = 0, 1, 2  # tables of values: T_BOTH counts for both sides
TABLES = 3
_PLUS, _MINUS = np.int32(0x7F800000), np.int32(-0x7F800001)  # keys of the infinities


@inlined
def _finite(found: tuple[int, int, int]) -> bool:
    return found[0] > _MINUS and found[1] < _PLUS


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
def _values(
    a: Floats32, b: Floats32, count: int, masks: Any, apart: int, tops: Any
) -> None:
    """Value histograms of both sides of a block without holes and subnormals."""
    if 4 * apart > count:
        narrow.tally_values(a, count, tops[T_A])
        narrow.tally_values(b, count, tops[T_B])
    else:
        narrow.tally_values(a, count, tops[T_BOTH])
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
    swept, found, where, counts = borrowed(swept), borrowed(found), borrowed(where), borrowed(counts)
    extremes, sums, part, profile = (
        *(borrowed(extremes), borrowed(sums), borrowed(part), borrowed(profile)),
    )
    terms, orders, shape, offsets = (
        *(borrowed(terms), borrowed(orders), borrowed(shape), borrowed(offsets)),
    )
    place = borrowed(place)
    keys, ulps, carries = words[0], words[1], words[2]
    cell, form = floats[CELL], orders[at.ULP_FORM]
    raw_a, raw_b = bytes_at(address_a, 4 * count), bytes_at(address_b, 4 * count)
    width_a, width_b = orders[at.WIDTH_A], orders[at.WIDTH_B]
    tick(clock, at.T_REST)
    done = 0
    while done < count:
        n = min(BLOCK - (position + done) % BLOCK, count - done)
        a = _loaded(raw_a, orders[at.KIND_A], table_a, done, n, floats[A])
        b = _loaded(raw_b, orders[at.KIND_B], table_b, done, n, floats[B])
        found_a, found_b = narrow.scan(a, n), narrow.scan(b, n)
        whole = _finite(found_a) and _finite(found_b)
        own_a, own_b, both_a, both_b, n_a, n_b, m = a, b, a, b, n, n, n
        if not whole:
            own_a, own_b = floats[OWN_A], floats[OWN_B]
            both_a, both_b = floats[BOTH_A], floats[BOTH_B]
            n_a, n_b, m = sieve(a, b, n, own_a, own_b, both_a, both_b, where, counts)
            found_a, found_b = narrow.scan(own_a, n_a), narrow.scan(own_b, n_b)
            padded(own_a, n_a)
            padded(own_b, n_b)
            a, b = floats[A], floats[B]
            _with_holes(both_a, where, m, n, a)
            _with_holes(both_b, where, m, n, b)
        tick(clock, at.T_LOAD)
        tiny_a = tiny_b = False
        if n_a:
            tiny_a = bounds(own_a, n_a, found_a, 0, terms, orders, counts, extremes, cell)
            if not tiny_a:
                significands(own_a, n_a, 0, planes[0], carries, counts)
        if n_b:
            tiny_b = bounds(own_b, n_b, found_b, 1, terms, orders, counts, extremes, cell)
            if not tiny_b:
                significands(own_b, n_b, 1, planes[1], carries, counts)
        tick(clock, at.T_SIGNIFICANDS)
        ahead = done + n
        prefetch(address_a + width_a * ahead, width_a * BLOCK)
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
            narrow_ulps.compare(form, a, b, n, ulps, planes[2], carries, masks, found, counts)
            largest = found[lanes.D_LARGEST]
            narrow_ulps.keep_largest(
                both_a, both_b, ulps, largest, start, where, whole, counts, extremes
            )
            tick(clock, at.T_ULPS)
            prefetch(address_b + width_b * ahead, width_b * BLOCK)
            if tiny_a:
                narrow.joint_keys_with_subnormals(a, b, n, keys)
            narrow.tally(keys, n, joint)
            tick(clock, at.T_JOINT)
        if whole and not tiny_a and not tiny_b:
            _values(a, b, n, masks, found[lanes.D_APART], tops)
        else:
            own_values(own_a, n_a, tiny_a, tops[T_A], marks[0])
            own_values(own_b, n_b, tiny_b, tops[T_B], marks[1])
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
