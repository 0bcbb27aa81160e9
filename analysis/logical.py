"""Logical formats that no dump declares, inferred when tensors are compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core.errors import LoadError
from core.runs import Run
from core.tensors import TensorInfo
from metrics.narrowest import FEWEST, narrowest

_WIDE = frozenset({"float32", "float64"})
_STRETCH, _SAMPLE = 1 << 14, 1 << 12  # elements read, and looked at


def with_logical_format(run: Run, tensor: TensorInfo) -> TensorInfo:
    """The tensor with the format its values show, marked as inferred; else as it is.

    Only for float32 and float64 without a declared format. 4096 elements of the first 16,384 are
    looked at, which costs a fraction of comparing them. A tensor that cannot be read stays as it
    is; that is said when it is compared.
    """
    undeclared = tensor.dtype == tensor.storage_dtype and not tensor.dtype_inferred
    if not (tensor.has_values and undeclared and tensor.dtype in _WIDE and tensor.size >= FEWEST):
        return tensor
    try:
        first = next(iter(run.chunks(tensor.id, _STRETCH)))
    except LoadError:
        return tensor
    found = narrowest(np.ascontiguousarray(first[:: max(1, first.size // _SAMPLE)]))
    return tensor if found is None else replace(tensor, dtype=found, dtype_inferred=True)
