"""Detectors of masks that let through, or turn whole rows to NaN."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from analysis.findings.inside.attention import Attention, attention_of
from analysis.findings.registry import detector
from analysis.findings.scene import Scene
from analysis.findings.search import best_value
from analysis.findings.trials import Facts, Proposal, Sign, Trial
from core.runs import Array

# Mask constants tried, as how far below zero they lie.
_LEAKS = tuple(np.geomspace(0.5, 60, 20))


@detector("mask_leak", kinds={"attention", "masked_softmax"})
def leak(scene: Scene) -> Iterator[Proposal]:
    """Masked keys keep weight because the mask's constant is not low enough.

    Fitted: masked scores set to a constant, or lowered by it. Source: public threads on additive
    masks; masked weights must be 0.
    """
    model = attention_of(scene)
    if model is None or model.mask is None or model.weights is not None or model.mask.all():
        return
    logits, mask = model.logits(), np.broadcast_to(model.mask, model.logits().shape)

    def constant(below: float) -> Array:
        return replace(model, leak=-below).output()

    def lowered(below: float) -> Array:
        added = np.where(mask, logits, logits - below)
        some = mask.any(-1, keepdims=True)
        open_rows = np.where(some, added, logits)
        shown = replace(model, scores=open_rows, mask=np.broadcast_to(some, mask.shape))
        return shown.output()

    for predict, how in ((constant, "set"), (lowered, "added")):
        below = best_value(predict, scene.error, _LEAKS, steps=14)
        if below is not None:
            facts: Facts = {"constant": -below, "how": how}
            yield Trial(
                mechanism="mask_leak",
                predicted=predict(below),
                parameters=1,
                prior=0.7,
                facts=facts,
            )


@detector("nan_masked_rows", kinds={"attention", "masked_softmax", "softmax", "matmul"})
def masked_rows(scene: Scene) -> Iterator[Proposal]:
    """NaN in rows without any allowed key, and in no other.

    Source: public threads on left padding; softmax of a row of -inf is 0 / 0.
    """
    bad = np.isnan(scene.error.observed).any(-1)
    if not bad.any():
        return
    model = attention_of(scene)
    dead = _dead_rows(model, scene) if model is not None else None
    if dead is None:
        dead = ~np.any(scene.error.expected != 0, -1)
    if (bad & dead).any() and not (bad & ~dead).any():
        yield Sign(mechanism="nan_masked_rows", confidence=0.97, facts={"rows": int(bad.sum())})


def _dead_rows(model: Attention, scene: Scene) -> Array | None:
    if model.mask is None:
        return None
    dead = np.broadcast_to(~model.mask.any(-1), (len(scene.error.expected), *model.mask.shape[1:3]))
    shape = scene.error.expected.shape[:-1]
    if len(shape) == 3:
        return np.broadcast_to(dead, shape) if dead.shape[1] == 1 else dead
    every = np.asarray(dead.all(1))
    return every if every.shape == shape else None
