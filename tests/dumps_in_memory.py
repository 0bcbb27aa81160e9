"""Runs made of arrays, for tests of what reads values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from core.runs import Run
from core.tensors import TensorInfo


class ArrayValues:
    """Values from memory, as `core.runs.Values` promises them."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self.arrays = arrays

    def chunks(self, tensor: TensorInfo, elements: int) -> Iterator[Any]:
        flat = self.arrays[tensor.id].reshape(-1)
        for start in range(0, flat.size, elements):
            yield flat[start : start + elements]

    def read(self, tensor: TensorInfo, selection: Any) -> Any:
        return np.asarray(self.arrays[tensor.id][selection])


def info(name: str, array: Any, **facts: Any) -> TensorInfo:
    """The description of an array; `facts` override."""
    known = {
        "id": name,
        "name": name,
        "module": name,
        "argument": "0",
        "pass_": "forward",
        "slot": "output",
        "shape": array.shape,
        "storage_dtype": str(array.dtype),
        "dtype": str(array.dtype),
        "order": 0,
    }
    return TensorInfo(**(known | facts))


def run_of(arrays: Mapping[str, Any], label: str = "run") -> Run:
    """A run of these arrays, in their order."""
    tensors = {
        name: info(name, array, order=order) for order, (name, array) in enumerate(arrays.items())
    }
    return Run(label, "in memory", tensors, ArrayValues(arrays))
