"""Both tensors of a pair, read piece by piece into blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import views_cut
from analysis.selection import Part
from analysis.views_blocks import Blocks
from analysis.views_cut import Grid, Tile
from core.errors import NotHereError
from core.runs import Run
from language import say

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Sides:
    """Both tensors of a pair and how a piece of them is read."""

    reference: Run
    candidate: Run
    reference_id: str
    candidate_id: str

    @property
    def shape(self) -> tuple[int, ...]:
        """The common shape; NotHereError without one."""
        shapes = self.reference[self.reference_id].shape, self.candidate[self.candidate_id].shape
        if shapes[0] != shapes[1]:
            raise NotHereError(
                say(
                    "{reference_id} has no common slice: {shapes} against {shapes2}.",
                    reference_id=self.reference_id,
                    shapes=shapes[0],
                    shapes2=shapes[1],
                ),
                say("Compare dumps of the same configuration."),
            )
        return shapes[0]

    def read(self, part: Part, grid: Grid, tile: Tile) -> tuple[Array, Array]:
        """Both sides of a tile as (rows, columns); of a folded vector as one flat stretch."""
        where = views_cut.selection(part, grid, tile)
        wide = tile.right - tile.left
        a, b = (
            np.asarray(run.read(name, where))
            for run, name in (
                (self.reference, self.reference_id),
                (self.candidate, self.candidate_id),
            )
        )
        shape = (-1, wide) if part.down is not None and a.size else (1, -1)
        return a.reshape(shape), b.reshape(shape)

    def add(self, blocks: Blocks, part: Part, tile: Tile) -> None:
        """Read a tile of both sides into blocks."""
        a, b = self.read(part, blocks.grid, tile)
        if part.down is not None or tile.bottom == tile.top + 1:
            blocks.add(a, b, tile.top, tile.left)
            return
        wide = blocks.grid.columns
        whole = a.size // wide
        cut = whole * wide
        top, rows = tile.top, (whole, wide)
        blocks.add(a[0, :cut].reshape(rows), b[0, :cut].reshape(rows), top, 0)
        blocks.add(a[:, cut:], b[:, cut:], top + whole, 0)


def floor_of(rms: float) -> float:
    """Smallest divisor of a relative error: 1 % of the root mean square."""
    return 0.01 * rms if math.isfinite(rms) else 0.0
