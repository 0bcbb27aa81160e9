"""Sums of one block of a pair that fits float32, and the profiles of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine import layout as at
from metrics.engine import narrow_lanes as lanes
from metrics.engine.axes import add_axes, step_on
from metrics.engine.jit import bits_of_float, inlined
from metrics.engine.loading import Floats, Floats32, Ints
from metrics.engine.narrow import Words

SHORT_ROW = 48  # below, sums row by row cost more than a pass of their own
_KEPT = 0.25  # share of the squares that deviations from the mean must be


@inlined
def sweep_block(
    a: Floats32,
    b: Floats32,
    count: int,
    position: int,
    shape: Ints,
    offsets: Ints,
    place: Ints,
    profile: Floats,
    terms: Floats,
    keys: Words,
    swept: Any,
    e: Floats,
) -> int:
    """Fill `swept[0]` with the sums of a block that begins at flat `position`, and `keys`.

    Rows are added to `profile` as in `axes.add_axes`. Elements out of tolerance.
    """
    totals, row = swept[0], swept[1]
    rank = shape.size
    if rank == 0 or (rank == 1 and offsets[0] < 0):
        return lanes.sweep(a, b, terms, keys, totals, count)
    if shape[rank - 1] < SHORT_ROW:
        for i in range(count):
            e[i] = np.float64(b[i]) - np.float64(a[i])
        add_axes(a, e, e, count, position, shape, offsets, place, profile)
        return lanes.sweep(a, b, terms, keys, totals, count)
    rest = position
    for d in range(rank - 1, -1, -1):
        place[d] = rest % shape[d]
        rest //= shape[d]
    totals[:] = 0.0
    last, offset = shape[rank - 1], offsets[rank - 1]
    done, column, outside = 0, place[rank - 1], 0
    while done < count:
        take = min(last - column, count - done)
        x, y, z = a[done : done + take], b[done : done + take], keys[done : done + take]
        if offset >= 0:
            first, end = offset + column, offset + column + take
            of_errors, of_references = profile[0, first:end], profile[1, first:end]
            peaks = profile[2, first:end]
            outside += lanes.sweep_row(x, y, terms, z, row, of_errors, of_references, peaks, take)
        else:
            outside += lanes.sweep(x, y, terms, z, row, take)
        for k in range(lanes.S_PEAK):
            totals[k] += row[k]
        totals[lanes.S_PEAK] = max(totals[lanes.S_PEAK], row[lanes.S_PEAK])
        if rank > 1:
            energies = row[lanes.S_EE], row[lanes.S_AA]
            step_on(place, offsets, shape, energies[0], energies[1], row[lanes.S_PEAK], profile)
        done += take
        column = 0
    return outside


@inlined
def moments(
    a: Floats32, b: Floats32, count: int, totals: Floats, row: Floats, part: Floats
) -> None:
    """Means, squared deviations and products from the sums of a block.

    Where a mean outweighs the spread, or one side's squares cancel in the other's, deviations are
    summed up in a pass of their own.
    """
    n = float(count)
    aa, ee, ae = totals[lanes.S_AA], totals[lanes.S_EE], totals[lanes.S_AE]
    mean_a, mean_e = totals[lanes.S_A] / n, totals[lanes.S_E] / n
    m_a, m_e = aa - n * mean_a * mean_a, ee - n * mean_e * mean_e
    co_e = ae - n * mean_a * mean_e
    m_b = m_a + 2 * co_e + m_e
    bb = aa + 2 * ae + ee
    safe = m_a >= _KEPT * aa and m_e >= _KEPT * ee
    if not (safe and m_b >= _KEPT * (m_a + m_e) and bb >= _KEPT * (aa + ee)):
        _centred_moments(a, b, count, totals, row, part)
        return
    part[at.N] = n
    part[at.MEAN_A], part[at.M2_A] = mean_a, m_a
    part[at.MEAN_B], part[at.M2_B] = mean_a + mean_e, m_b
    part[at.MEAN_E], part[at.M2_E] = mean_e, m_e
    part[at.CO_B], part[at.CO_E] = m_a + co_e, co_e
    part[at.DOT_B], part[at.DOT_E] = aa + ae, ae
    part[at.ABS_A], part[at.ABS_E] = totals[lanes.S_ABS_A], totals[lanes.S_ABS_E]


@inlined
def _centred_moments(
    a: Floats32, b: Floats32, count: int, totals: Floats, row: Floats, part: Floats
) -> None:
    n = float(count)
    mean = totals[lanes.S_A] / n
    at_a, at_b = _middle(a, count, mean), _middle(b, count, mean + totals[lanes.S_E] / n)
    at_e = at_b - at_a
    row[0], row[1], row[2] = at_a, at_b, at_e
    lanes.sweep_centred(a, b, row, count)
    ra, rb, re = row[lanes.C_A] / n, row[lanes.C_B] / n, row[lanes.C_E] / n
    part[at.N] = n
    part[at.MEAN_A], part[at.M2_A] = at_a + ra, max(row[lanes.C_AA] - n * ra * ra, 0.0)
    part[at.MEAN_B], part[at.M2_B] = at_b + rb, max(row[lanes.C_BB] - n * rb * rb, 0.0)
    part[at.MEAN_E], part[at.M2_E] = at_e + re, max(row[lanes.C_EE] - n * re * re, 0.0)
    part[at.CO_B] = row[lanes.C_AB] - n * ra * rb
    part[at.CO_E] = row[lanes.C_AE] - n * ra * re
    part[at.DOT_B] = part[at.CO_B] + n * part[at.MEAN_A] * part[at.MEAN_B]
    part[at.DOT_E] = part[at.CO_E] + n * part[at.MEAN_A] * part[at.MEAN_E]
    part[at.ABS_A], part[at.ABS_E] = totals[lanes.S_ABS_A], totals[lanes.S_ABS_E]


@inlined
def _middle(values: Floats32, count: int, mean: float) -> float:
    """The mean, but the value itself if it is the only one."""
    i = 1
    while i < count and values[i] == values[0]:
        i += 1
    return np.float64(values[0]) if i == count else mean


@inlined
def own_moments(values: Floats32, count: int, own: int, part: Floats) -> None:
    """Those of one side's finite values where the other side has others."""
    total = squares = 0.0
    for i in range(count):
        total += np.float64(values[i])
    guess = _middle(values, count, total / count)
    total = 0.0
    for i in range(count):
        d = np.float64(values[i]) - guess
        total += d
        squares += d * d
    rest = total / count
    part[own], part[own + 1] = count, guess + rest
    part[own + 2] = max(squares - total * rest, 0.0)
    part[own + 3] = 0.0


@inlined
def keep_worst(
    a: Floats32,
    b: Floats32,
    worst: float,
    position: int,
    where: Ints,
    whole: bool,
    counts: Ints,
    extremes: Floats,
) -> None:
    """The first element of the largest error, if it is larger than any before."""
    if worst <= extremes[at.WORST]:
        return
    i = 0
    while abs(np.float64(b[i]) - np.float64(a[i])) != worst:
        i += 1
    extremes[at.WORST], extremes[at.WORST_A], extremes[at.WORST_B] = worst, a[i], b[i]
    counts[at.WORST_AT] = position + (i if whole else where[i])
    column = (np.int64(bits_of_float(np.float64(worst))) >> 52) - lanes.JOINT_FIRST
    counts[at.SEEN_E + 1] = max(counts[at.SEEN_E + 1], column)
