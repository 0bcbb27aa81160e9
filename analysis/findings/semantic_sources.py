"""Detectors of values taken from elsewhere: residual, embedding row, head."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from analysis.findings.inside.products import product_of
from analysis.findings.precision import HEAD
from analysis.findings.registry import detector
from analysis.findings.scene import Scene
from analysis.findings.trials import Facts, Proposal, Sign, Trial
from analysis.replay.site import OperatorCall
from core.runs import Array
from language import say

# Tensors upstream of a residual addition that may have been added instead.
_UPSTREAM = 60


@detector("residual_wrong", kinds={"add"})
def residual(scene: Scene) -> Iterator[Proposal]:
    """The sum of a residual addition holds another addend than its inputs say, or lacks one.

    Tried: either addend alone, doubled or subtracted, and every earlier output of the same shape
    in place of one. Source: public threads on residuals kept before or after the norm.
    """
    inputs = [v.astype(np.float64) for v in scene.given.inputs.values()][:2]
    if len(inputs) < 2 or inputs[0].shape != scene.error.expected.shape != inputs[1].shape:
        return
    a, b = inputs
    simple = {
        "the first addend alone": a,
        "the second addend alone": b,
        "the second addend counted twice": a + 2 * b,
        "the first addend counted twice": 2 * a + b,
        "the difference of the addends": a - b,
    }
    for name, predicted in simple.items():
        yield Trial(
            mechanism="residual_wrong", predicted=predicted, prior=0.7, facts={"variant": name}
        )
    if scene.whole:
        yield from _other_addends(scene, a, b)


def _other_addends(scene: Scene, a: Array, b: Array) -> Iterator[Proposal]:
    calls = scene.site.calls_candidate
    if scene.call.run is scene.site.reference_run:
        calls = scene.site.calls_reference
    earlier = [c for c in calls if c.order < scene.call.order and c.step == scene.call.step]
    for call in earlier[-_UPSTREAM:]:
        for tensor in call.outputs.values():
            if tensor.shape != a.shape:
                continue
            value = np.asarray(call.value(tensor), np.float64)
            for kept in (a, b):
                facts: Facts = {
                    "variant": say("its inputs with {id} in place of one", id=tensor.id)
                }
                yield Trial(
                    mechanism="residual_wrong", predicted=kept + value, prior=0.6, facts=facts
                )


@detector("padding_idx_zero", kinds={"embedding"})
def zeroed_token(scene: Scene) -> Iterator[Proposal]:
    """All wrong rows of an embedding belong to one token id and are zero.

    Source: public threads on padding indices set on one side only.
    """
    ids = next(iter(scene.given.whole), None)
    if ids is None or ids.shape != scene.error.expected.shape[:-1]:
        return
    gone = ~scene.error.observed.any(-1) & scene.error.expected.any(-1)
    tokens = np.unique(ids[gone])
    if tokens.size == 1:
        predicted = np.where((ids == tokens[0])[..., None], 0.0, scene.error.expected)
        facts: Facts = {"token": int(tokens[0])}
        yield Trial(mechanism="padding_idx_zero", predicted=predicted, prior=0.8, facts=facts)


@detector("lmhead_untied", kinds={"linear"})
def foreign_head(scene: Scene) -> Iterator[Proposal]:
    """The output head multiplies with values that are not its weight.

    Tried: the embedding's table. Otherwise logits unrelated to the expected ones while the hidden
    states agree. Source: public threads on heads neither tied nor loaded; cosine near 0.
    """
    if not HEAD.search(scene.call.module):
        return
    product = product_of(scene)
    table = _embedding_table(scene)
    if product is not None and table is not None and table.shape == product.w.shape:
        predicted = product.output(w=table)
        yield Trial(mechanism="lmhead_untied", predicted=predicted, prior=0.7)
    error = scene.error
    used = error.used
    a, b = error.expected[used], error.observed[used]
    size = float(np.sqrt((a @ a) * (b @ b)))
    cosine = float(a @ b) / size if size else 0.0
    if abs(cosine) < 0.2:
        yield Sign(mechanism="lmhead_untied", confidence=0.6, facts={"cosine": cosine})


def _embedding_table(scene: Scene) -> Array | None:
    def is_table(call: OperatorCall) -> bool:
        return "embed" in call.module_class.lower() and bool(call.parameters)

    call = next((c for c in scene.site.calls_candidate if is_table(c)), None)
    if call is None:
        return None
    tensor = next(iter(call.parameters.values()))
    return np.asarray(call.value(tensor), np.float64)
