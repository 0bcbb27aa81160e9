"""Arithmetic of tiled storage: the tiles a selection touches, an order that reads each once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from core.runs import Array

Box = tuple[range, ...]  # one range of indices an axis, ascending

_LEAST, _USUAL = 8 << 20, 32 << 20  # bytes of a band: enough to drown the cost of a call, not more
_MOST = 128 << 20  # bytes of a band where a single row of tiles is already larger than usual


def bands(
    shape: tuple[int, ...], tile: tuple[int, ...], itemsize: int, *, wanted: int
) -> Iterator[Box]:
    """Boxes that follow each other in row-major order, cut along rows of tiles.

    They have about `wanted` bytes, between 8 and 32 MiB, if the rows of tiles let them.
    Each tile falls into one band, unless one row of tiles is above 128 MiB: then bands are thinner
    than tiles, and a tile is met once for each band it reaches into.
    """
    if not shape:
        yield ()
        return
    axis, rows = _cut(shape, tile, itemsize, min(max(wanted, _LEAST), _USUAL))
    rest = tuple(range(length) for length in shape[axis + 1 :])
    for lead in np.ndindex(shape[:axis]):
        fixed = tuple(range(i, i + 1) for i in lead)
        for start in range(0, shape[axis], rows):
            yield (*fixed, range(start, min(start + rows, shape[axis])), *rest)


def _cut(
    shape: tuple[int, ...], tile: tuple[int, ...], itemsize: int, usual: int
) -> tuple[int, int]:
    """The axis along which bands are cut, and how many rows each takes."""
    for axis, (length, deep) in enumerate(zip(shape, tile, strict=True)):
        row = max(1, math.prod(shape[axis + 1 :]) * itemsize)
        depth = min(deep, length)
        if row * depth <= _MOST:
            return axis, depth * max(1, usual // (row * depth))
        if depth > 1 and row <= _MOST:
            return axis, _MOST // row
    return len(shape) - 1, max(1, _MOST // itemsize)


def parts(wanted: range, tile: int) -> list[tuple[int, slice, slice]]:
    """For an ascending range over one axis: tile number, where its part goes, where it comes from.

    The first slice counts positions within `wanted`, the second elements within the tile.
    """
    found = []
    at = 0
    while at < len(wanted):
        number = wanted[at] // tile
        end = min(len(wanted), -(-((number + 1) * tile - wanted.start) // wanted.step))
        low = wanted[at] - number * tile
        high = wanted[end - 1] - number * tile + 1
        found.append((number, slice(at, end), slice(low, high, wanted.step)))
        at = end
    return found


def reaching(boxes: Iterator[Box], start: int) -> tuple[Iterator[Box], int]:
    """The boxes that reach beyond flat element `start`, and how much of the first lies before."""
    for box in boxes:
        count = math.prod(map(len, box))
        if start < count:
            return itertools.chain([box], boxes), start
        start -= count
    return iter(()), 0


def skipped(blocks: Iterator[Array], count: int) -> Iterator[Array]:
    """Flat blocks without the first `count` elements."""
    for block in blocks:
        if count < block.size:
            yield block[count:]
        count = max(0, count - block.size)


def restretched(blocks: Iterator[Array], elements: int) -> Iterator[Array]:
    """Flat blocks of any length as stretches of exactly `elements`, the last one shorter."""
    held: list[Array] = []
    count = 0
    for block in blocks:
        held.append(block)
        count += block.size
        if count < elements:
            continue
        flat = held[0] if len(held) == 1 else np.concatenate(held)
        whole = count - count % elements
        yield from (flat[i : i + elements] for i in range(0, whole, elements))
        held, count = [flat[whole:]], count - whole
    if count:
        yield held[0] if len(held) == 1 else np.concatenate(held)
