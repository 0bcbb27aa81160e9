"""Detectors of stored parameters that differ: transposed, permuted, stale, foreign, or all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from analysis.findings.layout_heads import WIDTHS, best_order
from analysis.findings.parallel import SHARDS
from analysis.findings.precision import HEAD
from analysis.findings.registry import detector
from analysis.findings.routing import number, siblings
from analysis.findings.scene import Scene, tensor_at
from analysis.findings.trials import Facts, Proposal, Sign
from core.comparison import Pair
from core.runs import Array
from language import say
from metrics.error import relative_l2
from metrics.formats import coarser_of, format_of, kind

# Two modules with a wrong weight are a fault, more are another checkpoint.
_FAULTY_MODULES = 2


def stored_reference(scene: Scene) -> Array | None:
    """The reference's value of the parameter, whatever its shape."""
    tensor = tensor_at(scene.twin, scene.site.slot)
    if tensor is None or scene.twin is None:
        return None
    return np.asarray(scene.twin.value(tensor), np.float64)


@detector("different_weights", slots=("parameter",))
def another_checkpoint(scene: Scene) -> Iterator[Proposal]:
    """Stored weights differ in more than two modules: the runs start from different weights.

    Triage: one or two wrong weights are a loading fault, many are another checkpoint.
    """
    modules = _differing(scene)
    many = 0.9 if modules > _FAULTY_MODULES else 0.4
    yield Sign(mechanism="different_weights", confidence=many, facts={"modules": modules})


def _differing(scene: Scene) -> int:
    """In how many modules a stored parameter differs."""
    return len({p.reference.operator for p in scene.site.comparison.pairs if _differs(p)})


def _differs(pair: Pair) -> bool:
    """Whether a parameter differs by more than a cast to the coarser of the two formats."""
    if pair.reference.pass_ != "parameter":
        return False
    if pair.stats is None:
        return pair.problem is not None
    if pair.stats.equal == pair.stats.count:
        return False
    coarse = coarser_of(pair.reference.dtype, pair.candidate.dtype)
    if pair.reference.dtype == pair.candidate.dtype or kind(coarse) != "float":
        return True
    return relative_l2(pair.stats) > 2 * format_of(coarse).unit_roundoff


@detector("weight_transposed", slots=("parameter",))
def stored_transposed(scene: Scene) -> Iterator[Proposal]:
    """The stored weight is the reference's transpose, or its memory in the other shape.

    Source: public threads on converters; equal within one rounding to bfloat16.
    """
    reference, observed = stored_reference(scene), scene.error.observed
    if reference is None or reference.ndim != 2:
        return
    for other in (reference.T, reference.T.reshape(reference.shape)):
        if other.shape == observed.shape and equal(other, observed):
            facts: Facts = {"place": say("stored weight")}
            yield Sign(mechanism="weight_transposed", confidence=0.98, facts=facts)
            return


def equal(a: Array, b: Array) -> bool:
    """Equal within one rounding to bfloat16 of either, element by element."""
    return bool(np.all(np.abs(a - b) <= 2.0**-7 * np.maximum(np.abs(a), np.abs(b)) + 1e-30))


@detector("norm_weight_plus1", slots=("parameter",))
def one_more(scene: Scene) -> Iterator[Proposal]:
    """Every element is larger, or smaller, by exactly one.

    Source: conversion of zero-centred norm weights; the difference has no spread.
    """
    reference = stored_reference(scene)
    if reference is None or reference.shape != scene.error.observed.shape:
        return
    for step in (1.0, -1.0):
        if equal(reference + step, scene.error.observed) and reference.size > 1:
            facts: Facts = {"place": say("stored weight"), "offset": step}
            yield Sign(mechanism="norm_weight_plus1", confidence=0.98, facts=facts)


@detector("same_shard", slots=("parameter",))
def stored_shard(scene: Scene) -> Iterator[Proposal]:
    """The stored weight is one shard of the reference's, repeated, along either axis.

    Source: public threads on ranks that all cut the first slice of a checkpoint.
    """
    reference, observed = stored_reference(scene), scene.error.observed
    if reference is None or reference.shape != observed.shape:
        return
    for axis in range(reference.ndim):
        for count in (c for c in SHARDS if reference.shape[axis] % c == 0):
            for shard, piece in enumerate(np.split(reference, count, axis)):
                if equal(np.concatenate([piece] * count, axis), observed):
                    facts: Facts = {"shard": shard, "shards": count}
                    yield Sign(mechanism="same_shard", confidence=0.97, facts=facts)
                    return


