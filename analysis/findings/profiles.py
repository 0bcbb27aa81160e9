"""Where in a tensor an error sits: slices, blocks, tiles, flat stretches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.runs import Array

Mask = NDArray[np.bool_]

# Widths in which kernels cut their outputs and reductions.
TILES = (8, 16, 32, 64, 128, 256)
_LEAST_POWER = 128  # smaller powers of two are where almost anything begins


@dataclass(frozen=True, slots=True)
class Block:
    """A box around wrong elements: `start`, `stop` per axis, and the share of it that is wrong."""

    start: tuple[int, ...]
    stop: tuple[int, ...]
    filled: float

    @property
    def slices(self) -> tuple[slice, ...]:
        """The box as an index."""
        return tuple(slice(a, b) for a, b in zip(self.start, self.stop, strict=True))

    @property
    def shape(self) -> tuple[int, ...]:
        """Its size per axis."""
        return tuple(b - a for a, b in zip(self.start, self.stop, strict=True))


def bounding_block(wrong: Mask) -> Block | None:
    """Smallest box that holds every wrong element; None when nothing is wrong."""
    if not wrong.any():
        return None
    where = np.nonzero(wrong)
    start = tuple(int(axis.min()) for axis in where)
    stop = tuple(int(axis.max()) + 1 for axis in where)
    inside = wrong[tuple(slice(a, b) for a, b in zip(start, stop, strict=True))]
    return Block(start, stop, float(inside.mean()))


def aligned(block: Block, axis: int, length: int) -> int:
    """Widest power-of-two tile that the block starts and ends on along an axis; 1 if on none.

    The end of the axis counts as an end of a tile.
    """
    start, stop = block.start[axis], block.stop[axis]
    fitting = [t for t in (2, 4, *TILES) if start % t == 0 and (stop % t == 0 or stop == length)]
    return max(fitting, default=1)


def wrong_slices(wrong: Mask, axis: int, *, share: float = 0.25) -> list[int]:
    """Indices along an axis whose slice is wrong in more than `share` of its elements."""
    other = tuple(i for i in range(wrong.ndim) if i != axis % wrong.ndim)
    return [int(i) for i in np.nonzero(wrong.mean(axis=other) > share)[0]]


def first_power_of_two(wrong: Mask, valid: Mask, *, share: float = 0.6) -> int | None:
    """Flat index 2^k from which on elements are wrong, all before it right; None if there is none.

    Of the valid elements from there on more than `share` must be wrong (equal values hide some),
    and hardly any right one may stand between 2^k and the first wrong one.
    """
    flat, counted = np.ravel(wrong), np.ravel(valid)
    if not flat.any():
        return None
    first = int(np.argmax(flat))
    power = 1 << max(first, 1).bit_length() - 1
    between = int(counted[power:first].sum())
    if power < _LEAST_POWER or power >= flat.size or between > power // 64:
        return None
    after = int(counted[power:].sum())
    return power if after and flat[power:].sum() > share * after else None


def concentration(error: Array) -> float:
    """Share of the error's energy in its largest element, in [0, 1]; NaN without error."""
    energy = np.where(np.isfinite(error), error, 0.0) ** 2
    total = float(energy.sum())
    return float(energy.max()) / total if total else float("nan")
