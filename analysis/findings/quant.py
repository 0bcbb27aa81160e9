"""Detectors of quantisation: scales, zero points, packing, fp8 encodings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from analysis.findings.inside.products import Product, product_of
from analysis.findings.registry import detector
from analysis.findings.scene import Scene
from analysis.findings.transforms import factor
from analysis.findings.trials import Facts, Proposal, Trial
from core.runs import Array
from language import say

LINEARS = frozenset({"quant_linear", "int4_linear"})
_ZERO_STEPS = (1, -1, 2, -2, 4, -4, 7, -7, 8, -8, 15, -15, 16, -16, 127, -127, 128, -128)


@detector("quant_scale_wrong", kinds=LINEARS)
def wrong_scale(scene: Scene) -> Iterator[Proposal]:
    """The output is scaled back by 1, by the inverse or by the square of the stored scale.

    Each scale among the operands is tried. Source: public threads; 1 / slope is a stored scale.
    """
    for name, scale in _scales(scene):
        with np.errstate(divide="ignore", invalid="ignore"):
            forms = {
                say("ignored"): np.ones_like(scale),
                say("inverted"): 1 / scale,
                say("squared"): scale**2,
            }
        for variant, changed in forms.items():
            parameters = {name: changed} if name in scene.given.parameters else {}
            inputs = {name: changed} if name in scene.given.inputs else {}
            predicted = scene.replay(parameters=parameters, inputs=inputs)
            if predicted is not None and np.isfinite(predicted).all():
                ratio = float(np.median(changed / scale))
                facts: Facts = {"variant": variant, "factor": ratio}
                yield Trial(
                    mechanism="quant_scale_wrong", predicted=predicted, prior=0.75, facts=facts
                )
    product = product_of(scene)
    if product is not None:
        yield from _free_factor(scene, product)


def _scales(scene: Scene) -> Iterator[tuple[str, Array]]:
    for name, value in scene.given.parameters.items():
        if "scale" in name and value.dtype.kind == "f":
            yield name, value
    for name, value in list(scene.given.inputs.items())[1:]:
        if value.dtype.kind == "f":
            yield name, value


def _free_factor(scene: Scene, product: Product) -> Iterator[Proposal]:
    """Some other factor on everything but the bias: one for all, or one a channel."""
    rest = np.broadcast_to(product.rest, scene.error.expected.shape)
    core = scene.error.expected - rest
    shifted = type(scene.error)(
        core, scene.error.observed - rest, scene.error.variance, scene.error.valid
    )
    slope = float(factor(shifted).ravel()[0])
    yield Trial(
        mechanism="quant_scale_wrong",
        predicted=rest + slope * core,
        parameters=1,
        prior=0.5,
        facts={"variant": say("off by a factor"), "factor": slope},
    )
    slopes = factor(shifted, tuple(range(core.ndim - 1)))
    yield Trial(
        mechanism="quant_scale_wrong",
        predicted=rest + slopes * core,
        parameters=int(slopes.size),
        prior=0.4,
        facts={"variant": say("off by a factor per channel"), "factor": float(np.median(slopes))},
    )


@detector("fp8_fnuz", kinds={"quant_linear", "quantise"})
def confused_encoding(scene: Scene) -> Iterator[Proposal]:
    """Fp8 bits read in the other encoding: half or double; or codes scaled to 240 instead of 448.

    Source: public threads on FNUZ devices: slope 0.5 or 2 on values, 448 / 240 on scales.
    """
    if not any("float8" in t.dtype for t in _tensors(scene)):
        return
    if scene.kind == "quantise":
        for ratio in (240 / 448, 448 / 240, 224 / 448, 0.5, 2.0):
            yield Trial(
                mechanism="fp8_fnuz",
                predicted=scene.error.expected * ratio,
                prior=0.75,
                facts={"factor": ratio},
            )
        return
    product = product_of(scene)
    if product is None:
        return
    for ratio in (0.5, 2.0, 0.25, 4.0):
        predicted = ratio * (scene.error.expected - product.rest) + product.rest
        yield Trial(mechanism="fp8_fnuz", predicted=predicted, prior=0.85, facts={"factor": ratio})


def _tensors(scene: Scene) -> list:  # type: ignore[type-arg]
    call = scene.call
    return [*call.inputs.values(), *call.parameters.values(), *call.outputs.values()]


@detector("scale_axis", kinds=LINEARS)
def wrong_axis(scene: Scene) -> Iterator[Proposal]:
    """A per-channel scale applied along the input axis: the weight is off by row × column.

    Source: public threads on square weights; log ratios are a row effect plus a column effect.
    """
    weight, scale = scene.given.parameter("weight"), scene.given.parameter("weight_scale")
    if weight is None or scale is None or scale.size < 2:
        return
    if scene.kind == "quant_linear":
        flat = scale.astype(np.float64).ravel()
        if weight.shape[0] != flat.size or weight.shape[1] % flat.size:
            return
        along = np.tile(flat, weight.shape[1] // flat.size)
        changed = weight.astype(np.float64) * along[None] / flat[:, None]
        predicted = scene.replay(parameters={"weight": changed})
    else:
        predicted = scene.replay(
            parameters={"weight_scale": np.ascontiguousarray(scale.reshape(scale.shape[::-1]).T)}
        )
    if predicted is not None:
        yield Trial(mechanism="scale_axis", predicted=predicted, prior=0.75)


@detector("zero_point_off", kinds=LINEARS)
def zero_point(scene: Scene) -> Iterator[Proposal]:
    """Weights off by a whole number of steps: the zero point is 1, or half the range, off.

    Source: public threads on stored zero points minus one and on signed against unsigned codes.
    """
    weight = scene.given.parameter("weight", "qweight")
    if weight is None:
        return
    for step in _ZERO_STEPS:
        # Moving all codes is moving the zero point, whether or not one is stored.
        predicted = scene.replay(parameters={"weight": weight.astype(np.float64) - step})
        if predicted is not None:
            yield Trial(
                mechanism="zero_point_off", predicted=predicted, prior=0.7, facts={"offset": step}
            )
    zero = scene.given.parameter("weight_zero", "zeros", "qzeros")
    if zero is not None:
        predicted = scene.replay(parameters={"weight_zero": np.zeros_like(zero)})
        if predicted is not None:
            facts: Facts = {"offset": say("its whole size")}
            yield Trial(mechanism="zero_point_off", predicted=predicted, prior=0.6, facts=facts)


@detector("nibble_order", kinds=LINEARS)
def nibbles(scene: Scene) -> Iterator[Proposal]:
    """Adjacent int4 codes exchanged, along either axis, or eight of them in packing order.

    Source: public threads on low and high nibble first, and on the order 0 2 4 6 1 3 5 7.
    """
    weight = scene.given.parameter("weight", "qweight")
    if weight is None or weight.ndim != 2:
        return
    for changed in swapped_nibbles(weight):
        predicted = scene.replay(parameters={"weight": changed})
        if predicted is not None:
            yield Trial(mechanism="nibble_order", predicted=predicted, prior=0.7)


def swapped_nibbles(weight: Array) -> Iterator[Array]:
    """A code matrix (out, in) with the usual confusions of packing."""
    rows, columns = weight.shape
    if columns % 2 == 0:
        yield weight.reshape(rows, -1, 2)[..., ::-1].reshape(rows, columns)
        half = columns // 2
        yield weight.reshape(rows, half, 2).swapaxes(1, 2).reshape(rows, columns)
        yield weight.reshape(rows, 2, half).swapaxes(1, 2).reshape(rows, columns)
    if rows % 2 == 0:
        yield weight.reshape(-1, 2, columns)[:, ::-1].reshape(rows, columns)
    if columns % 8 == 0:
        packed = weight.reshape(rows, -1, 8)
        for order in ((0, 2, 4, 6, 1, 3, 5, 7), (0, 4, 1, 5, 2, 6, 3, 7), tuple(range(7, -1, -1))):
            yield packed[..., list(order)].reshape(rows, columns)
