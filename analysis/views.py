"""Reductions for the screen: part of a pair as images no larger than the screen can show.

Values are reduced by the mean of a block, errors by its largest magnitude, so that one bad element
shows at any reduction. Blocks are equal in size but for the last of a row or column. Memory is
bounded by a band of rows, whatever the tensor's size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.elementwise import difference, float_values, ulps_apart
from analysis.selection import Part, parse
from analysis.views_blocks import extreme, holds, mean, peak, single
from core.errors import NotHereError
from core.runs import Run
from language import say

Image = NDArray[np.float32]
Flags = NDArray[np.uint8]
Array = NDArray[Any]

HEIGHT, WIDTH = 256, 512
BAND = 1 << 17  # elements of each side held at once: a dozen float64 arrays of it stay in cache
REFERENCE_NONFINITE, CANDIDATE_NONFINITE, UNSHARED_NONFINITE, ABSENT = 1, 2, 4, 8
ROBUST = (0.5, 99.5)  # percent


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


@dataclass(frozen=True, slots=True)
class SliceView:
    """What the slice canvases draw. `rows` and `columns` count elements, `block` those of a pixel.

    `wrapped` says that a vector of `elements` was folded into rows. `limits` are robust (0.5 to
    99.5 %) and shared by both sides, `error_limit` is the 99.5 % of |error| among the pixels.
    `worst` is the place (row, column) of the largest error, non-finite mismatches first.
    """

    images: Images
    rows: int
    columns: int
    block: tuple[int, int]
    elements: int
    wrapped: bool
    complex: bool
    limits: tuple[float, float]
    error_limit: float
    nonfinite: tuple[int, int, int]  # in the reference, in the candidate, not shared
    worst: tuple[int, int] | None


def slice_view(
    reference: Run,
    candidate: Run,
    *,
    reference_id: str,
    candidate_id: str,
    selection: str,
    dtype: str,
    rms: float,
    height: int = HEIGHT,
    width: int = WIDTH,
) -> SliceView:
    """The selected part of a pair, at most `height` x `width` pixels.

    `dtype` is the format that counts ulps, `rms` the reference tensor's root mean square.
    """
    shapes = reference[reference_id].shape, candidate[candidate_id].shape
    if shapes[0] != shapes[1]:
        raise NotHereError(
            say(
                "{reference_id} has no common slice: {shapes} against {shapes2}.",
                reference_id=reference_id,
                shapes=shapes[0],
                shapes2=shapes[1],
            ),
            say("Compare dumps of the same configuration."),
        )
    part = parse(selection, shapes[0])
    grid = _grid(part, shapes[0], height, width)
    canvas = _Canvas(grid, dtype=dtype, floor=0.01 * rms if math.isfinite(rms) else 0.0)
    for tile in _tiles(grid):
        where = _selection(part, grid, tile)
        canvas.paint(
            tile,
            *(
                _as_rows(run.read(name, where), part, tile)
                for run, name in ((reference, reference_id), (candidate, candidate_id))
            ),
        )
    return SliceView(
        images=canvas.images,
        rows=grid.rows,
        columns=grid.columns,
        block=grid.block,
        elements=grid.elements,
        wrapped=grid.wrapped,
        complex=canvas.complex,
        limits=_limits(canvas.images),
        error_limit=_error_limit(canvas.images.error),
        nonfinite=(canvas.odd_reference, canvas.odd_candidate, canvas.odd_unshared),
        worst=canvas.worst,
    )


@dataclass(frozen=True, slots=True)
class _Grid:
    rows: int
    columns: int
    elements: int
    block: tuple[int, int]
    wrapped: bool

    @property
    def pixels(self) -> tuple[int, int]:
        down, across = self.block
        return -(-self.rows // down), -(-self.columns // across)


@dataclass(frozen=True, slots=True)
class _Tile:
    """Whole pixels of the grid, in elements."""

    top: int
    bottom: int
    left: int
    right: int


def folded(length: int) -> int:
    """Columns of the rows that a vector of this length is folded into.

    A power of two that makes the picture wider than high; a short vector stays one row.
    """
    return length if length <= 16 else 2 ** math.ceil(math.log2(math.sqrt(2 * length)))


def _grid(part: Part, shape: tuple[int, ...], height: int, width: int) -> _Grid:
    across = part.across.length if part.across else 1
    columns = folded(across) if part.down is None else across
    rows = part.down.length if part.down else -(-across // columns) if columns else 0
    elements = 0 if 0 in shape else across if part.down is None else rows * columns
    block = max(1, -(-rows // height)), max(1, -(-columns // width))
    return _Grid(rows, columns, elements, block, part.down is None and rows > 1)


def _tiles(grid: _Grid) -> Iterator[_Tile]:
    if not grid.elements:
        return
    down, across = grid.block
    wide = min(grid.columns, across * max(1, BAND // (down * across)))
    high = down * max(1, BAND // (down * wide))
    for top in range(0, grid.rows, high):
        for left in range(0, grid.columns, wide):
            yield _Tile(top, min(top + high, grid.rows), left, min(left + wide, grid.columns))


def _selection(part: Part, grid: _Grid, tile: _Tile) -> tuple[int | slice, ...]:
    items = list(part.selection)
    if part.across is None:
        return tuple(items)
    start = part.across.start
    if part.down is None:  # a folded vector: tiles are whole rows
        stop = min(start + tile.bottom * grid.columns, part.across.stop)
        items[part.across.axis] = slice(start + tile.top * grid.columns, stop)
        return tuple(items)
    items[part.across.axis] = slice(start + tile.left, start + tile.right)
    start = part.down.start
    items[part.down.axis] = slice(start + tile.top, start + tile.bottom)
    return tuple(items)


def _as_rows(values: Array, part: Part, tile: _Tile) -> Array:
    """(rows, columns) of a tile; the last row of a folded vector is padded with zeros."""
    if part.down is not None:
        return values.T if part.transposed else values
    shape = tile.bottom - tile.top, tile.right - tile.left
    flat = np.zeros(math.prod(shape), values.dtype)
    flat[: values.size] = values.reshape(-1)
    return flat.reshape(shape)


class _Canvas:
    """The images while tiles are painted, and the counts over all of them."""

    def __init__(self, grid: _Grid, *, dtype: str, floor: float) -> None:
        a, b, error, relative, ulps = np.full((5, *grid.pixels), np.nan, np.float32)
        absent = np.full(grid.pixels, ABSENT, np.uint8)
        self.images = Images(a, b, error, relative, ulps, absent)
        self.odd_reference = self.odd_candidate = self.odd_unshared = 0
        self.complex = False
        self.worst: tuple[int, int] | None = None
        self._largest = 0.0
        self._grid, self._dtype, self._floor = grid, dtype, floor

    def paint(self, tile: _Tile, raw_a: Array, raw_b: Array) -> None:
        """Reduces one tile of both sides into its pixels."""
        a, b, error = float_values(raw_a), float_values(raw_b), difference(raw_a, raw_b)
        absent = self._absent(tile)
        odd_a, odd_b = ~np.isfinite(a) & ~absent, ~np.isfinite(b) & ~absent
        unshared = (odd_a | odd_b) & ~((a == b) | (np.isnan(a) & np.isnan(b)))
        odd = odd_a | odd_b | absent
        self.complex |= bool(np.iscomplexobj(raw_a) or np.iscomplexobj(raw_b))
        self.odd_reference += int(odd_a.sum())
        self.odd_candidate += int(odd_b.sum())
        self.odd_unshared += int(unshared.sum())
        self._note_worst(np.where(unshared, np.inf, np.where(odd, 0.0, np.abs(error))), tile)
        ulps = ulps_apart(raw_a, raw_b, self._dtype)
        block, images, at = self._grid.block, self.images, self._pixels(tile)
        images.reference[at] = single(mean(a, odd_a | absent, block))
        images.candidate[at] = single(mean(b, odd_b | absent, block))
        images.error[at] = single(extreme(error, odd, block))
        images.relative[at] = single(peak(_relative(a, b, error, self._floor), odd, block))
        images.ulps[at] = single(peak(ulps, odd, block))
        images.flags[at] = _flags((odd_a, odd_b, unshared, absent), block)

    def _absent(self, tile: _Tile) -> Array:
        """Where a tile reaches beyond the last element of a folded vector."""
        rows, columns = np.ogrid[tile.top : tile.bottom, tile.left : tile.right]
        return np.asarray(rows * self._grid.columns + columns >= self._grid.elements)

    def _pixels(self, tile: _Tile) -> tuple[slice, slice]:
        down, across = self._grid.block
        top, left = tile.top // down, tile.left // across
        return slice(top, -(-tile.bottom // down)), slice(left, -(-tile.right // across))

    def _note_worst(self, size: Array, tile: _Tile) -> None:
        at = int(size.argmax())
        if size.flat[at] > self._largest:
            self._largest = float(size.flat[at])
            row, column = divmod(at, size.shape[1])
            self.worst = tile.top + row, tile.left + column


def _relative(a: Array, b: Array, error: Array, floor: float) -> Array:
    with np.errstate(all="ignore"):
        scale = np.maximum(np.maximum(np.abs(a), np.abs(b)), floor)
        return np.where(error == 0, 0.0, np.abs(error) / scale)


def _flags(masks: tuple[Array, Array, Array, Array], block: tuple[int, int]) -> Flags:
    *odd, absent = masks
    flags = np.where(holds(~absent, block), 0, ABSENT).astype(np.uint8)
    bits = (REFERENCE_NONFINITE, CANDIDATE_NONFINITE, UNSHARED_NONFINITE)
    for bit, mask in zip(bits, odd, strict=True):
        flags |= np.where(holds(mask, block), bit, 0).astype(np.uint8)
    return flags


def _limits(images: Images) -> tuple[float, float]:
    both = np.concatenate([images.reference.ravel(), images.candidate.ravel()])
    finite = both[np.isfinite(both)]
    if not finite.size:
        return math.nan, math.nan
    low, high = np.percentile(finite.astype(np.float64), ROBUST)
    return float(low), float(high)


def _error_limit(error: Image) -> float:
    size = np.abs(error[np.isfinite(error)]).astype(np.float64)
    if not size.size or not size.max():
        return 0.0
    limit = float(np.percentile(size, ROBUST[1]))
    return limit or float(size.max())
