"""What the two runs were given: ids, masks, inputs and weights, before any operator is blamed.

One or two modules with a wrong weight are a fault of those modules; weights that differ in many are
another checkpoint, and then everything downstream is another experiment (taxonomy §2, rule 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from analysis.replay.noise import ulp
from analysis.replay.padding import Place, counted
from analysis.replay.site import exact_values
from core.comparison import Comparison, Pair
from core.errors import LoadError
from core.runs import Array, Run
from core.tensors import TensorInfo
from metrics import formats

Real = Mapping[Place, Array]
What = Literal["different_inputs", "different_mask", "different_weights", "weight"]

# Modules with a wrong weight up to which the weight is at fault and not the checkpoint.
FEW_MODULES = 2
# Codes that requantising may move by one, as a share.
_MOVED_CODES = 0.05
# Elements that a quantiser may clip, as a share.
_FEW_CLIPPED = 1e-2


@dataclass(frozen=True, slots=True)
class Given:
    """One tensor that the runs were given and that differs: `what` it is, and the pair."""

    what: What
    pair: Pair


def differences(comparison: Comparison, reference: Run, candidate: Run, real: Real) -> list[Given]:
    """Everything handed to the runs that differs beyond a declared cast, in execution order.

    `real` marks the real tokens by step and rank: ids of padding do not count. Weights of a later
    step count only where few modules have them wrong: in training, honest weights drift together.
    """
    found = list(_inputs(comparison, _Values(reference, candidate), real))
    wrong = list(_weights(comparison, _Values(reference, candidate)))
    modules = {p.reference.module for p in wrong}
    first = min((_step(p) for p in comparison.pairs), default=-1)
    if len(modules) <= FEW_MODULES:
        found += [Given("weight", p) for p in wrong]
    else:
        found += [Given("different_weights", p) for p in wrong if _step(p) == first]
    return sorted(found, key=lambda each: each.pair.reference.order)


@dataclass(frozen=True, slots=True)
class _Values:
    """Values of either side of a pair."""

    reference: Run
    candidate: Run

    def ours(self, tensor: TensorInfo) -> Array:
        """A tensor of the reference, whole."""
        return exact_values(self.reference.read(tensor.id), tensor.dtype)

    def theirs(self, tensor: TensorInfo) -> Array:
        """A tensor of the candidate, whole."""
        return exact_values(self.candidate.read(tensor.id), tensor.dtype)


def _step(pair: Pair) -> int:
    step = pair.reference.step
    return -1 if step is None else step


def differs(pair: Pair) -> bool:
    """Whether any element of a compared pair is unequal."""
    return pair.stats is not None and pair.stats.equal < pair.stats.count


def _inputs(comparison: Comparison, values: _Values, real: Real) -> Iterator[Given]:
    """Integer inputs that no operator before them made, and float inputs before any output.

    An integer input is taken to be handed on when an output of its format and size differed before;
    each difference is told once.
    """
    after_output: set[Place] = set()
    explained: set[tuple[object, ...]] = set()
    for pair in comparison.pairs:
        tensor = pair.reference
        if tensor.pass_ != "forward":
            continue
        place = (tensor.step, tensor.rank)
        key = (place, tensor.dtype, tensor.size)
        what = _handed_in(pair, values, real.get(place), after=place in after_output)
        if what is not None and key not in explained:
            yield Given(what, pair)
        if tensor.slot == "output":
            after_output.add(place)
        if _is_whole(tensor) and _off(pair):
            explained.add(key)


def _is_whole(tensor: TensorInfo) -> bool:
    """Ids, positions and masks; int8 codes of activations are moved by rounding."""
    return formats.kind(tensor.dtype) in ("int", "bool") and tensor.dtype != "int8"


def _off(pair: Pair) -> bool:
    """Whether a pair differs, or could not be compared though it is made of ids."""
    return differs(pair) or (pair.stats is None and _is_whole(pair.reference))


def _handed_in(pair: Pair, values: _Values, real: Array | None, *, after: bool) -> What | None:
    """What an input is if it differs and nobody before made it; None otherwise."""
    if pair.reference.slot != "input" or not _off(pair):
        return None
    if _is_whole(pair.reference):
        return _kind_of_input(pair) if _on_real_tokens(pair, values, real) else None
    return "different_inputs" if not after and _beyond_cast(pair) else None


def _on_real_tokens(pair: Pair, values: _Values, real: Array | None) -> bool:
    """Whether an integer input differs where it is not padding. A mask is all real."""
    if pair.stats is None or _kind_of_input(pair) == "different_mask":
        return True
    off = values.ours(pair.reference) != values.theirs(pair.candidate)
    return bool(np.any(off & counted(off.shape, real)))


def _kind_of_input(pair: Pair) -> What:
    """A mask is boolean or made of zeros and ones."""
    side = pair.stats.reference if pair.stats else None
    binary = side is not None and side.minimum in (0, 1) and side.maximum in (0, 1)
    return "different_mask" if pair.reference.dtype == "bool" or binary else "different_inputs"


def _beyond_cast(pair: Pair) -> bool:
    """Whether a float input differs by more than its two formats' rounding."""
    stats = pair.stats
    if stats is None or stats.unmatched_nonfinite:
        return True
    coarse = formats.format_of(
        formats.real_of(formats.coarser_of(pair.reference.dtype, pair.candidate.dtype))
    )
    largest = max(abs(stats.reference.minimum), abs(stats.reference.maximum))
    return stats.max_abs_error.value > 2 * coarse.unit_roundoff * largest


def _weights(comparison: Comparison, values: _Values) -> Iterator[Pair]:
    pairs = [p for p in comparison.pairs if p.reference.pass_ == "parameter"]
    requantised = {_module(p) for p in pairs if _schemes_differ(p)}
    for pair in pairs:
        if not differs(pair) and pair.stats is not None:
            continue
        try:
            if _module(pair) not in requantised:
                wrong = _is_wrong(pair, values)
            else:
                wrong = _schemes_differ(pair) and not _same_weight(pair, values)
        except LoadError:
            continue
        if wrong:
            yield pair


def _module(pair: Pair) -> tuple[int | None, int | None, str]:
    return (pair.reference.step, pair.reference.rank, pair.reference.module)


def _schemes_differ(pair: Pair) -> bool:
    """Whether one side holds codes and the other numbers, or codes of another format."""
    sides = (pair.reference.dtype, pair.candidate.dtype)
    return sides[0] != sides[1] and any(_is_code(dtype) for dtype in sides)


def _is_code(dtype: str) -> bool:
    return formats.kind(dtype) == "int" or dtype.startswith("float8")


def _is_wrong(pair: Pair, values: _Values) -> bool:
    a, b, ours, theirs = pair.reference, pair.candidate, values.ours, values.theirs
    if a.shape != b.shape:
        return sorted(a.shape) != sorted(b.shape) or not np.array_equal(ours(a).T, theirs(b))
    if formats.kind(a.dtype) == "int":
        return not _codes_alike(ours(a), theirs(b))
    return not cast_equal(ours(a), theirs(b), a.dtype, b.dtype)


def _same_weight(pair: Pair, values: _Values) -> bool:
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
