"""Detectors of gradients: scaled, kept over steps, wrong in attention's backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from analysis.findings.ratios import meanings
from analysis.findings.registry import detector
from analysis.findings.scene import Scene, tensor_at
from analysis.findings.transforms import factor, slope_on
from analysis.findings.trials import Facts, Proposal, Sign, Trial
from analysis.replay.functions.attention import attended
from analysis.replay.functions.gradients import GRADIENTS
from analysis.replay.registry import FUNCTIONS
from core.runs import Array
from language import say

# Earlier steps whose gradient may still be contained.
_STEPS = 4


@detector("grad_scale", slots=("gradient",))
def scaled_gradient(scene: Scene) -> Iterator[Proposal]:
    """One gradient times a constant while the forward pass and other gradients agree.

    Source: the ratio table: loss scales 2^8 to 2^24, parallel sizes, number of micro-batches.
    """
    slope = float(factor(scene.error).ravel()[0])
    facts: Facts = {"factor": slope}
    if named := meanings(slope):
        facts["meaning"] = named[0]
    own = scene.site.slot.startswith("backward_params")
    yield Trial(
        mechanism="grad_scale",
        predicted=scene.error.expected * slope,
        parameters=1,
        prior=0.7 if own else 0.4,
        facts=facts,
    )
    if scene.kind == "attention":
        facts = {"variant": say("a factor of {slope:.4g} on scores' gradients", slope=slope)}
        yield Trial(
            mechanism="attn_backward",
            predicted=scene.error.expected * slope,
            parameters=1,
            prior=0.8,
            facts=facts,
        )


@detector("zero_grad_missing", slots=("gradient",))
def kept_gradient(scene: Scene) -> Iterator[Proposal]:
    """The gradient of a parameter contains the one of the step before.

    Tried as their sum, with whatever the step before held. Source: gradient bookkeeping in public
    threads: grad(t) contains grad(t - 1).
    """
    call = scene.call.earlier
    for _ in range(_STEPS):
        if call is None:
            return
        tensor = tensor_at(call, scene.site.slot)
        if tensor is not None and tensor.shape == scene.error.expected.shape:
            old = np.asarray(call.value(tensor), np.float64)
            facts: Facts = {"step": -1 if call.step is None else call.step}
            added = slope_on(scene.error, old)
            yield Trial(
                mechanism="zero_grad_missing",
                predicted=scene.error.expected + old,
                prior=0.8,
                facts=facts,
            )
            yield Trial(
                mechanism="zero_grad_missing",
                predicted=scene.error.expected + added * old,
                parameters=1,
                prior=0.5,
                facts={**facts, "share": added},
            )
        call = call.earlier


@detector("attn_backward", kinds={"attention"}, slots=("gradient",))
def attention_backward(scene: Scene) -> Iterator[Proposal]:
    """The gradients of queries and keys are wrong, that of the values is right.

    dq and dk share dS = P (dP - rowsum(P dP)); the row sum is tried as left out, halved, and free
    for every row. Source: public threads on flash attention backward kernels.
    """
    if scene.argument not in ("0", "1"):
        return
    for name, share in ((say("the row sum left out"), 0.0), (say("half the row sum"), 0.5)):
        predicted = _with_row_sum(scene, share)
        if predicted is not None:
            yield Trial(
                mechanism="attn_backward", predicted=predicted, prior=0.8, facts={"variant": name}
            )
    if scene.argument == "0":
        yield from _free_row_sum(scene)
    yield Sign(mechanism="attn_backward", confidence=0.8, facts={"wrong": "dQ, dK"})


def _with_row_sum(scene: Scene, share: float) -> Array | None:
    """The gradient when only a share of the row sum is taken off: that is linear in the share."""
    lead = _lead(scene)
    if lead is None:
        return None
    whole, without = lead
    return scene.error.expected + (1 - share) * (without - whole)


def _lead(scene: Scene) -> tuple[Array, Array] | None:
    """The gradient as it should be, and with the row sum left out."""
    given = scene.given
    into = [v for name, v in given.inputs.items() if name.startswith("gradient.")]
    plain = replace(
        given, inputs={n: v for n, v in given.inputs.items() if not n.startswith("gradient.")}
    )
    attributes = {**FUNCTIONS["attention"].defaults, **scene.site.attributes}
    if not into:
        return None
    whole = GRADIENTS["attention"](plain, attributes, into)[f"input.{scene.argument}"]
    a = attended(plain, attributes)
    heads = a.output.shape[1]
    do = into[0]
    if do.ndim == 3:
        do = do.reshape(*do.shape[:2], heads, -1).transpose(0, 2, 1, 3)
    term = (do * a.output).sum(-1, keepdims=True)  # Σ P dP, by rows
    ds = a.weights * term * a.slope
    query, key = given.floats[:2]
    shared = key.shape[1]
    if scene.argument == "0":
        lost = ds @ np.repeat(key, heads // shared, 1)
    else:
        lost = (ds.swapaxes(-1, -2) @ query).reshape(len(key), shared, -1, *key.shape[2:]).sum(2)
    return whole, whole + lost.reshape(whole.shape)


def _free_row_sum(scene: Scene) -> Iterator[Proposal]:
    """The row sum of every query free: the error of dq is then along P K, row by row."""
    lead = _lead(scene)
    if lead is None:
        return
    along = lead[1] - lead[0]
    energy = (along**2).sum(-1, keepdims=True)
    used = np.where(scene.error.used, scene.error.error, 0.0)
    share = (used * along).sum(-1, keepdims=True) / np.maximum(energy, 1e-300)
    yield Trial(
        mechanism="attn_backward",
        predicted=scene.error.expected + share * along,
        parameters=int(share.size),
        prior=0.6,
        facts={"variant": say("a wrong row sum in every row")},
    )
