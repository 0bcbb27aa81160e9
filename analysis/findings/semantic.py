"""Detectors of another formula: activation, scale, epsilon, cap, routing weights, residual."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from analysis.findings.inside.attention import attention_of
from analysis.findings.inside.norms import norm_of
from analysis.findings.ratios import meanings
from analysis.findings.registry import detector
from analysis.findings.scene import Scene
from analysis.findings.search import best_value, nice
from analysis.findings.transforms import factor, slope_on
from analysis.findings.trials import Facts, Proposal, Trial
from analysis.replay.functions.activation import FORMS
from core.runs import Array
from language import say

_EPSILONS = tuple(np.geomspace(1e-13, 1.0, 27))
_NICE_EPSILONS = tuple(m * 10.0**-p for p in range(2, 13) for m in (1, 5))
_FACTORS = tuple(np.geomspace(1 / 64, 64, 41))
_CAPS = (5.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0)
_CURVE_BINS = 48


@detector("act_variant", kinds={"activation", "act_mul", "expert"})
def activation(scene: Scene) -> Iterator[Proposal]:
    """Another activation formula: the error is a thin curve in the input value.

    Source: public threads on GELU approximations, whose largest difference is 4.7e-4 near |x| 2.5.
    """
    known = str(scene.attribute("form") or "")
    for form in FORMS:
        predicted = scene.replay(form=form) if form != known else None
        if predicted is not None:
            facts: Facts = {"variant": form, "expected_variant": known}
            yield Trial(mechanism="act_variant", predicted=predicted, prior=0.7, facts=facts)
    if scene.kind == "activation":
        yield from _unknown_curve(scene)


def _unknown_curve(scene: Scene) -> Iterator[Proposal]:
    """A formula that is in no table: the mean error as a function of the input."""
    x = scene.given.floats[0]
    used = scene.error.used
    if x.shape != used.shape or used.sum() < 8 * _CURVE_BINS:
        return
    edges = np.quantile(x[used], np.linspace(0, 1, _CURVE_BINS + 1))
    bins = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, _CURVE_BINS - 1)
    count = np.bincount(bins[used], minlength=_CURVE_BINS)
    total = np.bincount(bins[used], scene.error.error[used], minlength=_CURVE_BINS)
    middle = (edges[:-1] + edges[1:]) / 2
    curve = np.interp(x, middle, total / np.maximum(count, 1))
    yield Trial(
        mechanism="act_variant",
        predicted=scene.error.expected + curve,
        parameters=_CURVE_BINS,
        prior=0.3,
        facts={"variant": say("another curve"), "expected_variant": str(scene.attribute("form"))},
    )


@detector("attn_scale", kinds={"attention", "matmul"})
def score_scale(scene: Scene) -> Iterator[Proposal]:
    """Scores multiplied by another factor than the inverse root of the head's width.

    Fitted inside the softmax for fused kernels; for bare scores it is a constant factor. Source:
    the ratio table: √d, 1/√d, d for padded or unscaled heads.
    """
    model = attention_of(scene)
    if model is None or model.query is None:
        return
    own = model.scale

    def predict(ratio: float) -> Array:
        return model.scaled(own * ratio).output()

    ratio = best_value(predict, scene.error, _FACTORS, steps=30)
    if ratio is None:
        return
    facts: Facts = {"scale": own * ratio, "scale_reference": own, "ratio": ratio}
    if named := meanings(ratio):
        facts["meaning"] = named[0]
    yield Trial(
        mechanism="attn_scale", predicted=predict(ratio), parameters=1, prior=0.7, facts=facts
    )


@detector("softcap_dropped", kinds={"attention", "matmul"})
def soft_cap(scene: Scene) -> Iterator[Proposal]:
    """The soft cap of scores left out, or applied on one side only.

    One side is bounded by the cap (30 and 50 are published), the other passes it.
    """
    model = attention_of(scene)
    if model is None or model.query is None:
        return
    if model.cap:
        predicted = model.capped(0.0).output()
        facts: Facts = {"cap": model.cap}
        yield Trial(mechanism="softcap_dropped", predicted=predicted, prior=0.75, facts=facts)
    for cap in _CAPS:
        if cap != model.cap:
            predicted = model.capped(cap).output()
            yield Trial(
                mechanism="softcap_dropped", predicted=predicted, prior=0.5, facts={"cap": cap}
            )


@detector("norm_eps", kinds={"rms_norm", "layer_norm", "batch_norm"})
def epsilon(scene: Scene) -> Iterator[Proposal]:
    """Another epsilon: rows of low variance are off most, and one value explains them all.

    Source: solving eps = 1 / r² - mean square per row tells 1e-6 from 1e-5 even in bf16 where the
    mean square is near 4e-4.
    """
    known = scene.attribute("eps")
    if not isinstance(known, int | float):
        return

    def predict(eps: float) -> Array | None:
        return scene.replay(eps=eps)

    found = best_value(predict, scene.error, _EPSILONS, steps=36)
    if found is None:
        return
    rounded = nice(found, _NICE_EPSILONS, tolerance=0.1)
    for eps in {found, rounded}:
        predicted = predict(eps)
        if predicted is None:
            return
        yield Trial(
            mechanism="norm_eps",
            predicted=predicted,
            parameters=int(eps == found),
            prior=0.7,
            facts={"eps": eps, "eps_reference": known},
        )


@detector("norm_weight_plus1", "norm_mean_subtract", kinds={"rms_norm", "layer_norm"})
def norm_formula(scene: Scene) -> Iterator[Proposal]:
    """The norm multiplies by 1 + w instead of w or the reverse; or takes the mean off or leaves it.

    Source: public threads on zero-centred weights and on LayerNorm kernels chosen for RMSNorm.
    """
    model = norm_of(scene)
    if model is None:
        return
    yield Trial(
        mechanism="norm_weight_plus1",
        predicted=model.output(one_plus=not model.one_plus),
        prior=0.7,
        facts={"place": say("kernel")},
    )
    yield Trial(
        mechanism="norm_mean_subtract", predicted=model.output(centred=not model.centred), prior=0.7
    )


@detector("rope_scaling", kinds={"rope"})
def rotary_factor(scene: Scene) -> Iterator[Proposal]:
    """Queries or keys after the rotation times a constant, as YaRN's attention factor.

    Source: the ratio table: 0.1 ln f + 1 for stretch f, 1.139 to 1.416 for 4 to 64.
    """
    slope = float(factor(scene.error).ravel()[0])
    facts: Facts = {"factor": slope}
    if named := meanings(slope):
        facts["meaning"] = named[0]
    yield Trial(
        mechanism="rope_scaling",
        predicted=scene.error.expected * slope,
        parameters=1,
        prior=0.7,
        facts=facts,
    )


@detector("lora_scale", kinds={"lora_linear"})
def adapter_scale(scene: Scene) -> Iterator[Proposal]:
    """What the adapter adds is off by a factor, the base product is right.

    Source: the ratio table: rank, its root, alpha; the factor is fitted on output - base.
    """
    base = scene.replay(scale=0.0)
    if base is None:
        return
    delta = scene.error.expected - base
    slope = slope_on(scene.error, delta)
    own = scene.attribute("scale")
    known = float(own) if isinstance(own, int | float) else 1.0
    yield Trial(
        mechanism="lora_scale",
        predicted=scene.error.expected + slope * delta,
        parameters=1,
        prior=0.75,
        facts={"scale": known * (1 + slope), "scale_reference": known},
    )


@detector("router_norm", kinds={"route"})
def router_weights(scene: Scene) -> Iterator[Proposal]:
    """Top-k weights left as they are instead of divided by their sum, or the reverse.

    Source: the setting that normalises top-k probabilities; chosen experts agree.
    """
    current = bool(scene.attribute("renormalised") in (None, True))
    predicted = scene.replay(renormalised=not current)
    if predicted is not None:
        yield Trial(mechanism="router_norm", predicted=predicted, prior=0.7)


@detector("gate_up_swap", kinds={"act_mul", "expert", "linear"})
def exchanged_halves(scene: Scene) -> Iterator[Proposal]:
    """The activation applied to the up half, or the halves of a fused projection exchanged.

    Source: public threads on gate and up concatenated in either order.
    """
    swapped = scene.replay(swapped=not scene.attribute("swapped"))
    if scene.kind == "act_mul" and swapped is not None:
        yield Trial(mechanism="gate_up_swap", predicted=swapped, prior=0.75)
    if scene.kind == "expert":
        yield from _exchanged_expert(scene)
    half = scene.error.expected.shape[-1] // 2
    if scene.kind == "linear" and scene.error.expected.shape[-1] == 2 * half:
        fused = any(word in scene.call.module.lower() for word in ("gate_up", "w13", "fc1"))
        predicted = np.roll(scene.error.expected, half, -1)
        yield Trial(mechanism="gate_up_swap", predicted=predicted, prior=0.8 if fused else 0.3)


def _exchanged_expert(scene: Scene) -> Iterator[Proposal]:
    for name, weight in scene.given.parameters.items():
        half = weight.shape[0] // 2
        stacked = name.rpartition(".")[2] in ("w13", "gate_up_proj") or "gate_up" in name
        predicted = scene.replay(parameters={name: np.roll(weight, half, 0)}) if stacked else None
        if predicted is not None:
            yield Trial(mechanism="gate_up_swap", predicted=predicted, prior=0.75)
