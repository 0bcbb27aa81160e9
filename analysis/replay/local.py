"""Local errors: a dumped output against float64 on the dumped inputs, in units of the floor."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from analysis.replay.registry import Answer
from core.runs import Array
from loaders.dtypes import numpy_type
from metrics import formats


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """The local error of one output.

    `error` = actual - expected where both are finite, else NaN. `scaled` is it over the floor's
    standard deviation, on the elements that are `judged` (valid, not free, finite), else 0.
    `ratio` is R: the root of the judged errors' energy over that of their floors; `worst` is z,
    the largest |scaled|. `nonfinite` counts elements that float64 finds finite and the dump not, or
    the other way round, or whose infinities differ.
    """

    error: Array
    scaled: Array
    judged: Array
    ratio: float
    worst: float
    nonfinite: int

    @property
    def count(self) -> int:
        """Elements judged."""
        return int(np.count_nonzero(self.judged))


def rounded(x: Array, dtype: str) -> Array:
    """Float64 values as a format stores them, back in float64; integers unchanged."""
    if x.dtype.kind != "f" or formats.kind(dtype) != "float":
        return x
    with np.errstate(over="ignore"):
        return np.asarray(x.astype(numpy_type(dtype)).astype(np.float64))


def local_error(answer: Answer, actual: Array, floor: Array, valid: Array, dtype: str) -> Local:
    """Measure one output; `floor` is its variance, `valid` the elements that count.

    An exact output has no floor: any difference is an infinite z. 0 over 0 is 0.
    """
    expected = rounded(answer.value, dtype) if answer.exact else answer.value
    actual, expected = actual.astype(np.float64), np.asarray(expected, np.float64)
    finite = np.isfinite(actual) & np.isfinite(expected)
    alike = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    counted = valid if answer.free is None else valid & ~answer.free
    # A non-finite value counts wherever it stands: padding excuses a number, never a NaN.
    broken = np.count_nonzero(~finite & ~alike)
    judged = counted & finite
    with np.errstate(all="ignore"):
        error = np.where(finite, actual - expected, np.nan)
        scaled = np.where(judged & (error != 0), error / np.sqrt(floor), 0.0)
    return Local(
        error=error,
        scaled=scaled,
        judged=judged,
        ratio=math.inf if broken else _ratio(error[judged], floor[judged]),
        worst=math.inf if broken else float(np.max(np.abs(scaled), initial=0.0)),
        nonfinite=int(broken),
    )


def _ratio(error: Array, floor: Array) -> float:
    energy, allowed = float(error @ error), float(floor.sum())
    if energy == 0:
        return 0.0
    return math.sqrt(energy / allowed) if allowed else math.inf
