"""Both sides of a rectangle of elements reduced to blocks: sums of values, extremes of errors.

Columns are accumulated over the rows of a block first, element by element, which is what vector
instructions do well; only then are neighbours folded. Everything merges, so a rectangle may come in
pieces and a block in parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.engine.jit import bits_of_float, bytes_at, inlined, kernel
from metrics.engine.loading import U64, Floats, Floats32, Ints, load_wide
from metrics.engine.wide import distances, is_less, ulps_of_numbers

TILE = 2048  # columns at a time: the accumulators of so many stay in cache
NO_ULPS, FLOAT_ULPS, NUMBER_ULPS, INTEGER_ULPS = range(4)
ODD_A, ODD_B, UNSHARED = 1, 2, 4  # flags of a block that holds such an element
# Rows of `cells`: of each block the sums of both sides, extremes of the error, relative and ulps.
SUM_A, SUM_B, HIGH, LOW, RELATIVE, ULPS, CELLS = range(7)
# `orders`: how the rectangle lies and what counts ulps.
KIND_A, KIND_B, ROWS, COLUMNS, DOWN, ACROSS, TOP, LEFT, ULP_FORM, PRECISION, MIN_EXPONENT = range(
    11
)
ORDERS = 11

_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
_FINITE = np.int64(0x7FF0000000000000)
_SHIFT = 2.0**52
_SHIFT_BITS = np.int64(0x4330000000000000)
_TINY = 5e-324

Words = NDArray[np.uint64]
Counts = NDArray[np.int64]


@inlined
def _float_ulps(a: Floats, b: Floats, n: int, precision: int, min_exponent: int, u: Words) -> None:
    """Distances in units of a float format, as `metrics.ulps`, without a branch."""
    if precision >= 53:
        drop, half, first, normal = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    else:
        drop = np.int64(53 - precision)
        half = (np.int64(1) << (drop - 1)) - 1
        first = np.int64(min_exponent + 1022) << (precision - 1)
        normal = np.int64(min_exponent + 1023) << 52
    odd = np.int64(1) if drop else np.int64(0)
    scale = 2.0 ** (precision - 1 - min_exponent) if drop else 0.0
    top = 2.0 ** min(precision + 1, 50)
    for i in range(n):
        m = np.int64(bits_of_float(a[i])) & _MAGNITUDE
        small = np.int64(bits_of_float(min(abs(a[i]) * scale, top) + _SHIFT)) - _SHIFT_BITS
        p = ((m + half + ((m >> drop) & odd)) >> drop) - first if m >= normal else small
        p = -p if a[i] < 0 else p
        m = np.int64(bits_of_float(b[i])) & _MAGNITUDE
        small = np.int64(bits_of_float(min(abs(b[i]) * scale, top) + _SHIFT)) - _SHIFT_BITS
        q = ((m + half + ((m >> drop) & odd)) >> drop) - first if m >= normal else small
        q = -q if b[i] < 0 else q
        u[i] = np.uint64(p) - np.uint64(q) if p > q else np.uint64(q) - np.uint64(p)


@inlined
def _differences(
    a: Floats, b: Floats, ia: Ints, ib: Ints, n: int, orders: Ints, e: Floats, u: Words
) -> None:
    """Error and ulps of each element; what is not finite gives values without meaning."""
    for i in range(n):
        e[i] = b[i] - a[i]
    form = orders[ULP_FORM]
    if form == FLOAT_ULPS:
        _float_ulps(a, b, n, orders[PRECISION], orders[MIN_EXPONENT], u)
    elif form == INTEGER_ULPS:
        distances(ia, ib, orders[KIND_A], orders[KIND_B], n, u)
        for i in range(n):  # exact before it is rounded
            less = is_less(ib[i], ia[i], orders[KIND_B] == U64, orders[KIND_A] == U64)
            e[i] = -np.float64(u[i]) if less else np.float64(u[i])
    elif form == NUMBER_ULPS:
        ulps_of_numbers(a, b, n, u)
    else:
        u[:n] = np.uint64(0)


@inlined
def _are_finite(a: Floats, b: Floats, n: int) -> bool:
    odd = np.int64(0)
    for i in range(n):
        high = (np.int64(bits_of_float(a[i])) & _FINITE) == _FINITE
        low = (np.int64(bits_of_float(b[i])) & _FINITE) == _FINITE
        odd += np.int64(high) | np.int64(low)
    return odd == 0


@inlined
def _add_row(
    a: Floats, b: Floats, e: Floats, u: Words, n: int, floor: float, scale: float, held: Floats,
    ulps: Words,
) -> None:  # fmt: skip
    """A row of finite elements into the accumulators of its columns."""
    sum_a, sum_b, high, low, relative = held[0], held[1], held[2], held[3], held[4]
    for i in range(n):
        x, y, v = a[i], b[i], e[i]
        sum_a[i] += x * scale
        sum_b[i] += y * scale
        high[i] = v if v > high[i] else high[i]
        low[i] = v if v < low[i] else low[i]
        larger = abs(x) if abs(x) > abs(y) else abs(y)
        larger = larger if larger > floor else floor
        r = abs(v) / larger
        relative[i] = r if r > relative[i] else relative[i]
    for i in range(n):
        ulps[i] = u[i] if u[i] > ulps[i] else ulps[i]


@inlined
def _add_odd_row(
    a: Floats, b: Floats, e: Floats, u: Words, n: int, floor: float, scale: float, held: Floats,
    ulps: Words, left: int, across: int, odd: Counts, unshared: Counts, flags: Any,
) -> None:  # fmt: skip
    """The same for a row that holds elements which are not finite; they are marked and counted."""
    for i in range(n):
        x, y = a[i], b[i]
        fine_a, fine_b = np.isfinite(x), np.isfinite(y)
        at = (left + i) // across
        if fine_a:
            held[0, i] += x * scale
        else:
            odd[0, at] += 1
            flags[at] |= np.uint8(ODD_A)
        if fine_b:
            held[1, i] += y * scale
        else:
            odd[1, at] += 1
            flags[at] |= np.uint8(ODD_B)
        if fine_a and fine_b:
            held[2, i] = max(held[2, i], e[i])
            held[3, i] = min(held[3, i], e[i])
            held[4, i] = max(held[4, i], abs(e[i]) / max(abs(x), abs(y), floor))
            ulps[i] = max(ulps[i], u[i])
        elif not (x == y or (np.isnan(x) and np.isnan(y))):
            flags[at] |= np.uint8(UNSHARED)
            unshared[at] += 1


@inlined
def _clear(held: Floats, ulps: Words, n: int) -> None:
    held[0, :n] = 0.0
    held[1, :n] = 0.0
    held[2, :n] = -np.inf
    held[3, :n] = np.inf
    held[4, :n] = 0.0
    ulps[:n] = np.uint64(0)


@inlined
def _fold(held: Floats, ulps: Words, n: int, left: int, across: int, cells: Any) -> None:
    """Columns into the blocks of one row of blocks, `cells` (CELLS, blocks)."""
    for i in range(n):
        at = (left + i) // across
        cells[SUM_A, at] += held[0, i]
        cells[SUM_B, at] += held[1, i]
        cells[HIGH, at] = max(cells[HIGH, at], held[2, i])
        cells[LOW, at] = min(cells[LOW, at], held[3, i])
        cells[RELATIVE, at] = max(cells[RELATIVE, at], held[4, i])
        cells[ULPS, at] = max(cells[ULPS, at], np.float64(ulps[i]))


@kernel
def reduce_stored(
    address_a: int, address_b: int, table_a: Floats32, table_b: Floats32, orders: Ints,
    floor: float, scale: float, cells: Floats, odd: Counts, unshared: Counts, flags: Any,
) -> None:  # fmt: skip
    """A rectangle as stored, row-major, into blocks of `DOWN` x `ACROSS` elements.

    `TOP` and `LEFT` say where it lies among the blocks, in elements. `cells` is (CELLS, down,
    across), `odd` (2, down, across) counts elements of each side that are not finite, `unshared`
    those that the sides do not share; `flags` (down, across). Values are multiplied by `scale`
    before they are summed, so that the ends of float64 do not overflow.
    """
    rows, columns = orders[ROWS], orders[COLUMNS]
    down, across = orders[DOWN], orders[ACROSS]
    raw_a, raw_b = bytes_at(address_a, 8 * rows * columns), bytes_at(address_b, 8 * rows * columns)
    a, b, e = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    ia, ib, u = np.empty(TILE, np.int64), np.empty(TILE, np.int64), np.empty(TILE, np.uint64)
    narrow = np.empty(TILE, np.float32)
    held, ulps = np.empty((5, TILE)), np.empty(TILE, np.uint64)
    floor = max(floor, _TINY)
    for start in range(0, columns, TILE):
        n = min(TILE, columns - start)
        left = orders[LEFT] + start
        _clear(held, ulps, n)
        for row in range(rows):
            at, k = row * columns + start, (orders[TOP] + row) // down
            load_wide(raw_a, orders[KIND_A], table_a, at, n, a, ia, narrow)
            load_wide(raw_b, orders[KIND_B], table_b, at, n, b, ib, narrow)
            _differences(a, b, ia, ib, n, orders, e, u)
            if _are_finite(a, b, n):
                _add_row(a, b, e, u, n, floor, scale, held, ulps)
            else:
                _add_odd_row(
                    a, b, e, u, n, floor, scale, held, ulps, left, across,
                    odd[:, k], unshared[k], flags[k],
                )  # fmt: skip
            if row == rows - 1 or (orders[TOP] + row + 1) // down != k:
                _fold(held, ulps, n, left, across, cells[:, k])
                _clear(held, ulps, n)


@kernel
def reduce_given(
    a: Floats, b: Floats, e: Floats, u: Words, orders: Ints, floor: float, scale: float,
    cells: Floats, odd: Counts, unshared: Counts, flags: Any,
) -> None:  # fmt: skip
    """The same for values, errors and ulps computed elsewhere, each (rows, columns)."""
    held, ulps = np.empty((5, TILE)), np.empty(TILE, np.uint64)
    floor = max(floor, _TINY)
    for start in range(0, orders[COLUMNS], TILE):
        end = min(start + TILE, orders[COLUMNS])
        left, n = orders[LEFT] + start, end - start
        for row in range(orders[ROWS]):
            k = (orders[TOP] + row) // orders[DOWN]
            _clear(held, ulps, n)
            _add_odd_row(
                a[row, start:end], b[row, start:end], e[row, start:end], u[row, start:end], n,
                floor, scale, held, ulps, left, orders[ACROSS], odd[:, k], unshared[k], flags[k],
            )  # fmt: skip
            _fold(held, ulps, n, left, orders[ACROSS], cells[:, k])


def compile_blocks() -> None:
    """Run both kernels once on an element."""
    held = np.zeros((CELLS, 1, 1)), np.zeros((2, 1, 1), np.int64)
    marks = np.zeros((1, 1), np.int64), np.zeros((1, 1), np.uint8)
    orders = np.zeros(ORDERS, np.int64)
    orders[[ROWS, COLUMNS, DOWN, ACROSS]] = 1
    one, table, far = np.ones((1, 1)), np.zeros(256, np.float32), np.zeros((1, 1), np.uint64)
    address = one.ctypes.data
    reduce_stored(address, address, table, table, orders, 1.0, 1.0, *held, *marks)
    reduce_given(one, one, one, far, orders, 1.0, 1.0, *held, *marks)
