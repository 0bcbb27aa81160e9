"""Where along each axis the error lies: energies of a block, added to profiles of its segment."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine.jit import float_of_bits, inlined, summing
from metrics.engine.loading import Floats, Ints


@summing
def _kept(values: Any, count: int, energies: Floats) -> float:
    """Add the squares of a piece of a row to the profile of its axis; their sum."""
    total = 0.0
    for i in range(count):
        x = np.float64(values[i])
        energies[i] += x * x
        total += x * x
    return total


@inlined
def _peaks(m: Floats, count: int, peaks: Floats) -> None:
    for i in range(count):
        peak = abs(m[i])
        peaks[i] = peak if peak > peaks[i] else peaks[i]


@summing
def _unkept(a: Any, e: Floats, count: int) -> tuple[float, float]:
    total_e = total_a = 0.0
    for i in range(count):
        x, z = np.float64(a[i]), e[i]
        total_e += z * z
        total_a += x * x
    return total_e, total_a


@inlined
def _peak(m: Floats, count: int) -> float:
    words = m.view(np.int64)
    top = np.int64(0)
    for i in range(count):
        magnitude = words[i] & np.int64(0x7FFFFFFFFFFFFFFF)
        top = magnitude if magnitude > top else top
    return float_of_bits(np.uint64(top))


@inlined
def add_axes(
    a: Any,
    e: Floats,
    m: Floats,
    count: int,
    position: int,
    shape: Ints,
    offsets: Ints,
    place: Ints,
    profile: Floats,
) -> None:
    """Fold a block of reference, error and |error| that begins at flat `position`.

    `offsets` tells where in each row of `profile`, (3, n), an axis lies; -1 for one not kept.
    `place` is room for one index an axis.
    """
    rank = shape.size
    if rank == 0:
        return
    rest = position
    for d in range(rank - 1, -1, -1):
        place[d] = rest % shape[d]
        rest //= shape[d]
    last, offset = shape[rank - 1], offsets[rank - 1]
    sq_e, sq_a, peaks = profile[0], profile[1], profile[2]
    done, column = 0, place[rank - 1]
    while done < count:
        take = min(last - column, count - done)
        x, y, z = a[done : done + take], e[done : done + take], m[done : done + take]
        if offset >= 0:
            low, high = offset + column, offset + column + take
            energies = (
                _kept(y, take, sq_e[low:high]),
                _kept(x, take, sq_a[low:high]),
            )
            _peaks(z, take, peaks[low:high])
        else:
            energies = _unkept(x, y, take)
        if rank > 1:
            peak = _peak(z, take)
            step_on(place, offsets, shape, energies[0], energies[1], peak, profile)
        done += take
        column = 0


@inlined
def step_on(
    place: Ints,
    offsets: Ints,
    shape: Ints,
    error: float,
    energy: float,
    peak: float,
    profile: Floats,
) -> None:
    """Add a row to all axes but the last, and step on to the next row."""
    rank = shape.size
    for d in range(rank - 1):
        if offsets[d] >= 0:
            i = offsets[d] + place[d]
            profile[0, i] += error
            profile[1, i] += energy
            profile[2, i] = max(profile[2, i], peak)
    d = rank - 2
    while d >= 0:
        place[d] += 1
        if place[d] < shape[d]:
            return
        place[d] = 0
        d -= 1
