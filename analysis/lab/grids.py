"""Whether a candidate lies on an integer grid, and how good its rounding to that grid is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from analysis.lab.schemes import Array

IDEAL = 1 / math.sqrt(12)  # rms error of rounding to nearest, in steps: 0.289
_CODES = 127
_OFF_GRID = 0.02  # of a step: what the container's own rounding may add
_FEWEST = 24  # values of a row below which anything lies on some grid


@dataclass(frozen=True, slots=True)
class GridFit:
    """A candidate whose rows are whole multiples of a step of their own.

    `rows` of `rows_total` lie on such a grid. `rmse_steps`: root mean square distance from the
    reference in steps; rounding to nearest gives 0.289, truncation 0.577. `clipped`: share of
    values at the last code while the reference lies beyond it.
    """

    rows: int
    rows_total: int
    rmse_steps: float
    clipped: float


def grid_fit(reference: Array, candidate: Array) -> GridFit | None:
    """Fit of a candidate, (rows, length) like the reference; None unless most rows lie on a grid.

    The step of a row is its largest magnitude over 127: symmetric int8 puts the largest value on
    the last code.
    """
    if candidate.shape[-1] < _FEWEST:
        return None
    step = np.abs(candidate).max(axis=-1, keepdims=True) / _CODES
    safe = np.where(step > 0, step, 1.0)
    codes = candidate / safe
    off = np.abs(codes - np.rint(codes)).max(axis=-1)
    on_grid = (off <= _OFF_GRID) & (step[..., 0] > 0)
    if on_grid.mean() < 0.5:
        return None
    apart = ((reference - candidate) / safe)[on_grid]
    last = np.abs(np.rint(codes[on_grid])) >= _CODES
    beyond = np.abs(reference / safe)[on_grid] > _CODES + 0.5
    return GridFit(
        rows=int(on_grid.sum()),
        rows_total=int(on_grid.size),
        rmse_steps=float(np.sqrt((apart**2).mean())),
        clipped=float((last & beyond).mean()),
    )
