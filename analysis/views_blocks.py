"""Reduction of a band of elements to blocks, one value a block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Block = tuple[int, int]  # elements down and across
_SAFE = 1e290  # sums of as many of these as a block can hold stay in float64


def _blocks(array: Array, block: Block, reduce: np.ufunc) -> Array:
    """Folds whole blocks; the last one of a row or column may be smaller."""
    down, across = block
    return _folded(_folded(array, down, reduce, axis=0), across, reduce, axis=1)


def _folded(array: Array, size: int, reduce: np.ufunc, *, axis: int) -> Array:
    """Folds every `size` neighbours along an axis, by strides: short inner loops are slow."""
    if size == 1:
        return array
    lanes = array if axis == 0 else array.T
    whole = lanes.shape[0] // size * size
    folded = np.array(lanes[0:whole:size])
    for offset in range(1, size if whole else 1):
        reduce(folded, lanes[offset:whole:size], out=folded)
    if whole < lanes.shape[0]:
        rest = reduce.reduce(lanes[whole:], axis=0, keepdims=True)
        folded = np.concatenate([folded, rest.astype(folded.dtype)])
    return folded if axis == 0 else folded.T


def mean(values: Array, odd: Array, block: Block) -> Array:
    """Mean of the values not odd, NaN where every one is.

    Divides before it sums where the ends of float64 would overflow.
    """
    if not odd.any() and float(np.abs(values).max(initial=0.0)) < _SAFE:
        sizes = _blocks(np.ones(values.shape[0])[:, None], (block[0], 1), np.add)
        widths = _blocks(np.ones(values.shape[1])[None, :], (1, block[1]), np.add)
        return np.asarray(_blocks(values, block, np.add) / (sizes * widths))
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