@detector("head_permuted", "gate_up_swap", "layout_reshape", slots=("parameter",))
def permuted_rows(scene: Scene) -> Iterator[Proposal]:
    """Blocks of rows or columns in another order; exchanged halves of a fused gate and up.

    Orders are found block by block, from halves down to single rows.
    """
    reference, observed = stored_reference(scene), scene.error.observed
    if reference is None or reference.shape != observed.shape or reference.ndim == 0:
        return
    for axis in range(reference.ndim):
        a, b = np.moveaxis(reference, axis, 0), np.moveaxis(observed, axis, 0)
        half = len(a) // 2
        for width in sorted({half, *(w for w in WIDTHS if w < half), 4, 2, 1}, reverse=True):
            order = best_order(a, b, width) if width else None
            if order is None or order == list(range(len(order))):
                continue
            if len(set(order)) < len(order):
                continue
            fused = any(w in scene.site.slot + scene.call.module for w in ("w13", "gate_up"))
            slug = "gate_up_swap" if fused and order == [1, 0] else "head_permuted"
            facts: Facts = {"order": ", ".join(map(str, order[:16])), "width": width}
            yield Sign(mechanism=slug, confidence=0.95, facts=facts)
            return
    if np.array_equal(np.sort(reference, None), np.sort(observed, None)):
        facts = {"order": say("not found")}
        yield Sign(mechanism="layout_reshape", confidence=0.75, facts=facts)


@detector("stale_weight", slots=("parameter",))
def earlier_weight(scene: Scene) -> Iterator[Proposal]:
    """The stored weight is that of an earlier step, of either run.

    Source: public threads on weight synchronisation, lag -1 after each sync.
    """
    for call in (*scene.site.calls_candidate, *scene.site.calls_reference):
        if call.operator != scene.call.operator or call.order == scene.call.order:
            continue
        tensor = tensor_at(call, scene.site.slot)
        before = call.step is None or scene.call.step is None or call.step < scene.call.step
        if tensor is None or tensor.shape != scene.tensor.shape or not before:
            continue
        if equal(np.asarray(call.value(tensor), np.float64), scene.error.observed):
            facts: Facts = {"step": -1 if call.step is None else call.step}
            yield Sign(mechanism="stale_weight", confidence=0.96, facts=facts)
            return


@detector("expert_mapping", slots=("parameter",))
def other_expert(scene: Scene) -> Iterator[Proposal]:
    """The stored weight is another expert's.

    Source: public threads on expert placement; equal within one rounding to bfloat16.
    """
    if scene.twin is None:
        return
    for call in siblings(scene.twin, scene.site.calls_reference):
        tensor = tensor_at(call, scene.site.slot)
        if tensor is None or tensor.shape != scene.tensor.shape:
            continue
        if equal(np.asarray(call.value(tensor), np.float64), scene.error.observed):
            facts: Facts = {"expert": number(scene.call.module), "other": number(call.module)}
            yield Sign(mechanism="expert_mapping", confidence=0.97, facts=facts)
            return


@detector("lmhead_untied", slots=("parameter",))
def other_head(scene: Scene) -> Iterator[Proposal]:
    """The output head's stored weight is unrelated to the reference's.

    Source: public threads on heads neither tied nor loaded: cosine near 0, standard deviation 0.02.
    """
    reference, observed = stored_reference(scene), scene.error.observed
    if reference is None or reference.shape != observed.shape:
        return
    if not HEAD.search(scene.call.module):
        return
    a, b = reference.ravel(), observed.ravel()
    size = float(np.sqrt((a @ a) * (b @ b)))
    cosine = float(a @ b) / size if size else 0.0
    if cosine < 0.5:
        alone = 0.93 if _differing(scene) <= _FAULTY_MODULES else 0.6
        yield Sign(mechanism="lmhead_untied", confidence=alone, facts={"cosine": cosine})


@detector("padding_idx_zero", slots=("parameter",))
def zero_row(scene: Scene) -> Iterator[Proposal]:
    """One row of a table is zero, all others are the reference's.

    Source: public threads on padding indices set on one side only.
    """
    reference, observed = stored_reference(scene), scene.error.observed
    if reference is None or reference.shape != observed.shape or reference.ndim != 2:
        return
    wrong = np.nonzero((reference != observed).any(1))[0]
    if wrong.size == 1 and not observed[wrong[0]].any():
        facts: Facts = {"token": int(wrong[0])}
        yield Sign(mechanism="padding_idx_zero", confidence=0.97, facts=facts)
