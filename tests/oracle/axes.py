"""Where along each axis of the tensor the error lies, for a stretch that starts anywhere."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from core.stats import AxisProfile, FloatArray
from oracle.moments import Scaled

LONGEST_AXIS = 65_536

_NARROW = 16  # rows this short are folded column by column: NumPy is slow at short inner loops


class _Fold(NamedTuple):
    profile: FloatArray  # one value for each index along the axis
    rows: FloatArray  # one value for each row the stretch touches, in order


def axis_profiles(
    reference: Scaled, error: Scaled, abs_error: FloatArray, shape: tuple[int, ...], start: int
) -> tuple[AxisProfile, ...]:
    """Profiles along every axis of `shape` for the flat stretch beginning at index `start`.

    Elements that do not count must be zero in all arrays; `abs_error` is in units of the data.
    """
    quantities = (
        (error.values * error.values, np.add),
        (reference.values * reference.values, np.add),
        (abs_error, np.maximum),
    )
    folded = [_profiles(values, shape, start, ufunc) for values, ufunc in quantities]
    return tuple(
        AxisProfile(sq_error, sq_reference, peaks, error.exponent, reference.exponent)
        for sq_error, sq_reference, peaks in zip(*folded, strict=True)
    )


def _profiles(
    values: FloatArray, shape: tuple[int, ...], start: int, combine: np.ufunc
) -> list[FloatArray]:
    """Fold the last axis, then the rows it leaves along the axis before, and so on."""
    profiles: list[FloatArray] = []
    for length in reversed(shape):
        fold = _fold if length <= LONGEST_AXIS else _fold_unkept
        profile, values = fold(values, length, start % length if length else 0, combine)
        profiles.append(profile)
        start = start // length if length else 0
    return profiles[::-1]


def _fold(values: FloatArray, length: int, offset: int, combine: np.ufunc) -> _Fold:
    """Fold a stretch that begins at `offset` within a row of `length` elements."""
    profile = np.zeros(length)
    head = min(values.size, length - offset) if offset else 0
    full = (values.size - head) // length if length else 0
    first, last = values[:head], values[head + full * length :]
    block = values[head : head + full * length].reshape(full, length)
    rows = _across(block, combine, profile)
    for part, at in ((first, offset), (last, 0)):
        window = profile[at : at + part.size]
        combine(window, part, out=window)
    ends = [combine.reduce(part)[np.newaxis] if part.size else part for part in (first, last)]
    return _Fold(profile, np.concatenate([ends[0], rows, ends[1]]))


def _across(block: FloatArray, combine: np.ufunc, profile: FloatArray) -> FloatArray:
    """Fold whole rows into `profile` and return one value for each row."""
    count, length = block.shape
    if not count:
        return np.zeros(0)
    if length > _NARROW:
        combine(profile, combine.reduce(block, axis=0), out=profile)
        return np.asarray(combine.reduce(block, axis=1))
    rows = np.zeros(count)
    for index in range(length):
        column = np.ascontiguousarray(block[:, index])
        profile[index] = combine(profile[index], combine.reduce(column))
        combine(rows, column, out=rows)
    return rows


def _fold_unkept(values: FloatArray, length: int, offset: int, combine: np.ufunc) -> _Fold:
    """Rows only, for an axis too long to keep a profile of."""
    empty = np.zeros(0)
    if not values.size:
        return _Fold(empty, empty)
    inner = np.arange(length - offset, values.size, length)
    return _Fold(empty, np.asarray(combine.reduceat(values, np.concatenate([[0], inner]))))
