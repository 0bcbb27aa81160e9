"""Where along each axis of the tensor the error lies, for a stretch that starts anywhere."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import torch

from core.stats import AxisProfile, FloatArray
from metrics.torch_engine.sums import Scaled

LONGEST_AXIS = 65_536  # as in the compiled engine

Fold = Callable[[torch.Tensor, int], torch.Tensor]  # over one axis


def axis_profiles(
    reference: Scaled, error: Scaled, abs_error: torch.Tensor, shape: tuple[int, ...], start: int
) -> tuple[AxisProfile, ...]:
    """Profiles along every axis of `shape` for the flat stretch beginning at index `start`.

    Elements that do not count must be zero in all arrays; `abs_error` is in units of the data.
    """
    squares = (
        _profiles(part.values * part.values, shape, start, torch.sum) for part in (error, reference)
    )
    peaks = _profiles(abs_error, shape, start, torch.amax)
    return tuple(
        AxisProfile(_host(e), _host(r), _host(peak), error.exponent, reference.exponent)
        for e, r, peak in zip(*squares, peaks, strict=True)
    )


def _host(tensor: torch.Tensor) -> FloatArray:
    return np.asarray(tensor.cpu().numpy())


def _profiles(
    values: torch.Tensor, shape: tuple[int, ...], start: int, fold: Fold
) -> list[torch.Tensor]:
    """Fold the last axis, then the rows it leaves along the axis before, and so on."""
    profiles = []
    for length in reversed(shape):
        along = _fold if values.numel() and length <= LONGEST_AXIS else _fold_unkept
        profile, values = along(values, length, start % max(length, 1), fold)
        profiles.append(profile)
        start //= max(length, 1)
    return profiles[::-1]


def _fold(
    values: torch.Tensor, length: int, offset: int, fold: Fold
) -> tuple[torch.Tensor, torch.Tensor]:
    """One value for each index along an axis and for each row that the stretch touches."""
    after = -(offset + values.numel()) % length
    rows = torch.nn.functional.pad(values, (offset, after)).reshape(-1, length)
    return fold(rows, 0), fold(rows, 1)


def _fold_unkept(
    values: torch.Tensor, length: int, offset: int, fold: Fold
) -> tuple[torch.Tensor, torch.Tensor]:
    """No profile, for an axis too long to keep one; zeros when there are no values."""
    if not values.numel():
        return values.new_zeros(length if length <= LONGEST_AXIS else 0), values
    edges = [0, *range(length - offset, values.numel(), length), values.numel()]
    rows = [fold(values[low:high], 0) for low, high in itertools.pairwise(edges)]
    return values.new_zeros(0), torch.stack(rows)
