"""One block of a pair that fits float32, all stages in turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine import layout as at
from metrics.engine import narrow
from metrics.engine.axes import add_axes
from metrics.engine.jit import borrowed, bytes_at, float_of_bits, inlined, kernel, prefetch, tick
from metrics.engine.layout import BLOCK
from metrics.engine.loading import F32, Floats, Floats32, Ints, load_narrow
from metrics.engine.merging import merge_sums
from metrics.engine.narrow import MAGNITUDE, NORMAL, OCTAVES, ONE, TOPS, ZERO, Words
from metrics.engine.narrow_ulps import ulps as ulp_distances
from metrics.engine.planes import add_marks
from metrics.engine.sieve import sieve

_PLUS, _MINUS = np.int32(0x7F800000), np.int32(-0x7F800001)  # keys of the infinities


@inlined
def _side(
    values: Floats32,
    count: int,
    found: tuple[int, int, int, float],
    which: int,
    table: Any,
    planes: Any,
    marks: Words,
    carry: Words,
    terms: Floats,
    orders: Ints,
    counts: Ints,
    extremes: Floats,
    cell: Floats32,
    clock: Ints,
) -> float:
    """Everything about the finite values of one side but moments; a guess of their mean."""
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
    if found[2] < NORMAL - ONE:
        _side_with_subnormals(values, count, table[0], marks)
    else:
        tick(clock, at.T_SIDE)
        narrow.tally_values(values, count, table[0], table[1])
        tick(clock, at.T_VALUES)
        narrow.bit_marks(values, count, marks)
    for i in range(count, BLOCK):
        marks[i] = ZERO
    add_marks(marks, planes, carry)
    tick(clock, at.T_BITS)
    if least == most:
        return least
    mean = np.float64(found[3]) / count
    return mean if abs(mean) < np.inf else least / 2 + most / 2


@inlined
def _side_with_subnormals(values: Floats32, count: int, table: Words, marks: Words) -> None:
    words = values.view(np.uint32)
    for i in range(count):
        magnitude = np.uint32(words[i] & MAGNITUDE)
        marks[i] = ZERO
        if magnitude == ZERO or magnitude >= NORMAL:
            table[words[i] >> np.uint32(19)] += ONE
            if magnitude:
                bits = np.uint32(np.uint32(magnitude & np.uint32(NORMAL - ONE)) | NORMAL)
                marks[i] = np.uint32(bits & np.uint32(ZERO - bits))
            continue
        octave = 0
        while (magnitude >> np.uint32(octave + 1)) != 0:
            octave += 1
        step = ((np.int64(magnitude) << 4) >> octave) & 15
        sign = np.int64(words[i] >> np.uint32(31))
        table[TOPS + (sign * OCTAVES + octave) * 16 + step] += ONE
        lowest = np.uint32(magnitude & np.uint32(ZERO - magnitude))
        marks[i] = np.uint32(lowest << np.uint32(23 - octave))


@inlined
def _joint_keys_with_subnormals(a: Floats32, e: Floats, count: int, keys: Words) -> None:
    x, z = a.view(np.uint32), e.view(np.uint64)
    for i in range(count):
        magnitude = np.uint32(x[i] & MAGNITUDE)
        row = np.int64(0)
        if magnitude >= NORMAL:
            row = np.int64(magnitude >> np.uint32(23)) + 23
        else:
            while (magnitude >> np.uint32(row)) != 0:
                row += 1
        own = np.int64(z[i] >> np.uint64(52)) & 0x7FF
        keys[i] = np.uint32(row * 304 + (own - 873 if own else 0))


@inlined
def _mean(values: Floats32, count: int) -> float:
    """A guess, exact for a constant."""
    total = 0.0
    low, high = np.float64(values[0]), np.float64(values[0])
    for i in range(count):
        value = np.float64(values[i])
        total += value
        low, high = min(low, value), max(high, value)
    return low if low == high else total / count


@inlined
def _own_moments(values: Floats32, count: int, guess: float, own: int, part: Floats) -> None:
    total = squares = 0.0
    for i in range(count):
        d = np.float64(values[i]) - guess
        total += d
        squares += d * d
    rest = total / count
    part[own], part[own + 1] = count, guess + rest
    part[own + 2] = max(squares - total * rest, 0.0)
    part[own + 3] = 0.0


@inlined
def _pair(
    a: Floats32,
    b: Floats32,
    count: int,
    guess_a: float,
    guess_b: float,
    tiny: bool,
    position: int,
    where: Ints,
    whole: bool,
    e: Floats,
    ulps: Words,
    marks: Words,
    carry: Words,
    joint: Any,
    planes: Any,
    terms: Floats,
    orders: Ints,
    counts: Ints,
    extremes: Floats,
    part: Floats,
    clock: Ints,
) -> None:
    """Everything about the elements finite on both sides but the axes; fills `part` and `e`."""
    outside = narrow.errors(a, b, count, terms[at.ATOL], terms[at.RTOL], e)
    top = narrow.largest_of(e, count)
    tick(clock, at.T_ERRORS)
    counts[at.MISMATCHES] += outside
    equal, flips = narrow.agreement(a, b, count)
    counts[at.EQUAL] += equal
    counts[at.FLIPS] += flips
    counts[at.FINITE] += count
    tick(clock, at.T_AGREEMENT)
    _sums(a, b, e, count, guess_a, guess_b, part)
    tick(clock, at.T_SUMS)
    worst = float_of_bits(np.uint64(top))
    if worst > extremes[at.WORST]:
        i = 0
        while abs(e[i]) != worst:
            i += 1
        extremes[at.WORST], extremes[at.WORST_A], extremes[at.WORST_B] = worst, a[i], b[i]
        counts[at.WORST_AT] = position + (i if whole else where[i])
    counts[at.SEEN_E + 1] = max(counts[at.SEEN_E + 1], (top >> 52) - 873)
    largest = ulp_distances(orders[at.ULP_FORM], a, b, count, ulps)
    if counts[at.ULP_AT] < 0 or largest > counts[at.LARGEST_ULP]:
        i = 0
        while ulps[i] != largest:
            i += 1
        counts[at.LARGEST_ULP] = largest
        extremes[at.ULP], extremes[at.ULP_A], extremes[at.ULP_B] = largest, a[i], b[i]
        counts[at.ULP_AT] = position + (i if whole else where[i])
    tick(clock, at.T_ULPS)
    counts[at.ULP_ZERO] += narrow.ulp_marks(ulps, count, marks)
    for i in range(count, BLOCK):
        marks[i] = ZERO
    add_marks(marks, planes, carry)
    tick(clock, at.T_ULP_BINS)
    if tiny:
        _joint_keys_with_subnormals(a, e, count, marks)
    else:
        narrow.joint_keys(a, e, count, marks)
    narrow.tally(marks, count, joint[0], joint[1])
    tick(clock, at.T_JOINT)


@inlined
def _sums(
    a: Floats32, b: Floats32, e: Floats, count: int, at_a: float, at_b: float, part: Floats
) -> None:
    at_e = at_b - at_a
    da, db, de, aa, bb, ee, ab, ae, abs_a, abs_e = narrow.centred(a, b, e, count, at_a, at_b, at_e)
    n = float(count)
    ra, rb, re = da / n, db / n, de / n
    part[at.N] = n
    part[at.MEAN_A], part[at.M2_A] = at_a + ra, max(aa - da * ra, 0.0)
    part[at.MEAN_B], part[at.M2_B] = at_b + rb, max(bb - db * rb, 0.0)
    part[at.MEAN_E], part[at.M2_E] = at_e + re, max(ee - de * re, 0.0)
    part[at.CO_B], part[at.CO_E] = ab - da * rb, ae - da * re
    part[at.DOT_B] = part[at.CO_B] + n * part[at.MEAN_A] * part[at.MEAN_B]
    part[at.DOT_E] = part[at.CO_E] + n * part[at.MEAN_A] * part[at.MEAN_E]
    part[at.ABS_A], part[at.ABS_E] = abs_a, abs_e
    part[at.K_A] = part[at.K_B] = part[at.K_E] = 0.0


@inlined
def _spread(a: Floats32, e: Floats, where: Ints, n: int, count: int) -> None:
    """Values back to their places in the block, zero elsewhere; places ascend."""
    j = n - 1
    for i in range(count - 1, -1, -1):
        if j >= 0 and where[j] == i:
            a[i], e[i] = a[j], e[j]
            j -= 1
        else:
            a[i], e[i] = np.float32(0), 0.0


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
    words: Any,
    floats: Any,
    e: Floats,
    where: Ints,
    counts: Ints,
    extremes: Floats,
    sums: Floats,
    part: Floats,
    profile: Floats,
    clock: Ints,
) -> None:
    """`count` elements from flat `position` on, added to everything."""
    tops, joint, planes, words = borrowed(tops), borrowed(joint), borrowed(planes), borrowed(words)
    floats, e, where, counts = borrowed(floats), borrowed(e), borrowed(where), borrowed(counts)
    extremes, sums, part, profile = (
        *(borrowed(extremes), borrowed(sums), borrowed(part), borrowed(profile)),
    )
    terms, orders, shape, offsets = (
        *(borrowed(terms), borrowed(orders), borrowed(shape), borrowed(offsets)),
    )
    marks, ulps, carry = words[0], words[1], words[2, : BLOCK // 16]
    cell = floats[4]
    raw_a, raw_b = bytes_at(address_a, 4 * count), bytes_at(address_b, 4 * count)
    width_a, width_b = orders[at.WIDTH_A], orders[at.WIDTH_B]
    kind_a, kind_b = orders[at.KIND_A], orders[at.KIND_B]
    tick(clock, at.T_REST)
    done = 0
    while done < count:
        n = min(BLOCK - (position + done) % BLOCK, count - done)
        a, b = floats[0, :n], floats[1, :n]
        if kind_a == F32:
            a = raw_a[4 * done : 4 * (done + n)].view(np.float32)
        else:
            load_narrow(raw_a, kind_a, table_a, done, n, a)
        if kind_b == F32:
            b = raw_b[4 * done : 4 * (done + n)].view(np.float32)
        else:
            load_narrow(raw_b, kind_b, table_b, done, n, b)
        found_a, found_b = narrow.scan(a, n), narrow.scan(b, n)
        whole = (
            found_a[0] > _MINUS
            and found_a[1] < _PLUS
            and found_b[0] > _MINUS
            and found_b[1] < _PLUS
        )
        tick(clock, at.T_LOAD)
        ahead_a, ahead_b = address_a + width_a * (done + n), address_b + width_b * (done + n)
        prefetch(ahead_a, width_a * BLOCK // 2)
        own_a, own_b, n_a, n_b, m = a, b, n, n, n
        if not whole:
            own_a, own_b = floats[2, :n], floats[3, :n]
            both_a, both_b = floats[0, :n], floats[1, :n]
            n_a, n_b, m = sieve(a, b, n, own_a, own_b, both_a, both_b, where, counts)
            a, b = both_a, both_b
            found_a, found_b = narrow.scan(own_a, n_a), narrow.scan(own_b, n_b)
        guess_a = guess_b = 0.0
        if n_a:
            guess_a = _side(
                own_a,
                n_a,
                found_a,
                0,
                tops[0],
                planes[0],
                marks,
                carry,
                terms,
                orders,
                counts,
                extremes,
                cell,
                clock,
            )
        prefetch(ahead_a + width_a * BLOCK // 2, width_a * BLOCK // 2)
        if n_b:
            guess_b = _side(
                own_b,
                n_b,
                found_b,
                1,
                tops[1],
                planes[1],
                marks,
                carry,
                terms,
                orders,
                counts,
                extremes,
                cell,
                clock,
            )
        own_guess_a, own_guess_b = guess_a, guess_b
        part[:] = 0.0
        prefetch(ahead_b, width_b * BLOCK // 2)
        if m:
            tiny = found_a[2] < NORMAL - ONE
            if not whole:  # values that the other side lacks say nothing of the mean
                guess_a, guess_b = _mean(a, m), _mean(b, m)
            _pair(
                a, b, m, guess_a, guess_b, tiny, position + done, where, whole, e, ulps, marks,
                carry, joint, planes[2], terms, orders, counts, extremes, part, clock,
            )  # fmt: skip
        if whole:
            part[at.OWN_A], part[at.OWN_A + 1], part[at.OWN_A + 2] = part[0], part[1], part[2]
            part[at.OWN_B], part[at.OWN_B + 1], part[at.OWN_B + 2] = part[0], part[3], part[4]
        else:
            if n_a:
                _own_moments(own_a, n_a, own_guess_a, at.OWN_A, part)
            if n_b:
                _own_moments(own_b, n_b, own_guess_b, at.OWN_B, part)
            _spread(a, e, where, m, n)
        prefetch(ahead_b + width_b * BLOCK // 2, width_b * BLOCK // 2)
        tick(clock, at.T_REST)
        merge_sums(sums, part)
        tick(clock, at.T_MERGE)
        add_axes(a, e, e, n, position + done, shape, offsets, where, profile)
        tick(clock, at.T_AXES)
        done += n
