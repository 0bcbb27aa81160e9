"""What the two runs were given: ids, masks, inputs and weights, before any operator is blamed.

One or two modules with a wrong weight are a fault of those modules; weights that differ in many are
another checkpoint, and then everything downstream is another experiment (taxonomy §2, rule 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from analysis.localise.weights import FEW_MODULES, Values, differs, wrong_weights
from analysis.replay.padding import Place, counted
from analysis.replay.pairing import is_sure
from core.comparison import Comparison, Pair
from core.runs import Array, Run
from core.tensors import TensorInfo
from metrics import formats

Real = Mapping[Place, Array]
What = Literal["different_inputs", "different_mask", "different_weights", "weight"]


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
    found = list(_inputs(comparison, Values(reference, candidate), real))
    wrong = list(wrong_weights(comparison, Values(reference, candidate)))
    modules = {p.reference.module for p in wrong}
    first = min((_step(p) for p in comparison.pairs), default=-1)
    if len(modules) <= FEW_MODULES:
        found += [Given("weight", p) for p in wrong]
    else:
        found += [Given("different_weights", p) for p in wrong if _step(p) == first]
    return sorted(found, key=lambda each: each.pair.reference.order)


def _step(pair: Pair) -> int:
    step = pair.reference.step
    return -1 if step is None else step


def _inputs(comparison: Comparison, values: Values, real: Real) -> Iterator[Given]:
    """Integer inputs that no operator before them made, and float inputs before any output.

    An integer input is taken to be handed on when an output of its format and size differed before;
    each difference is told once.
    """
    after_output: set[Place] = set()
    explained: set[tuple[object, ...]] = set()
    for pair in comparison.pairs:
        tensor = pair.reference
        if tensor.pass_ != "forward" or not is_sure(pair):
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


def _handed_in(pair: Pair, values: Values, real: Array | None, *, after: bool) -> What | None:
    """What an input is if it differs and nobody before made it; None otherwise."""
    if pair.reference.slot != "input" or not _off(pair):
        return None
    if _is_whole(pair.reference):
        return _kind_of_input(pair) if _on_real_tokens(pair, values, real) else None
    return "different_inputs" if not after and _beyond_cast(pair) else None


def _on_real_tokens(pair: Pair, values: Values, real: Array | None) -> bool:
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
