"""Reduction of a band of elements to blocks, one value a block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Block = tuple[int, int]  # elements down and across


def _blocks(array: Array, block: Block, reduce: np.ufunc) -> Array:
    for axis, size in enumerate(block):
        if size > 1:
            array = reduce.reduceat(array, np.arange(0, array.shape[axis], size), axis=axis)
    return array


def mean(values: Array, odd: Array, block: Block) -> Array:
    """Mean of the values not odd, NaN where every one is.

    Divides before it sums, so that the ends of float64 do not overflow.
    """
    count = _blocks((~odd).astype(np.int64), block, np.add)
    spread = np.repeat(np.repeat(count, block[0], axis=0), block[1], axis=1)
    share = np.zeros(values.shape)
    np.divide(values, spread[: values.shape[0], : values.shape[1]], out=share, where=~odd)
    return np.where(count > 0, _blocks(share, block, np.add), np.nan)


def peak(values: Array, odd: Array, block: Block) -> Array:
    """Largest value that is not odd; NaN where every one is."""
    peak = _blocks(np.where(odd, -np.inf, values), block, np.maximum)
    return np.where(np.isneginf(peak), np.nan, peak)


def extreme(error: Array, odd: Array, block: Block) -> Array:
    """The signed error of largest magnitude in each block."""
    high = _blocks(np.where(odd, -np.inf, error), block, np.maximum)
    low = _blocks(np.where(odd, np.inf, error), block, np.minimum)
    return np.where(np.isneginf(high), np.nan, np.where(high >= -low, high, low))


def single(values: Array) -> NDArray[np.float32]:
    """As float32, which the browser draws; finite values beyond its range become its largest."""
    largest = np.finfo(np.float32).max
    clipped = np.where(np.isfinite(values), np.clip(values, -largest, largest), values)
    return clipped.astype(np.float32)


def holds(mask: Array, block: Block) -> Array:
    """Whether a block has any True."""
    return _blocks(mask, block, np.logical_or)
