"""Which rows of a call are replayed: all of a small one, a sample and the worst of a big one.

16 random rows give R to 0.8 %, 64 to 0.4 % (measured); the rows with the largest error are added so
that a sparse defect is not missed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from analysis.replay.registry import Function
from analysis.replay.registry import Rows as Along
from analysis.replay.site import OperatorCall, exact_values
from core.runs import Array, Selection
from core.tensors import TensorInfo

SAMPLED = 64
# Output channels of a layer whose weight is big; each needs its own row of the weight alone.
CHANNELS = 256
# Elements of the largest tensor up to which a call is replayed whole.
WHOLE = 1 << 18


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one call's replay. `shape` is the output's; `chosen` None means every row.

    `columns` are the output channels that are replayed, None for all. `chosen` are indices along
    the axis that the function allows: all leading axes flattened (`leading`), or the tokens
    (`query`, `token`).
    """

    shape: tuple[int, ...]
    along: Along
    chosen: tuple[int, ...] | None = None
    columns: tuple[int, ...] | None = None

    @property
    def tokens(self) -> int:
        """Length of the token axis of the output: the second of three, the third of four."""
        return self.shape[2] if len(self.shape) == 4 else self.shape[1]

    def cut(self, shape: tuple[int, ...], *, leads: bool) -> list[Selection] | None:
        """Selections that together are the rows of a tensor; None where it is needed whole.

        `leads` says that the tensor is the output or the first input, which alone of an attention's
        operands run along the queries.
        """
        if self.chosen is None:
            return None
        if self.along == "leading":
            return self._leading(shape)
        axis = self._token_axis(shape, leads=leads)
        if axis is None:
            return None
        return [(*[slice(None)] * axis, n) for n in self.chosen]

    def _leading(self, shape: tuple[int, ...]) -> list[Selection] | None:
        total = math.prod(self.shape[:-1])
        for axes in (len(shape) - 1, 1, len(shape)):
            if axes > 0 and math.prod(shape[:axes]) == total:
                where = np.unravel_index(np.asarray(self.chosen), shape[:axes])
                return [tuple(int(i) for i in row) for row in zip(*where, strict=True)]
        return None

    def _token_axis(self, shape: tuple[int, ...], *, leads: bool) -> int | None:
        if self.along == "query" and not leads:
            is_mask = len(shape) == 4 and shape[1] in (1, self.shape[1]) and shape[2] == self.tokens
            return 2 if is_mask and shape[-1] == shape[-2] else None
        order = {4: (2, 1), 3: (1,), 2: (1,), 1: (0,)}.get(len(shape), ())
        return next((axis for axis in order if shape[axis] == self.tokens), None)

    def kept(self, values: Array) -> Array:
        """The rows of an array shaped like the output."""
        cut = self.cut(values.shape, leads=True)
        if cut is not None:
            values = self._joined([values[part] for part in cut], values.shape)
        return self.narrowed(values)

    def narrowed(self, values: Array) -> Array:
        """The replayed channels of an output that is already down to its rows."""
        return values if self.columns is None else values[..., list(self.columns)]

    def parameter(self, call: OperatorCall, tensor: TensorInfo) -> Array:
        """A parameter, on the rows of the replayed channels where there are such."""
        if self.columns is None or not tensor.shape or tensor.shape[0] != self.shape[-1]:
            return call.value(tensor)
        parts = [call.run.read(tensor.id, (n,)) for n in self.columns]
        return exact_values(np.stack(parts), tensor.dtype)

    def read(self, call: OperatorCall, tensor: TensorInfo, *, leads: bool) -> Array:
        """The rows of an operand or output of a call; whole where it does not run along them."""
        cut = self.cut(tensor.shape, leads=leads)
        if cut is None:
            return call.value(tensor)
        parts = [call.run.read(tensor.id, part) for part in cut]
        return exact_values(self._joined(parts, tensor.shape), tensor.dtype)

    def _joined(self, parts: Sequence[Array], shape: tuple[int, ...]) -> Array:
        if self.along == "leading":
            return np.stack(parts)
        axis = next(n for n in range(len(shape)) if parts[0].shape == shape[:n] + shape[n + 1 :])
        return np.stack(parts, axis)


def planned(call: OperatorCall, function: Function, worst: Sequence[int]) -> Rows:
    """Rows for a call, with those of its outputs' worst elements (flat indices) included."""
    along = function.rows
    output = next(iter(call.outputs.values()))
    shape = output.shape
    largest = max(t.size for t in (*call.outputs.values(), *call.inputs.values()))
    if largest <= WHOLE or along == "all" or len(shape) < 2:
        return Rows(shape, along)
    if along == "leading":
        total = math.prod(shape[:-1])
        rows = _chosen(total, {n // shape[-1] for n in worst})
        weight = call.parameters.get("weight")
        few = not function.columns or weight is None or weight.shape[0] != shape[-1]
        columns = None if few else _chosen(shape[-1], {n % shape[-1] for n in worst}, CHANNELS)
        return Rows(shape, along, rows, columns)
    plain = Rows(shape, along)
    stride = math.prod(shape[3:] if len(shape) == 4 else shape[2:])
    return Rows(shape, along, _chosen(plain.tokens, {n // stride % plain.tokens for n in worst}))


def _chosen(total: int, worst: set[int], number: int = SAMPLED) -> tuple[int, ...] | None:
    if total <= number:
        return None
    return tuple(sorted({*_sample(total, number), *(n for n in worst if 0 <= n < total)}))


@lru_cache(maxsize=256)
def _sample(total: int, number: int) -> tuple[int, ...]:
    picked = np.random.default_rng(total).choice(total, number, replace=False)
    return tuple(int(n) for n in picked)
