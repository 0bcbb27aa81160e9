"""What the two runs were given: ids, masks, inputs and weights, before any operator is blamed.

One or two modules with a wrong weight are a fault of those modules; weights that differ in many are
another checkpoint, and then everything downstream is another experiment (taxonomy §2, rule 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
# A scale that two quantisers of the same weight may disagree by.
_SCALE = 1e-2


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
        place = (tensor.step, tensor.rank)
        whole = formats.kind(tensor.dtype) in ("int", "bool")
        key = (place, tensor.dtype, tensor.size)
        if tensor.pass_ != "forward" or not (differs(pair) or (whole and pair.stats is None)):
            if tensor.slot == "output":
                after_output.add(place)
            continue
        if tensor.slot == "output":
            after_output.add(place)
        elif whole and key not in explained:
            if _on_real_tokens(pair, values, real.get(place)):
                yield Given(_kind_of_input(pair), pair)
        elif not whole and place not in after_output and _beyond_cast(pair):
            yield Given("different_inputs", pair)
        if whole:
            explained.add(key)


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
    known: dict[tuple[int | None, int | None, str, str], TensorInfo] = {
        (t.step, t.rank, t.module, t.argument): t
        for t in values.candidate.tensors.values()
        if t.pass_ == "parameter"
    }
    for pair in comparison.pairs:
        if pair.reference.pass_ != "parameter" or not (differs(pair) or pair.stats is None):
            continue
        try:
            if _is_wrong(pair, values, known):
                yield pair
        except LoadError:
            continue


def _is_wrong(
    pair: Pair,
    values: _Values,
    known: dict[tuple[int | None, int | None, str, str], TensorInfo],
) -> bool:
    a, b, ours, theirs = pair.reference, pair.candidate, values.ours, values.theirs
    kinds = formats.kind(a.dtype), formats.kind(b.dtype)
    if a.shape != b.shape:
        return sorted(a.shape) != sorted(b.shape) or not np.array_equal(ours(a).T, theirs(b))
    if kinds == ("float", "float"):
        return not cast_equal(ours(a), theirs(b), a.dtype, b.dtype)
    if kinds == ("int", "int"):
        return not _codes_alike(ours(a), theirs(b))
    if kinds == ("float", "int"):
        scale = known.get((b.step, b.rank, b.module, f"{b.argument}_scale"))
        zero = known.get((b.step, b.rank, b.module, f"{b.argument}_zero"))
        if scale is not None:
            made = [None if t is None else theirs(t) for t in (scale, zero)]
            return not _dequantised_alike(ours(a), theirs(b), made)
    return False


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


def _dequantised_alike(a: Array, codes: Array, made: Sequence[Array | None]) -> bool:
    """Whether codes times scales give a float weight to within a step, but for a few clipped."""
    scale, zero = made
    if scale is None:
        return True
    groups = scale.reshape(codes.shape[0], -1) if scale.size % codes.shape[0] == 0 else scale
    wide = codes.reshape(codes.shape[0], groups.shape[-1] if groups.ndim > 1 else 1, -1)
    origin = 0.0 if zero is None else zero.reshape(groups.shape)[..., None]
    step = groups[..., None] if groups.ndim > 1 else groups
    back = ((wide.astype(np.float64) - origin) * step).reshape(a.shape)
    steps = np.broadcast_to(step, wide.shape).reshape(a.shape)
    return bool(np.mean(np.abs(back - a) > 0.75 * steps) < _SCALE)
