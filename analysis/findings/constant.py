"""Detectors of constants that lost bits: 1 + weight of a norm, scalar factors."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from analysis.findings.inside.norms import norm_of
from analysis.findings.registry import detector
from analysis.findings.rounding import SIXTEEN_BIT, round_to
from analysis.findings.scene import Scene
from analysis.findings.transforms import factor
from analysis.findings.trials import Facts, Proposal, Trial
from language import say

# A constant rounded to bfloat16 is off by at most 2^-8 of itself (measured 0.998249 for 2.927).
_MOST = 2.0**-8


@detector("norm_1p_16bit", kinds={"rms_norm", "layer_norm"})
def rounded_one_plus(scene: Scene) -> Iterator[Proposal]:
    """(1 + weight) of a norm formed in 16 bits: a constant ratio in channels where it rounds.

    Source: public threads on zero-centred norm weights; the ratio is bf16(1 + w) / (1 + w).
    """
    model = norm_of(scene)
    if model is None or not model.one_plus:
        return
    for name in SIXTEEN_BIT:
        predicted = model.output(weight=round_to(1 + model.weight, name))
        facts: Facts = {"format": name}
        yield Trial(mechanism="norm_1p_16bit", predicted=predicted, prior=0.7, facts=facts)


@detector("const_rounded")
def rounded_constant(scene: Scene) -> Iterator[Proposal]:
    """One factor close to 1 on every value: that of a scalar rounded to 16 bits.

    The slope must equal round(c) / c of a scalar the operator uses, or of the root of its width
    (embedding scales). Source: public threads on embedding scales, factor 1.00134 for √3072.
    """
    slope = float(factor(scene.error).ravel()[0])
    if slope == 1 or abs(slope - 1) > _MOST:
        return
    for constant in _constants(scene):
        for name in SIXTEEN_BIT:
            rounded = float(round_to(np.array([constant]), name)[0])
            if rounded != constant and math.isfinite(rounded):
                yield Trial(
                    mechanism="const_rounded",
                    predicted=scene.error.expected * (rounded / constant),
                    prior=0.8,
                    facts={"constant": constant, "rounded": rounded, "format": name},
                )
    if scene.kind in ("mul", "embedding"):
        yield Trial(
            mechanism="const_rounded",
            predicted=scene.error.expected * slope,
            parameters=1,
            prior=0.5,
            facts={"factor": slope, "format": say("16 bits")},
        )


def _constants(scene: Scene) -> Iterator[float]:
    operands = [*scene.given.inputs.values(), *scene.given.parameters.values()]
    yield from (float(v.ravel()[0]) for v in operands if v.size == 1 and v.dtype.kind == "f")
    if scene.kind in ("mul", "embedding"):
        yield math.sqrt(scene.error.expected.shape[-1])
    values = (scene.attribute(name) for name in ("scale", "other", "arg1"))
    yield from (float(v) for v in values if isinstance(v, float) and v != 0)
