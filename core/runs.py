"""A dump, opened: descriptions now, values in bounded pieces on demand."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from core.errors import NotHereError
from core.tensors import TensorInfo
from language import say

Array = NDArray[Any]
Selection = tuple[int | slice, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing of a dump that was refused or could not be read; the rest still loads.

    `code` is a stable slug (`external-link`, `truncated`, …), `where` names file and item, escaped.
    """

    code: str
    where: str
    message: str


class Values(Protocol):
    """Reads the values of a run's tensors. Every array is little-endian and of its decoded type.

    The decoded type is the storage type, except that raw bits of bf16 and fp8 come back as
    `ml_dtypes` arrays. No call reads more than it returns plus one storage chunk.
    """

    def chunks(self, tensor: TensorInfo, elements: int, start: int = 0) -> Iterator[Array]:
        """Flat row-major stretches of exactly `elements` from element `start` on, in order.

        The last one is shorter.
        """

    def read(self, tensor: TensorInfo, selection: Selection) -> Array:
        """The selected part: integers drop an axis, slices keep it."""

    def is_seekable(self, tensor: TensorInfo) -> bool:
        """Whether chunks from the middle on cost no more than from the beginning."""

    def only(self, tensors: Collection[str]) -> Values:
        """The values of these tensors alone: small, and picklable like all values of dumps."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one execution left behind.

    `fingerprint` is a key that changes when the dump may have changed (names, sizes, times); it is
    not a hash of the content. `provenance` maps flat dotted keys to text (`framework`, `device`,
    `dtype_policy`, `math.allow_tf32`, `format`). `tensors` is in execution order.
    """

    label: str
    fingerprint: str
    tensors: Mapping[str, TensorInfo]
    values: Values
    provenance: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def __getitem__(self, tensor_id: str) -> TensorInfo:
        try:
            return self.tensors[tensor_id]
        except KeyError:
            near = difflib.get_close_matches(tensor_id, self.tensors, n=3)
            hint = say("Nearest names: {near}.", near=", ".join(near)) if near else ""
            raise NotHereError(
                say(
                    "{label} holds no tensor {tensor_id!r}.", label=self.label, tensor_id=tensor_id
                ),
                hint,
            ) from None

    def chunks(self, tensor_id: str, elements: int = 1 << 20, start: int = 0) -> Iterator[Array]:
        """Values of a tensor as flat row-major stretches of `elements`, the last one shorter.

        The first one begins at flat element `start`.
        """
        return self.values.chunks(self[tensor_id], elements, start)

    def only(self, tensors: Collection[str]) -> Run:
        """The run as if it held these tensors alone, without provenance and problems.

        This is what a worker elsewhere is given: it opens no file that it does not read.
        """
        kept = {tensor_id: self.tensors[tensor_id] for tensor_id in tensors}
        return Run(self.label, self.fingerprint, kept, self.values.only(tensors))

    def read(self, tensor_id: str, selection: Selection = ()) -> Array:
        """Values of a tensor at a selection (empty: all of it)."""
        tensor = self[tensor_id]
        full = selection + tuple(slice(None) for _ in tensor.shape[len(selection) :])
        return self.values.read(tensor, full)


def nbytes(tensor: TensorInfo) -> int:
    """Bytes of a tensor as stored, uncompressed; 0 for one without values."""
    if not tensor.has_values:
        return 0
    sizes = {"bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}
    itemsize = sizes.get(tensor.storage_dtype) or np.dtype(tensor.storage_dtype).itemsize
    return tensor.size * itemsize
