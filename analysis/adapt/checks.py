"""Whether two arrays hold the same values, judged on a sample of bounded size."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from analysis.adapt.lazy import Axes, LazyArray
from core.adaptation import Shape
from core.errors import LoadError
from core.runs import Array

SAMPLE = 1 << 14  # elements
# Under this relative L2 error two samples are one tensor twice: the coarsest format in use, e5m2,
# rounds by 0.053, a residual network adds up to twice that.
SAME = 0.1
# Over this they have nothing in common: independent values of one size differ by 1.4.
RELATED = 0.5


def sample_axes(shape: Shape, elements: int = SAMPLE) -> Axes:
    """A selection of at most `elements`, spread evenly over every axis."""
    budget, axes = elements, dict.fromkeys(range(len(shape)), slice(0, 0, 1))
    for done, axis in enumerate(sorted(axes, key=lambda n: shape[n])):
        share = max(1, math.floor(budget ** (1 / (len(shape) - done))))
        taken = min(shape[axis], share)
        axes[axis] = slice(0, shape[axis], max(1, -(-shape[axis] // max(1, taken))))
        budget = max(1, budget // max(1, taken))
    return tuple(axes.values())


def sample(array: LazyArray, elements: int = SAMPLE) -> Array | None:
    """Some values of an array as float64 (complex ones by part), None when they cannot be read."""
    try:
        values = array.read(sample_axes(array.shape, elements))
    except LoadError:
        return None
    if np.iscomplexobj(values):
        values = np.stack([values.real, values.imag])
    return np.asarray(values).astype(np.float64).reshape(-1)


def relative_error(reference: LazyArray, candidate: LazyArray) -> float:
    """Relative L2 error of a sample, over what is finite on both sides.

    NaN when it cannot be read, is nowhere finite, the shapes differ, or the reference holds one
    value throughout, which confirms nothing.
    """
    if reference.shape != candidate.shape:
        return math.nan
    a, b = sample(reference), sample(candidate)
    if a is None or b is None or not a.size or np.all(a == a[0]):
        return math.nan
    return distance(a, b)


def distance(a: Array, b: Array) -> float:
    """Relative L2 error of two samples of one length; infinite where only the first is zero."""
    finite = np.isfinite(a) & np.isfinite(b)
    if not finite.any():
        return math.nan
    a, b = a[finite], b[finite]
    with np.errstate(over="ignore"):
        error, size = float(np.linalg.norm(b - a)), float(np.linalg.norm(a))
    if size == 0:
        return 0.0 if error == 0 else math.inf
    return error / size


def all_equal(arrays: Sequence[LazyArray]) -> bool:
    """Whether the samples of several arrays are bit for bit the same."""
    first, *others = [sample(array) for array in arrays]
    if first is None:
        return False
    return all(o is not None and np.array_equal(o, first, equal_nan=True) for o in others)
