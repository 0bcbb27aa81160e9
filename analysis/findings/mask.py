"""Detectors of masks, positions and cache blocks that differ from those handed in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from analysis.findings.inside.attention import attention_of
from analysis.findings.inside.masks import MaskParts, mask_parts, variations
from analysis.findings.inside.rotation import Rotation, rotation_of
from analysis.findings.profiles import bounding_block
from analysis.findings.registry import detector
from analysis.findings.scene import Scene
from analysis.findings.trials import Facts, Proposal, Sign, Trial
from core.runs import Array
from language import say

# Positions tried for each token: around its own, and from 0 as far as this.
_POSITIONS = 512
_TOKENS = 1024


@detector(
    "pads_attended",
    "causal_alignment",
    "causal_off_by_one",
    "window_off_by_one",
    kinds={"attention", "masked_softmax"},
)
def other_mask(scene: Scene) -> Iterator[Proposal]:
    """Attention under the mask with one part changed: padding, diagonal, corner or window.

    The mask is taken apart into these; each variation is replayed. Source: public threads on
    padding, top-left against bottom-right alignment, and windows that count the token itself.
    """
    model = attention_of(scene)
    if model is None or model.mask is None or model.weights is not None:
        return
    parts = mask_parts(model.mask, scene.given.positions)
    if parts is None:
        return
    for slug, facts, mask in variations(_for_batch(parts, len(scene.error.expected))):
        predicted = replace(model, mask=mask).output()
        yield Trial(mechanism=slug, predicted=predicted, prior=0.7, facts=facts)


def _for_batch(parts: MaskParts, batch: int) -> MaskParts:
    width = parts.padding.shape[1]
    return replace(parts, padding=np.broadcast_to(parts.padding, (batch, width)))


@detector(
    "pads_attended",
    "causal_alignment",
    "causal_off_by_one",
    "window_off_by_one",
    kinds={"causal_mask"},
)
def wrong_mask(scene: Scene) -> Iterator[Proposal]:
    """The mask itself was built with one part wrong: the same variations, compared exactly.

    Sources as for masks inside attention; a boolean output leaves no room for rounding.
    """
    expected = scene.error.expected
    if expected.ndim != 4:
        return
    parts = mask_parts(expected != 0)
    if parts is None:
        return
    for slug, facts, mask in variations(parts):
        predicted = mask.astype(np.float64)
        if np.array_equal(predicted, scene.error.observed):
            yield Sign(mechanism=slug, confidence=0.97, facts=facts)


@detector("cache_block_reuse", kinds={"cache", "unknown"})
def foreign_block(scene: Scene) -> Iterator[Proposal]:
    """A range of tokens in the cache holds another sequence's values, or old ones.

    The range starts and ends on a block. Source: public threads on paged caches; the block usually
    equals another block of the same dump.
    """
    error = scene.error
    wrong = error.wrong()
    known = (
        scene.kind == "cache" or "cache" in f"{scene.call.module_class} {scene.call.module}".lower()
    )
    if not known or error.expected.ndim != 4 or not wrong.any():
        return
    for sample in np.nonzero(wrong.any((1, 2, 3)))[0]:
        block = bounding_block(wrong[sample])
        if block is None:
            continue
        tokens = slice(block.start[1], block.stop[1])
        facts: Facts = {"start": block.start[1], "stop": block.stop[1] - 1}
        source = _source_of(error.observed, int(sample), tokens)
        if source:
            facts["source"] = source
            yield Sign(mechanism="cache_block_reuse", confidence=0.96, facts=facts)
        yield Sign(mechanism="cache_block_reuse", confidence=0.8, facts=facts)


def _source_of(cache: Array, sample: int, tokens: slice) -> str:
    """Where else in a cache (batch, heads, tokens, width) a block stands; empty if nowhere."""
    block = cache[sample, :, tokens]
    length = block.shape[1]
    for other in range(len(cache)):
        for start in range(cache.shape[2] - length + 1):
            elsewhere = other != sample or abs(start - tokens.start) >= length
            if elsewhere and np.array_equal(cache[other, :, start : start + length], block):
                return say(
                    "tokens {start} to {start2} of sequence {other}",
                    start=start,
                    start2=start + length - 1,
                    other=other,
                )
    return "zeros" if not block.any() else ""


@detector("cache_block_reuse", kinds={"attention"})
def foreign_keys(scene: Scene) -> Iterator[Proposal]:
    """Attention over a block of keys and values that belongs to another sequence of the batch.

    For kernels that read a paged cache themselves. Source: public threads on block tables; blocks
    of 8 to 64 tokens.
    """
    model = attention_of(scene)
    if model is None or model.query is None or model.key is None or model.value is None:
        return
    keys, values = model.key, model.value
    samples, length = len(keys), keys.shape[2]
    if samples < 2 or samples > 8 or length > _POSITIONS:
        return
    wrong = np.nonzero(scene.error.wrong().reshape(samples, -1).any(1))[0]
    for sample in wrong[:2]:
        for size in (8, 16, 32, 64):
            for start in range(0, length - size + 1, size):
                for other in (o for o in range(samples) if o != sample):
                    span = slice(start, start + size)
                    k, v = keys.copy(), values.copy()
                    k[sample, :, span], v[sample, :, span] = k[other, :, span], v[other, :, span]
                    source = say("those tokens of sequence {other}", other=other)
                    yield Trial(
                        mechanism="cache_block_reuse",
                        predicted=replace(model, key=k, value=v).output(),
                        parameters=3,
                        prior=0.5,
                        facts={"start": start, "stop": start + size - 1, "source": source},
                    )


@detector("position_offset", kinds={"rope"})
def positions(scene: Scene) -> Iterator[Proposal]:
    """The kernel rotates by other positions: shifted by one number, restarted, or reset.

    Each token's position is sought among all near ones; shifts and periods are then tried as one
    rule for all. Source: public threads on decoding, padding and packed sequences.
    """
    model = rotation_of(scene)
    if model is None:
        return
    own = model.positions.astype(np.int64)
    for name, value, changed in _rules(own):
        facts: Facts = {name: value}
        predicted = model.at(changed).output()
        yield Trial(mechanism="position_offset", predicted=predicted, prior=0.7, facts=facts)
    if own.size <= _TOKENS:
        found = _nearest(scene, model, own)
        shifts = np.unique((found - own)[found != own])
        facts = {"offset": ", ".join(map(str, shifts[:6]))}
        yield Trial(
            mechanism="position_offset",
            predicted=model.at(found).output(),
            parameters=max(1, len(shifts)),
            prior=0.5,
            facts=facts,
        )


def _rules(own: Array) -> Iterator[tuple[str, int, Array]]:
    for offset in (1, -1, 2, -2, 3, -3, 4, -4):
        yield "offset", offset, own + offset
    first = int(own.min())
    if first:
        yield "offset", -first, own - first
    yield "offset", -int(own.max()), np.zeros_like(own)
    longest = int(own.max()) + 1
    for period in range(2, min(longest, _POSITIONS)):
        yield "period", period, own % period
    slots = np.broadcast_to(np.arange(own.shape[1]) + first, own.shape)
    if not np.array_equal(slots, own):
        yield "offset", int((slots - own).max()), slots


def _nearest(scene: Scene, model: Rotation, own: Array) -> Array:
    """For each token the position whose rotation is nearest to what was observed."""
    error = scene.error
    used = np.where(error.used, 1.0, 0.0)
    reach = np.unique(np.concatenate([np.arange(-16, 17), np.arange(-64, 65, 8)]))
    axes = (2, 3) if model.heads_last else (1, 3)
    best, left = own.copy(), np.full(own.shape, np.inf)
    for shift in reach[np.argsort(np.abs(reach))]:
        at = np.maximum(own + shift, 0)
        distance = ((error.observed - model.at(at).output()) ** 2 * used).sum(axes)
        better = distance < 0.5 * left
        best, left = np.where(better, at, best), np.where(better, distance, left)
    return np.asarray(best)
