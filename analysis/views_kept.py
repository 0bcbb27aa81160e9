"""Parts too large to be read while a page waits: small blocks, of which every picture is made."""

from __future__ import annotations

from dataclasses import dataclass

from analysis import views_cut
from analysis.selection import Part, parse
from analysis.views import HEIGHT, WIDTH, SliceView, seen
from analysis.views_blocks import Blocks, joined
from analysis.views_cut import Grid
from analysis.views_sides import Sides, floor_of
from core.runs import Run


def kept_blocks(
    reference: Run,
    candidate: Run,
    *,
    reference_id: str,
    candidate_id: str,
    selection: str,
    dtype: str,
    rms: float,
) -> Blocks:
    """Every element of a part reduced to at most some millions of small blocks."""
    pair = Sides(reference, candidate, reference_id, candidate_id)
    part = parse(selection, pair.shape)
    grid = views_cut.kept(part, HEIGHT, WIDTH)
    blocks = Blocks(grid, dtype, floor_of(rms))
    for tile in views_cut.tiles(grid):
        pair.add(blocks, part, tile)
    return blocks


def picture_of_kept(
    reference: Run,
    candidate: Run,
    *,
    blocks: Blocks,
    reference_id: str,
    candidate_id: str,
    selection: str,
    height: int = HEIGHT,
    width: int = WIDTH,
) -> SliceView:
    """A picture of a part from the blocks of the whole; its windows are `views_cut.widened`."""
    pair = Sides(reference, candidate, reference_id, candidate_id)
    part = parse(selection, pair.shape)
    unit = blocks.grid.block
    grid = views_cut.picture(part, height, width, unit=unit)
    at = [
        slice(w.start // size, -(-w.stop // size))
        for w, size in zip(_storage_windows(part), unit, strict=True)
    ]
    if part.down is None:
        blocks, at = _refolded(blocks, at[1], grid), [slice(None), slice(None)]
    times = grid.block[0] // blocks.grid.block[0], grid.block[1] // blocks.grid.block[1]
    return seen(joined(blocks, at[0], at[1], grid, times), pair, part)


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    stop: int


def _storage_windows(part: Part) -> tuple[_Span, _Span]:
    windows = [w for w in (part.down, part.across) if w is not None]
    spans = [_Span(w.start, w.stop) for w in sorted(windows, key=lambda w: w.axis)]
    return (*[_Span(0, 1)] * (2 - len(spans)), *spans)  # type: ignore[return-value]


def _refolded(blocks: Blocks, window: slice, grid: Grid) -> Blocks:
    """A stretch of a vector's blocks laid in rows of the picture's columns."""
    size = blocks.grid.block[1]
    wide = max(1, grid.columns // size)
    rows = -(-(window.stop - window.start) // wide)
    laid = Grid(rows, wide * size, rows * wide * size, (1, size))
    made = Blocks(laid, blocks.dtype, blocks.floor, blocks.scale, blocks.complex)
    for name in ("cells", "count", "odd", "unshared", "flags"):
        target, source = getattr(made, name), getattr(blocks, name)[..., 0, window]
        flat = target.reshape(*target.shape[:-2], -1)
        flat[..., : source.shape[-1]] = source
    return made
