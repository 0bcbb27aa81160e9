"""Reductions for the screen: part of a pair as images no larger than the screen can show.

Values are reduced by the mean of a block, errors by its largest magnitude, so that one bad element
shows at any reduction. Blocks are equal in size but for the last of a row or column. Memory is
bounded by a band of rows, whatever the tensor's size. A part of more than `views_cut.DIRECT`
elements is reduced to small blocks once, see `views_kept`.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import views_cut
from analysis.selection import Part, parse
from analysis.views_blocks import (
    ABSENT,
    CANDIDATE_NONFINITE,
    REFERENCE_NONFINITE,
    UNSHARED_NONFINITE,
    Blocks,
    Image,
    Images,
)
from analysis.views_cut import Tile
from analysis.views_elements import severity
from analysis.views_sides import Sides, floor_of
from core.runs import Run

__all__ = [
    "ABSENT", "CANDIDATE_NONFINITE", "HEIGHT", "REFERENCE_NONFINITE", "UNSHARED_NONFINITE", "WIDTH",
    "Images", "SliceView", "seen", "slice_view",
]  # fmt: skip

Array = NDArray[Any]

HEIGHT, WIDTH = 224, 416  # with 21 bytes a pixel below the 2 MB of a message
ROBUST = (0.5, 99.5)  # percent
_GLANCE_S = 0.7  # a first look at a part that is still being read


@dataclass(frozen=True, slots=True)
class SliceView:
    """What the slice canvases draw. `rows` and `columns` count elements, `block` those of a pixel.

    `wrapped` says that a vector of `elements` was folded into rows. `limits` are robust (0.5 to
    99.5 %) and shared by both sides, `error_limit` is the 99.5 % of |error| among the pixels.
    `worst` is the place (row, column) of the largest error, non-finite mismatches first. `seen`
    counts the elements that were looked at: all of them, unless this is a first look.
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
    seen: int

    @property
    def extent(self) -> tuple[float, float]:
        """Smallest and largest pixel of both sides; NaN without a finite one."""
        return _limits(self.images, (0.0, 100.0))


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
    glance: bool = False,
) -> SliceView:
    """The selected part of a pair, at most `height` x `width` pixels.

    `dtype` is the format that counts ulps, `rms` the reference tensor's root mean square. A glance
    looks at one row of elements in each row of pixels, and ends after a second.
    """
    pair = Sides(reference, candidate, reference_id, candidate_id)
    part = parse(selection, pair.shape)
    grid = views_cut.picture(part, height, width)
    blocks = Blocks(grid, dtype, floor_of(rms))
    end = time.monotonic() + _GLANCE_S
    for tile in views_cut.thin_tiles(grid) if glance else views_cut.tiles(grid):
        pair.add(blocks, part, tile)
        if glance and time.monotonic() > end:
            break
    return seen(blocks, pair, part)


def seen(blocks: Blocks, pair: Sides, part: Part) -> SliceView:
    """What the blocks of a part look like."""
    grid, images = blocks.grid, blocks.images()
    worst = _worst(blocks, images, pair, part)
    rows, columns, block = grid.rows, grid.columns, grid.block
    if grid.flipped:
        images, worst = images.turned(), worst and (worst[1], worst[0])
        rows, columns, block = columns, rows, (block[1], block[0])
    odd_a, odd_b = (int(side.sum()) for side in blocks.odd)
    return SliceView(
        images=images,
        rows=rows,
        columns=columns,
        block=block,
        elements=grid.elements,
        wrapped=grid.wrapped,
        complex=blocks.complex,
        limits=_limits(images, ROBUST),
        error_limit=_error_limit(images.error),
        nonfinite=(odd_a, odd_b, int(blocks.unshared.sum())),
        worst=worst,
        seen=int(blocks.count.sum()),
    )


def _worst(blocks: Blocks, images: Images, pair: Sides, part: Part) -> tuple[int, int] | None:
    """Place of the worst element in storage order: read again within the block that holds it."""
    size = np.abs(np.nan_to_num(images.error.astype(np.float64), nan=0.0))
    size = np.where(images.flags & UNSHARED_NONFINITE, np.inf, size)
    if not size.size or not size.max() > 0:
        return None
    grid = blocks.grid
    row, column = (int(i) for i in np.unravel_index(int(size.argmax()), size.shape))
    down, across = grid.block
    top, left = row * down, column * across
    if down == across == 1:
        return top, left
    bottom, right = min(top + down, grid.rows), min(left + across, grid.columns)
    lines = [Tile(r, r + 1, left, right) for r in range(top, bottom)]
    tiles = [Tile(top, bottom, left, right)] if part.down is not None else lines
    worst, place = -1.0, (top, left)
    for tile in tiles:
        a, b = pair.read(part, grid, tile)
        found = severity(a, b)
        if found.size and float(found.max()) > worst:
            worst = float(found.max())
            r, c = divmod(int(found.argmax()), found.shape[1])
            place = tile.top + r, left + c
    return place


def _limits(images: Images, percent: tuple[float, float]) -> tuple[float, float]:
    both = np.concatenate([images.reference.ravel(), images.candidate.ravel()])
    finite = both[np.isfinite(both)]
    if not finite.size:
        return math.nan, math.nan
    low, high = np.percentile(finite.astype(np.float64), percent)
    return float(low), float(high)


def _error_limit(error: Image) -> float:
    size = np.abs(error[np.isfinite(error)]).astype(np.float64)
    if not size.size or not size.max():
        return 0.0
    limit = float(np.percentile(size, ROBUST[1]))
    return limit or float(size.max())
