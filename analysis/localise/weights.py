"""Weights of the two runs: the same numbers under casts, quantisers and storage orders, or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from analysis.replay.noise import ulp
from analysis.replay.pairing import is_sure
from analysis.replay.site import exact_values
from core.comparison import Comparison, Pair
from core.errors import LoadError
from core.runs import Array, Run
from core.tensors import TensorInfo
from metrics import METRICS, formats

# Modules with a wrong weight up to which the weight is at fault and not the checkpoint.
FEW_MODULES = 2
# Codes that requantising may move by one, as a share.
_MOVED_CODES = 0.05
# Elements that a quantiser may clip, as a share.
_FEW_CLIPPED = 1e-2


@dataclass(frozen=True, slots=True)
class Values:
    """Values of either side of a pair."""

    reference: Run
    candidate: Run

    def ours(self, tensor: TensorInfo) -> Array:
        """A tensor of the reference, whole."""
        return exact_values(self.reference.read(tensor.id), tensor.dtype)

    def theirs(self, tensor: TensorInfo) -> Array:
        """A tensor of the candidate, whole."""
        return exact_values(self.candidate.read(tensor.id), tensor.dtype)


def differs(pair: Pair) -> bool:
    """Whether any element of a compared pair is unequal."""
    return pair.stats is not None and pair.stats.equal < pair.stats.count


def wrong_weights(comparison: Comparison, values: Values) -> Iterator[Pair]:
    """Parameters that are not the same weight on both sides, in execution order."""
    pairs = [p for p in comparison.pairs if p.reference.pass_ == "parameter" and is_sure(p)]
    requantised = {_module(p) for p in pairs if _schemes_differ(p)}
    turned = turned_weights(comparison)
    for pair in pairs:
        alike = not differs(pair) and pair.stats is not None
        if alike and pair.candidate.id not in turned:
            continue
        try:
            if _module(pair) in requantised:
                wrong = _schemes_differ(pair) and not _same_weight(pair, values)
            elif pair.adaptation is not None:
                wrong = _adapted_wrong(pair, few=_few(turned), turned=turned)
            else:
                wrong = _is_wrong(pair, values)
        except LoadError:
            continue
        if wrong:
            yield pair


def turned_weights(comparison: Comparison) -> Mapping[str, str]:
    """Square weights that only a transposition makes equal, by the candidate's id: their modules.

    One or two are loaded the wrong way round; more are the candidate's way of storing them.
    """
    return {
        p.candidate.id: p.reference.module
        for p in comparison.pairs
        if p.reference.pass_ == "parameter"
        and p.adaptation is not None
        and p.reference.shape == p.candidate.shape
        and all(step.operation == "transpose" for step in p.adaptation.steps)
    }


def stored_turned(comparison: Comparison) -> frozenset[str]:
    """Square weights that the candidate keeps the other way round by convention."""
    turned = turned_weights(comparison)
    return frozenset() if _few(turned) else frozenset(turned)


def _few(turned: Mapping[str, str]) -> bool:
    return len(set(turned.values())) <= FEW_MODULES


def _adapted_wrong(pair: Pair, *, few: bool, turned: Mapping[str, str]) -> bool:
    """Whether a weight that had to be adapted (turned, put together) is another weight."""
    if pair.candidate.id in turned:
        return few
    coarse = formats.coarser_of(pair.reference.dtype, pair.candidate.dtype)
    roundoff = formats.format_of(formats.real_of(coarse)).unit_roundoff
    return pair.stats is None or METRICS["relative_l2"](pair.stats) > roundoff


def _module(pair: Pair) -> tuple[int | None, int | None, str]:
    return (pair.reference.step, pair.reference.rank, pair.reference.module)


def _schemes_differ(pair: Pair) -> bool:
    """Whether one side holds codes and the other numbers, or codes of another format."""
    sides = (pair.reference.dtype, pair.candidate.dtype)
    return sides[0] != sides[1] and any(_is_code(dtype) for dtype in sides)


def _is_code(dtype: str) -> bool:
    return formats.kind(dtype) == "int" or dtype.startswith("float8")


def _is_wrong(pair: Pair, values: Values) -> bool:
    a, b, ours, theirs = pair.reference, pair.candidate, values.ours, values.theirs
    if a.shape != b.shape:
        return sorted(a.shape) != sorted(b.shape) or not np.array_equal(ours(a).T, theirs(b))
    if formats.kind(a.dtype) == "int":
        return not _codes_alike(ours(a), theirs(b))
    return not cast_equal(ours(a), theirs(b), a.dtype, b.dtype)


def _same_weight(pair: Pair, values: Values) -> bool:
    """Whether both sides give the same weight to within a step of each, but for a few clipped.

    Codes whose layout is not known (a packed format) are not accused.
    """
    sides = [
        _dequantised(pair.reference, values.reference),
        _dequantised(pair.candidate, values.candidate),
    ]
    if sides[0] is None or sides[1] is None or sides[0][0].shape != sides[1][0].shape:
        return True
    (a, step_a), (b, step_b) = sides[0], sides[1]
    return bool(np.mean(np.abs(a - b) > 0.75 * (step_a + step_b)) < _FEW_CLIPPED)


def _dequantised(tensor: TensorInfo, run: Run) -> tuple[Array, Array] | None:
    """A weight in numbers and the size of a step at each; None where it cannot be told."""
    codes = exact_values(run.read(tensor.id), tensor.dtype).astype(np.float64)
    if not _is_code(tensor.dtype):
        return codes, ulp(codes, tensor.dtype)
    scale, zero = (_beside(tensor, run, suffix) for suffix in ("_scale", "_zero"))
    rows = codes.shape[0]
    if scale is None or codes.ndim != 2 or (scale.size != 1 and scale.size % rows):
        return None
    if zero is None and formats.kind(tensor.dtype) == "int" and codes.min(initial=0) >= 0:
        return None  # codes that are never negative have a zero point, which was not captured
    step = scale.reshape(rows, -1, 1) if scale.size != 1 else scale.reshape(1, 1, 1)
    if codes.shape[1] % step.shape[1]:
        return None
    wide = codes.reshape(rows, step.shape[1], -1)
    origin = 0.0 if zero is None else zero.astype(np.float64).reshape(rows, -1, 1)
    unit = ulp(wide, tensor.dtype) if tensor.dtype.startswith("float8") else np.ones(wide.shape)
    return ((wide - origin) * step).reshape(codes.shape), (unit * step).reshape(codes.shape)


def _beside(tensor: TensorInfo, run: Run, suffix: str) -> Array | None:
    """The scale or zero point recorded with a weight."""
    found = run.tensors.get(f"{tensor.id}{suffix}")
    return None if found is None else exact_values(run.read(found.id), found.dtype)


def cast_equal(a: Array, b: Array, of_a: str, of_b: str) -> bool:
    """Whether two arrays can be roundings of the same numbers to their formats."""
    with np.errstate(all="ignore"):
        allowed = (ulp(a, formats.real_of(of_a)) + ulp(b, formats.real_of(of_b))) * 0.501
        if of_a == of_b:
            allowed = np.zeros(())
        return bool(np.all((np.abs(a - b) <= allowed) | (a == b) | (np.isnan(a) & np.isnan(b))))


def _codes_alike(a: Array, b: Array) -> bool:
    off = np.abs(a.astype(np.int64) - b.astype(np.int64))
    return bool(off.max(initial=0) <= 1 and np.mean(off > 0) <= _MOVED_CODES)
