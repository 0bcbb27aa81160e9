"""One block of a pair in float64, all stages in turn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from metrics.engine import layout as at
from metrics.engine import wide
from metrics.engine.axes import add_axes
from metrics.engine.jit import bytes_at, inlined, kernel
from metrics.engine.layout import BLOCK
from metrics.engine.loading import I64, U64, Floats, Floats32, Ints, load_wide
from metrics.engine.merging import align_profile, merge_sums
from metrics.engine.sieve import sieve
from metrics.engine.wide import INFINITE, Words64

A, B, E, M, OWN_A, OWN_B, S_A, S_B, S_E = 0, 1, 2, 3, 4, 5, 6, 7, 8  # rows of the arrays of a block
ROWS = 9


@inlined
def _saturated(
    values: Floats, ints: Ints, count: int, which: int, kind: int, terms: Floats, orders: Ints
) -> int:
    how = orders[at.SATURATES_A + which]
    found = 0
    if how == 0:
        return 0
    if how <= 2:
        high, low = terms[at.HIGH_A + 2 * which], terms[at.LOW_A + 2 * which]
        for i in range(count):
            found += values[i] >= high or (how == 2 and values[i] <= low)
        return found
    top, bottom = orders[at.INT_HIGH_A + 2 * which], orders[at.INT_LOW_A + 2 * which]
    big, both = kind == U64, how == 4 or how == 6
    for i in range(count):
        over = how <= 4 and not wide.is_less(ints[i], top, big, big)
        under = both and not wide.is_less(bottom, ints[i], False, big)
        found += over or under
    return found


@inlined
def _side(
    values: Floats,
    ints: Ints,
    count: int,
    which: int,
    tops: Any,
    bits: Any,
    terms: Floats,
    orders: Ints,
    counts: Ints,
    extremes: Floats,
    part: Floats,
    room: Floats,
) -> None:
    """Everything about the finite values of one side."""
    low, high, top, least = wide.scan(values, count)
    extremes[at.MIN_A + 2 * which] = min(extremes[at.MIN_A + 2 * which], low)
    extremes[at.MAX_A + 2 * which] = max(extremes[at.MAX_A + 2 * which], high)
    side, kind = at.SIDE_A + 5 * which, orders[at.KIND_A + which]
    exact = kind in (I64, U64)
    if exact or high >= terms[at.HIGH_A + 2 * which] or low <= terms[at.LOW_A + 2 * which]:
        counts[side + at.OWN_SATURATED] += _saturated(
            values, ints, count, which, kind, terms, orders
        )
    counts[side + at.OWN_FINITE] += count
    seen = at.SEEN_A + 2 * which
    if top:
        counts[seen] = min(counts[seen], least >> 52)
        counts[seen + 1] = max(counts[seen + 1], top >> 52)
    wide.tally_values(values, count, tops, bits)
    exponent = wide.exponent_of(top)
    values = wide.scaled(values, count, exponent, room)
    guess = wide.mean(values, count)
    total = squares = 0.0
    for i in range(count):
        d = values[i] - guess
        total += d
        squares += d * d
    rest = total / count
    own = at.OWN_A + 4 * which
    part[own], part[own + 1] = count, guess + rest
    part[own + 2], part[own + 3] = max(squares - total * rest, 0.0), exponent


@inlined
def _errors(arrays: Any, ints: Any, ulps: Words64, count: int, orders: Ints) -> int:
    """Fill rows E and M, and ulps; 1 when E is halved."""
    a, b, e, m = arrays[A], arrays[B], arrays[E], arrays[M]
    if orders[at.EXACT]:
        kind_a, kind_b = orders[at.KIND_A], orders[at.KIND_B]
        wide.distances(ints[0], ints[1], kind_a, kind_b, count, ulps)
        for i in range(count):
            m[i] = np.float64(ulps[i])
            less = wide.is_less(ints[1, i], ints[0, i], kind_b == U64, kind_a == U64)
            e[i] = -m[i] if less else m[i]
        return 0
    if orders[at.COARSER] == at.FLOAT:
        precision, least = orders[at.PRECISION], orders[at.MIN_EXPONENT]
        wide.ulps_of_floats(a, b, count, precision, least, ulps)
    else:
        wide.ulps_of_numbers(a, b, count, ulps)
    halved = 0
    for i in range(count):
        if abs(a[i]) >= wide.HALF_RANGE or abs(b[i]) >= wide.HALF_RANGE:
            halved = 1
    for i in range(count):
        m[i] = abs(b[i] - a[i])
        e[i] = b[i] / 2 - a[i] / 2 if halved else b[i] - a[i]
    return halved


@inlined
def _counted(
    arrays: Any, ulps: Words64, count: int, terms: Floats, orders: Ints, counts: Ints
) -> None:
    a, b, m = arrays[A], arrays[B], arrays[M]
    exact, boolean = orders[at.EXACT] != 0, orders[at.COARSER] == at.BOOLEAN
    atol, rtol = terms[at.ATOL], terms[at.RTOL]
    equal = outside = flips = 0
    for i in range(count):
        same = ulps[i] == 0
        equal += same if exact else a[i] == b[i]
        outside += not same if boolean else m[i] > atol + rtol * abs(a[i])
        flips += (a[i] < 0 < b[i]) or (b[i] < 0 < a[i])
    counts[at.EQUAL] += equal
    counts[at.MISMATCHES] += outside
    counts[at.FLIPS] += flips
    counts[at.FINITE] += count


@inlined
def _extremes(
    arrays: Any,
    ulps: Words64,
    count: int,
    position: int,
    where: Ints,
    whole: bool,
    counts: Ints,
    extremes: Floats,
) -> None:
    a, b, m = arrays[A], arrays[B], arrays[M]
    for i in range(count):
        if m[i] > extremes[at.WORST]:
            extremes[at.WORST], extremes[at.WORST_A], extremes[at.WORST_B] = m[i], a[i], b[i]
            counts[at.WORST_AT] = position + (i if whole else where[i])
        if counts[at.ULP_AT] < 0 or ulps[i] > np.uint64(counts[at.LARGEST_ULP]):
            counts[at.LARGEST_ULP] = np.int64(ulps[i])
            extremes[at.ULP], extremes[at.ULP_A], extremes[at.ULP_B] = (
                np.float64(ulps[i]),
                a[i],
                b[i],
            )
            counts[at.ULP_AT] = position + (i if whole else where[i])


@inlined
def _sums(arrays: Any, count: int, halved: int, part: Floats) -> None:
    """Sums of the block; leaves reference and error, scaled as the sums are, in rows S_A, S_E."""
    exponents = (
        wide.exponent_of(wide.scan(arrays[A], count)[2]),
        wide.exponent_of(wide.scan(arrays[B], count)[2]),
        wide.exponent_of(wide.scan(arrays[E], count)[2]),
    )
    a = wide.scaled(arrays[A], count, exponents[0], arrays[S_A])
    b = wide.scaled(arrays[B], count, exponents[1], arrays[S_B])
    e = wide.scaled(arrays[E], count, exponents[2], arrays[S_E])
    at_a, at_b, at_e = wide.mean(a, count), wide.mean(b, count), wide.mean(e, count)
    da, db, de, aa, bb, ee, ab, ae, dot_b, dot_e, abs_a, abs_e = wide.centred(
        a, b, e, count, at_a, at_b, at_e
    )
    n = float(count)
    ra, rb, re = da / n, db / n, de / n
    part[at.N] = n
    part[at.MEAN_A], part[at.M2_A] = at_a + ra, max(aa - da * ra, 0.0)
    part[at.MEAN_B], part[at.M2_B] = at_b + rb, max(bb - db * rb, 0.0)
    part[at.MEAN_E], part[at.M2_E] = at_e + re, max(ee - de * re, 0.0)
    part[at.CO_B], part[at.CO_E] = ab - da * rb, ae - da * re
    part[at.DOT_B], part[at.DOT_E] = dot_b, dot_e
    part[at.ABS_A], part[at.ABS_E] = abs_a, abs_e
    part[at.K_A], part[at.K_B], part[at.K_E] = exponents[0], exponents[1], exponents[2] + halved
    if exponents[0] == 0:
        arrays[S_A, :count] = a[:count]
    if exponents[2] == 0:
        arrays[S_E, :count] = e[:count]


@inlined
def _spread(arrays: Any, where: Ints, n: int, count: int) -> None:
    """Rows S_A, S_E and M back to their places in the block, zero elsewhere; places ascend."""
    j = n - 1
    for i in range(count - 1, -1, -1):
        if j >= 0 and where[j] == i:
            for row in (S_A, S_E, M):
                arrays[row, i] = arrays[row, j]
            j -= 1
        else:
            for row in (S_A, S_E, M):
                arrays[row, i] = 0.0


@inlined
def _energies(arrays: Any, count: int, exponent_a: float, exponent_e: float, profile: Any) -> None:
    """Bring the block and the profiles so far to the same exponents; mostly both are 0."""
    last = profile.shape[1] - 1
    if profile[0, last] != exponent_e:
        shift = align_profile(profile, 0, exponent_e, _is_zero(arrays[S_E], count))
        for i in range(count if shift else 0):
            arrays[S_E, i] = math.ldexp(arrays[S_E, i], shift)
    if profile[1, last] != exponent_a:
        shift = align_profile(profile, 1, exponent_a, _is_zero(arrays[S_A], count))
        for i in range(count if shift else 0):
            arrays[S_A, i] = math.ldexp(arrays[S_A, i], shift)


@inlined
def _is_zero(values: Floats, count: int) -> bool:
    found = False
    for i in range(count):
        found |= values[i] != 0
    return not found


@kernel
def run_wide(
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
    bits: Any,
    ulp_bins: Any,
    arrays: Any,
    ints: Any,
    ulps: Words64,
    narrow: Floats32,
    where: Ints,
    counts: Ints,
    extremes: Floats,
    sums: Floats,
    part: Floats,
    profile: Any,
) -> None:
    """`count` elements from flat `position` on, added to everything."""
    raw_a, raw_b = bytes_at(address_a, 8 * count), bytes_at(address_b, 8 * count)
    done = 0
    while done < count:
        n = min(BLOCK - (position + done) % BLOCK, count - done)
        load_wide(raw_a, orders[at.KIND_A], table_a, done, n, arrays[A], ints[0], narrow)
        load_wide(raw_b, orders[at.KIND_B], table_b, done, n, arrays[B], ints[1], narrow)
        whole = wide.scan(arrays[A], n)[2] < INFINITE and wide.scan(arrays[B], n)[2] < INFINITE
        n_a, n_b, m = n, n, n
        own_a, own_b = arrays[A], arrays[B]
        if not whole:
            own_a, own_b = arrays[OWN_A], arrays[OWN_B]
            a, b = arrays[A], arrays[B]
            n_a, n_b, m = sieve(a, b, n, own_a, own_b, a, b, where, counts)
        part[:] = 0.0
        if n_a:
            _side(
                own_a,
                ints[0],
                n_a,
                0,
                tops[0],
                bits[0],
                terms,
                orders,
                counts,
                extremes,
                part,
                arrays[S_A],
            )
        if n_b:
            _side(
                own_b,
                ints[1],
                n_b,
                1,
                tops[1],
                bits[1],
                terms,
                orders,
                counts,
                extremes,
                part,
                arrays[S_A],
            )
        if m:
            halved = _errors(arrays, ints, ulps, m, orders)
            _counted(arrays, ulps, m, terms, orders, counts)
            _extremes(arrays, ulps, m, position + done, where, whole, counts, extremes)
            code = wide.exponent_code(wide.scan(arrays[M], m)[2])
            counts[at.SEEN_E + 1] = max(counts[at.SEEN_E + 1], code)
            wide.tally_pair(arrays[A], arrays[M], ulps, m, joint, ulp_bins)
            _sums(arrays, m, halved, part)
        exponent_a, exponent_e = part[at.K_A], part[at.K_E]
        merge_sums(sums, part)
        if m:
            if not whole:
                _spread(arrays, where, m, n)
            _energies(arrays, n, exponent_a, exponent_e, profile)
            add_axes(
                arrays[S_A], arrays[S_E], arrays[M], n, position + done,
                shape, offsets, where, profile,
            )  # fmt: skip
        done += n
