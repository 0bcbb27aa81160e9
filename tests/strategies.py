"""Hypothesis strategies: tensors as dumps hold them, and pairs of them."""

import math
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from core.comparison import Tolerance
from core.stats import PairStats
from metrics import pair_stats
from metrics.formats import coarser_of

FLOATS = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
INTEGERS = ("int8", "int32", "int64", "uint8", "bool")

SPECIAL = (0.0, -0.0, 1.0, -1.0, 1e-45, -5e-324, 1e-310, 65504.0, 448.0, 3e38, 1e300, -1e-300)
NONFINITE = (math.nan, math.inf, -math.inf)


class TensorPair(NamedTuple):
    """Two tensors of one shape, flat, with what `pair_stats` must know of them."""

    reference: NDArray[Any]
    candidate: NDArray[Any]
    shape: tuple[int, ...]

    def stats(
        self,
        first: int = 0,
        last: int | None = None,
        *,
        tolerance: Tolerance | None = None,
    ) -> PairStats:
        """Statistics of the flat stretch from `first` to `last`."""
        names = self.reference.dtype.name, self.candidate.dtype.name
        return pair_stats(
            self.reference[first:last],
            self.candidate[first:last],
            tolerance or Tolerance(1e-3, 1e-2),
            dtype=coarser_of(*names),
            dtypes=names,
            shape=self.shape,
            start=first,
        )


def of(reference: Any, candidate: Any, dtype: Any = None, other: Any = None) -> TensorPair:
    """A pair written out in a test; `other` is the candidate's dtype where it differs."""
    a = np.atleast_1d(np.asarray(reference, dtype))
    b = np.atleast_1d(np.asarray(candidate, other or dtype))
    return TensorPair(a.ravel(), b.ravel(), a.shape)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy type of a logical dtype; bf16 and fp8 come from ml_dtypes."""
    return np.dtype(getattr(ml_dtypes, name, name))


def shapes() -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of no to three axes, empty ones included."""
    return st.lists(st.integers(0, 7), max_size=3).map(tuple)


@st.composite
def tensors(draw: st.DrawFn, dtype: str, size: int, *, nonfinite: bool = True) -> NDArray[Any]:
    """A flat tensor of a logical dtype with zeros, subnormals, huge, tiny and non-finite values."""
    if dtype in INTEGERS:
        return draw(hnp.arrays(np.dtype(dtype), size))
    values = st.one_of(
        st.floats(-8, 8),
        st.sampled_from(SPECIAL + (NONFINITE if nonfinite else ())),
        st.floats(allow_nan=nonfinite, allow_infinity=nonfinite),
    )
    wide = np.array(draw(st.lists(values, min_size=size, max_size=size)), np.float64)
    with np.errstate(all="ignore"):
        narrow = wide.astype(numpy_dtype(dtype))
        if not nonfinite:
            narrow[~np.isfinite(narrow.astype(np.float64))] = 1
    return narrow


@st.composite
def tensor_pairs(
    draw: st.DrawFn,
    *,
    dtypes: tuple[str, ...] = FLOATS + INTEGERS,
    nonfinite: bool = True,
    min_size: int = 0,
) -> TensorPair:
    """A pair of equal shape: related or unrelated values, of one dtype or of two of a kind."""
    shape = draw(shapes().filter(lambda shape: math.prod(shape) >= min_size))
    size = math.prod(shape)
    first = draw(st.sampled_from(dtypes))
    kin = [d for d in dtypes if (d in FLOATS) == (first in FLOATS)]
    second = draw(st.one_of(st.just(first), st.sampled_from(kin)))
    reference = draw(tensors(first, size, nonfinite=nonfinite))
    candidate = draw(tensors(second, size, nonfinite=nonfinite))
    if first == second and draw(st.booleans()):
        keep = draw(hnp.arrays(np.bool_, size))
        candidate = np.where(keep, reference, candidate)
    return TensorPair(reference, candidate, shape)


def ordinary_floats(size: int) -> st.SearchStrategy[NDArray[np.float64]]:
    """Float64 in ±[2^-10, 2^10] or zero: room to scale by powers of two without loss."""
    magnitude = st.floats(2.0**-10, 2.0**10)
    value = st.one_of(magnitude, magnitude.map(lambda x: -x), st.just(0.0))
    return st.lists(value, min_size=size, max_size=size).map(lambda v: np.array(v, np.float64))
