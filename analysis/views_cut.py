"""How a part of a tensor is cut into blocks, and in which pieces it is read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from analysis.selection import Part, Window

DIRECT = 1 << 24  # elements of a part that are read while a page waits; more are read beforehand
BAND = 1 << 21  # elements of each side held at once
_KEPT_BLOCKS = 1 << 21  # of a part that was read beforehand, at most
_LEAST = 128  # elements of such a block


@dataclass(frozen=True, slots=True)
class Grid:
    """A part as rows and columns of elements in storage order, in blocks of `down` x `across`.

    `flipped`: the part shows the later axis downwards, so a picture is the transpose. `wrapped`: a
    vector of `elements` was folded into rows; the last one may be shorter.
    """

    rows: int
    columns: int
    elements: int
    block: tuple[int, int]
    flipped: bool = False
    wrapped: bool = False

    @property
    def blocks(self) -> tuple[int, int]:
        """Blocks down and across."""
        down, across = self.block
        return -(-self.rows // down), -(-self.columns // across)


@dataclass(frozen=True, slots=True)
class Tile:
    """A rectangle of elements; its left edge is that of a block."""

    top: int
    bottom: int
    left: int
    right: int


def sides_of(part: Part) -> tuple[int, int]:
    """Rows and columns of a part in storage order; a vector is one row."""
    across = part.across.length if part.across else 1
    down = part.down.length if part.down else 1
    return (across, down) if part.transposed else (down, across)


def elements_of(part: Part) -> int:
    """Number of elements of a part."""
    return math.prod(sides_of(part))


def folded(length: int) -> int:
    """Columns of the rows that a vector of this length is folded into.

    A power of two that makes the picture wider than high; a short vector stays one row.
    """
    return length if length <= 16 else 2 ** math.ceil(math.log2(math.sqrt(2 * length)))


def picture(part: Part, height: int, width: int, *, unit: tuple[int, int] = (1, 1)) -> Grid:
    """The grid of a picture of at most `height` x `width` blocks, each of whole units.

    A unit is (down, across) in storage order; of a vector only the second counts.
    """
    rows, columns = sides_of(part)
    elements = rows * columns
    wrapped = part.down is None and columns > 16
    if wrapped:
        columns = folded(elements)
        rows = -(-elements // columns)
    sizes = (width, height) if part.transposed else (height, width)
    down, across = (
        max(1, math.ceil(math.ceil(n / most) / step)) * step
        for n, most, step in zip(
            (rows, columns), sizes, (1, unit[1]) if wrapped else unit, strict=True
        )
    )
    return Grid(rows, columns, elements, (down, across), part.transposed, wrapped and rows > 1)


def kept(part: Part, height: int, width: int) -> Grid:
    """The grid of what is kept of a whole part: small blocks, of which any picture is made.

    Sizes are powers of two, in the proportions of a picture of the whole; a vector is one row.
    """
    rows, columns = sides_of(part)
    elements = rows * columns
    size = max(_LEAST, 2 ** math.ceil(math.log2(max(1, elements / _KEPT_BLOCKS))))
    high, wide = (width, height) if part.transposed else (height, width)
    slender = (rows / high) / (columns / wide) if elements else 1.0
    down = 2 ** round(math.log2(max(1.0, math.sqrt(size * slender))))
    down = min(down, size, 2 ** int(math.log2(max(1, rows))))
    return Grid(rows, columns, elements, (down, size // down), part.transposed)


def widened(part: Part, shape: tuple[int, ...], height: int, width: int) -> Part:
    """A part too large to be read at once, its windows widened to whole kept blocks."""
    if elements_of(part) <= DIRECT or part.across is None:
        return part
    down, across = kept(whole(part, shape), height, width).block
    sizes = (across, down) if part.transposed else (down, across)
    windows = [
        None if w is None else _to_blocks(w, size, shape[w.axis])
        for w, size in zip((part.down, part.across), sizes, strict=True)
    ]
    return Part(part.fixed, windows[0], windows[1])


def whole(part: Part, shape: tuple[int, ...]) -> Part:
    """The part with its windows open."""
    down, across = (
        None if w is None else Window(w.axis, 0, shape[w.axis]) for w in (part.down, part.across)
    )
    return Part(part.fixed, down, across)


def tiles(grid: Grid) -> Iterator[Tile]:
    """Pieces of bounded size that cover a grid, whole blocks each where that is possible."""
    if not grid.elements:
        return
    down, across = grid.block
    wide = min(grid.columns, across * max(1, BAND // (down * across)))
    high = max(1, BAND // wide)
    high = high // down * down or high
    for top in range(0, grid.rows, high):
        for left in range(0, grid.columns, wide):
            yield Tile(top, min(top + high, grid.rows), left, min(left + wide, grid.columns))


def thin_tiles(grid: Grid) -> Iterator[Tile]:
    """The middle row of every row of blocks."""
    down = grid.block[0]
    for top in range(0, grid.rows, down):
        row = (top + min(top + down, grid.rows)) // 2
        yield Tile(row, row + 1, 0, grid.columns)


def selection(part: Part, grid: Grid, tile: Tile) -> tuple[int | slice, ...]:
    """What `Run.read` is asked for a tile."""
    items = list(part.selection)
    if part.across is None:
        return tuple(items)
    if part.down is None:
        start = part.across.start
        first, last = tile.top * grid.columns + tile.left, (tile.bottom - 1) * grid.columns
        stop = min(start + last + tile.right, part.across.stop)
        items[part.across.axis] = slice(start + first, stop)
        return tuple(items)
    first_axis, second_axis = sorted((part.down, part.across), key=lambda w: w.axis)
    items[first_axis.axis] = slice(first_axis.start + tile.top, first_axis.start + tile.bottom)
    items[second_axis.axis] = slice(second_axis.start + tile.left, second_axis.start + tile.right)
    return tuple(items)


def _to_blocks(window: Window, size: int, length: int) -> Window:
    start = window.start // size * size
    return Window(window.axis, start, min(length, -(-window.stop // size) * size))
