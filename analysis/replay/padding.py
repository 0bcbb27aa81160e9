"""Which tokens count: padding is excluded from every judgement of finite values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from analysis.replay.site import OperatorCall
from core.runs import Array

Place = tuple[int | None, int | None]
_LONGEST = 1 << 22  # elements of a mask that is worth reading


def real_tokens(calls: Iterable[OperatorCall]) -> Mapping[Place, Array]:
    """(batch, tokens so far) of booleans for every step and rank where padding can be told.

    From a 0/1 mask of integers, else from a boolean attention mask (a key that no query may see is
    padding), else from the ids: a run of one id that reaches the edge of some sample, at least two
    long, or of the id 0.
    """
    found: dict[Place, tuple[int, Array]] = {}
    for call in calls:
        place = (call.step, call.rank)
        for tensor in (*call.inputs.values(), *call.outputs.values()):
            if tensor.size > _LONGEST or found.get(place, (9,))[0] == 0:
                continue
            if tensor.dtype == "bool" or tensor.dtype.startswith(("int", "uint")):
                rank, tokens = _read(call.value(tensor))
                if tokens is not None and rank < found.get(place, (9,))[0]:
                    found[place] = (rank, tokens)
    return {place: tokens for place, (_, tokens) in found.items()}


def _read(values: Array) -> tuple[int, Array | None]:
    """How good a witness an integer or boolean tensor is (0 best), and what it says."""
    if values.ndim == 4 and values.dtype == bool:
        return 1, np.asarray(values.any((1, 2))) if values.shape[-1] > 1 else None
    if values.ndim != 2 or values.dtype == bool or values.size == 0:
        return 9, None
    if values.min() == 0 and values.max() == 1:
        return 0, np.asarray(values > 0)
    edges = _edges(values)
    return (2, edges) if edges is not None else (9, None)


def _edges(ids: Array) -> Array | None:
    """Real tokens by the ids alone; None where no sample ends or begins in padding."""
    real = np.ones(ids.shape, bool)
    for row, tokens in zip(ids, real, strict=True):
        for order in (1, -1):
            run, flags = row[::order], tokens[::order]
            same = run == run[0]
            length = len(run) if same.all() else int(np.argmin(same))
            if len(run) > 1 and (length > 1 or run[0] == 0) and length < len(run):
                flags[:length] = False
    return None if real.all() else real


def counted(shape: tuple[int, ...], real: Array | None) -> Array:
    """Elements of an output that belong to real tokens; all where the axes cannot be told.

    (B, S, …), (B, H, S, …), (B, S, H, …) and (B·S, …) are known; S may be the last tokens only.
    """
    everything = np.ones(shape, bool)
    if real is None or len(shape) < 2:
        return everything
    batch, total = real.shape
    if shape[0] == batch:
        axis = next((a for a in _token_axes(shape) if 1 <= shape[a] <= total), None)
        if axis is None:
            return everything
        tokens = real[:, total - shape[axis] :]
        where = [1] * len(shape)
        where[0], where[axis] = batch, shape[axis]
        return everything & tokens.reshape(where)
    if shape[0] == batch * total:
        return everything & real.reshape(-1, *[1] * (len(shape) - 1))
    return everything


def _token_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (2, 1) if len(shape) == 4 else (1,)
