"""A rectangle of a pair reduced to blocks, each with what its elements hold and lose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.elementwise import difference, float_values, ulps_apart
from analysis.views_cut import Grid
from metrics.decoding import is_integer
from metrics.engine import blocks as engine
from metrics.engine.plan import storage_of
from metrics.formats import FORMATS

Array = NDArray[Any]
Image = NDArray[np.float32]
Flags = NDArray[np.uint8]

REFERENCE_NONFINITE, CANDIDATE_NONFINITE, UNSHARED_NONFINITE, ABSENT = 1, 2, 4, 8
_SAFE_SCALE = 2.0**-64  # of float64 values while they are summed; the picture is float32


@dataclass(frozen=True, slots=True)
class Images:
    """One part of a pair, reduced; every array is (height, width).

    `reference` and `candidate` are means of the finite values of a block, `error` its signed
    (candidate - reference) of largest magnitude, `relative` the largest |error| per
    max(|reference|, |candidate|, 1 % of the tensor's RMS), `ulps` the largest distance in units in
    the last place of the coarser format. NaN where a block holds nothing finite. `flags` are bits:
    a non-finite value of the reference, of the candidate, one that the sides do not share, no
    element at all.
    """

    reference: Image
    candidate: Image
    error: Image
    relative: Image
    ulps: Image
    flags: Flags

    def turned(self) -> Images:
        """Rows and columns exchanged."""
        return Images(**{n: np.ascontiguousarray(getattr(self, n).T) for n in NAMES})


NAMES = ("reference", "candidate", "error", "relative", "ulps", "flags")


@dataclass(slots=True)
class Blocks:
    """The blocks of a grid while pieces of it are added.

    `floor` is the smallest divisor of a relative error. Sums are of values times `scale`; `count`
    (down, across) is the number of elements added, `odd` (2, down, across) of those not finite on
    each side, `unshared` (down, across) of those that the sides do not share.
    """

    grid: Grid
    dtype: str
    floor: float
    scale: float = 1.0
    complex: bool = False
    cells: Array = field(init=False)
    count: Array = field(init=False)
    odd: Array = field(init=False)
    flags: Flags = field(init=False)
    unshared: Array = field(init=False)

    def __post_init__(self) -> None:
        shape = self.grid.blocks
        self.cells = np.zeros((engine.CELLS, *shape))
        self.cells[engine.HIGH], self.cells[engine.LOW] = -np.inf, np.inf
        self.count = np.zeros(shape, np.int64)
        self.odd = np.zeros((2, *shape), np.int64)
        self.flags = np.zeros(shape, np.uint8)
        self.unshared = np.zeros(shape, np.int64)

    def add(self, a: Array, b: Array, top: int, left: int) -> None:
        """A piece of both sides, (rows, columns), that begins at an element of the grid."""
        if not a.size:
            return
        self._count(a.shape, top, left)
        self.complex |= bool(np.iscomplexobj(a) or np.iscomplexobj(b))
        if self.complex:
            self._add_given(a, b, top, left)
        else:
            self._add_stored(np.ascontiguousarray(a), np.ascontiguousarray(b), top, left)

    def images(self) -> Images:
        """What the blocks look like; a block without elements is marked absent."""
        flags = self.flags | np.where(self.count == 0, ABSENT, 0).astype(np.uint8)
        means = [
            np.where(n > 0, self.cells[k] / np.maximum(n, 1) / self.scale, np.nan)
            for k, n in ((engine.SUM_A, self.count - self.odd[0]),
                         (engine.SUM_B, self.count - self.odd[1]))
        ]  # fmt: skip
        high, low = self.cells[engine.HIGH], self.cells[engine.LOW]
        none = np.isneginf(high)
        error = np.where(none, np.nan, np.where(high >= -low, high, low))
        relative = np.where(none, np.nan, self.cells[engine.RELATIVE])
        known = FORMATS.get(self.dtype) is not None
        ulps = np.where(none | (not known), np.nan, self.cells[engine.ULPS])
        a, b = (single(side) for side in means)
        return Images(a, b, single(error), single(relative), single(ulps), flags)

    def _count(self, shape: tuple[int, ...], top: int, left: int) -> None:
        down, across = (
            np.bincount((start + np.arange(n)) // size, minlength=blocks)
            for start, n, size, blocks in zip(
                (top, left), shape, self.grid.block, self.grid.blocks, strict=True
            )
        )
        self.count += down[:, None] * across

    def _add_stored(self, a: Array, b: Array, top: int, left: int) -> None:
        sides = storage_of(a.dtype), storage_of(b.dtype)
        if "float64" in (a.dtype.name, b.dtype.name) and self.scale != _SAFE_SCALE:
            self.cells[: engine.SUM_B + 1] *= _SAFE_SCALE / self.scale
            self.scale = _SAFE_SCALE
        orders = self._orders(a.shape, top, left, self._ulp_form(a, b))
        orders[engine.KIND_A], orders[engine.KIND_B] = sides[0].kind, sides[1].kind
        engine.reduce_stored(
            a.ctypes.data, b.ctypes.data, sides[0].table, sides[1].table, orders,
            self.floor, self.scale, self.cells, self.odd, self.unshared, self.flags,
        )  # fmt: skip

    def _add_given(self, a: Array, b: Array, top: int, left: int) -> None:
        ulps = np.nan_to_num(ulps_apart(a, b, self.dtype)).astype(np.uint64)
        orders = self._orders(a.shape, top, left, engine.NO_ULPS)
        engine.reduce_given(
            float_values(a), float_values(b), difference(a, b), ulps, orders,
            self.floor, self.scale, self.cells, self.odd, self.unshared, self.flags,
        )  # fmt: skip

    def _ulp_form(self, a: Array, b: Array) -> int:
        known = FORMATS.get(self.dtype)
        if is_integer(a) and is_integer(b):
            return engine.INTEGER_ULPS
        if known is None:
            return engine.NO_ULPS
        return engine.NUMBER_ULPS if known.kind in ("int", "bool") else engine.FLOAT_ULPS

    def _orders(self, shape: tuple[int, ...], top: int, left: int, form: int) -> Array:
        orders = np.zeros(engine.ORDERS, np.int64)
        orders[[engine.ROWS, engine.COLUMNS, engine.DOWN, engine.ACROSS]] = (
            *shape, *self.grid.block,
        )  # fmt: skip
        orders[engine.TOP], orders[engine.LEFT], orders[engine.ULP_FORM] = top, left, form
        known = FORMATS.get(self.dtype)
        if known is not None:
            orders[engine.PRECISION] = known.precision
            orders[engine.MIN_EXPONENT] = known.min_exponent
        return orders


def joined(
    blocks: Blocks, rows: slice, columns: slice, grid: Grid, times: tuple[int, int]
) -> Blocks:
    """A window of small blocks put together, `times` down and across, to those of another grid."""
    made = Blocks(grid, blocks.dtype, blocks.floor, blocks.scale, blocks.complex)
    at = (..., rows, columns)
    add: Callable[[Array], Array] = lambda v: _folded(v, times, np.add)  # noqa: E731
    made.cells = np.stack([
        _folded(blocks.cells[(k, rows, columns)], times, how)
        for k, how in enumerate(_JOINING)
    ])  # fmt: skip
    made.count, made.odd = add(blocks.count[at]), add(blocks.odd[at])
    made.unshared = add(blocks.unshared[at])
    made.flags = _folded(blocks.flags[at], times, np.bitwise_or)
    return made


_JOINING = (np.add, np.add, np.maximum, np.minimum, np.maximum, np.maximum)


def _folded(values: Array, times: tuple[int, int], how: np.ufunc) -> Array:
    for axis, size in zip((-2, -1), times, strict=True):
        if size > 1:
            values = how.reduceat(values, np.arange(0, values.shape[axis], size), axis=axis)
    return values


def single(values: Array) -> Image:
    """As float32, which the browser draws; finite values beyond its range become its largest."""
    largest = np.finfo(np.float32).max
    clipped = np.where(np.isfinite(values), np.clip(values, -largest, largest), values)
    return clipped.astype(np.float32)
