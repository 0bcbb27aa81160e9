"""Values as they go into the file: NumPy's own types as they are, everything else as raw bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_RAW = {1: np.uint8, 2: np.uint16}


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """A private copy of a tensor: `bits` in row-major order and the name of the logical format."""

    bits: NDArray[Any]
    dtype: str


def values_of(array: NDArray[Any]) -> Values:
    """A copy of an array; types from outside NumPy (`ml_dtypes.bfloat16`) become raw bits."""
    copy: NDArray[Any] = np.array(array, order="C", copy=True)
    name = copy.dtype.name
    if copy.dtype.type.__module__ != "numpy":
        copy = copy.view(_RAW[copy.dtype.itemsize])
    return Values(copy.astype(copy.dtype.newbyteorder("<"), copy=False), name)
