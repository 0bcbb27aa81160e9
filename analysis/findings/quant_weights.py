"""Detectors of stored codes, scales, zero points and biases that differ."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from analysis.findings.quant import swapped_nibbles
from analysis.findings.ratios import meanings
from analysis.findings.registry import detector
from analysis.findings.scene import Scene
from analysis.findings.transforms import factor
from analysis.findings.trials import Facts, Proposal, Sign, Trial
from analysis.findings.weights import equal, stored_reference
from core.runs import Array
from language import say


@detector(
    "quant_scale_wrong",
    "zero_point_off",
    "nibble_order",
    "fp8_fnuz",
    "scale_axis",
    "bias_missing",
    slots=("parameter",),
)
def quantised_parameter(scene: Scene) -> Iterator[Proposal]:
    """Codes, zero points, scales and biases off by the usual confusions.

    Source: public threads on packing order, on zero points minus one, on inverted scales.
    """
    reference, observed = stored_reference(scene), scene.error.observed
    if reference is None or reference.shape != observed.shape:
        return
    name = scene.argument.lower()
    difference = np.unique(observed - reference)
    if "zero" in name and difference.size == 1:
        facts: Facts = {"offset": int(difference[0])}
        yield Sign(mechanism="zero_point_off", confidence=0.97, facts=facts)
    if reference.ndim == 2 and scene.dtype in ("int8", "uint8", "int32"):
        if any(np.array_equal(s, observed) for s in swapped_nibbles(reference)):
            yield Sign(mechanism="nibble_order", confidence=0.97)
        if difference.size == 1:
            facts = {"offset": -int(difference[0])}
            yield Sign(mechanism="zero_point_off", confidence=0.9, facts=facts)
    if "bias" in name and not observed.any():
        facts = {"start": 0, "stop": observed.size - 1}
        yield Sign(mechanism="bias_missing", confidence=0.95, facts=facts)
    yield from _factors(scene, reference, observed)


def _factors(scene: Scene, reference: Array, observed: Array) -> Iterator[Proposal]:
    with np.errstate(divide="ignore", invalid="ignore"):
        forms = {say("ignored"): np.ones_like(reference), say("inverted"): 1 / reference}
    forms[say("squared")] = reference**2
    if "scale" in scene.argument.lower():
        for variant, form in forms.items():
            if equal(form, observed):
                facts: Facts = {"variant": variant}
                yield Sign(mechanism="quant_scale_wrong", confidence=0.97, facts=facts)
    slope = float(factor(scene.error).ravel()[0])
    if slope and equal(slope * reference, observed):
        fnuz = "float8" in scene.dtype and abs(abs(np.log2(abs(slope))) - 1) < 1e-3
        slug = "fp8_fnuz" if fnuz else "quant_scale_wrong"
        facts = {"factor": slope, "variant": say("off by a factor")}
        if named := meanings(slope):
            facts["meaning"] = named[0]
        yield Trial(mechanism=slug, predicted=slope * reference, prior=0.8, facts=facts)
