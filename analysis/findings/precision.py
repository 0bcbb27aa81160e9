"""Detectors of arithmetic narrower than the run: operands, accumulators, statistics, phases."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from analysis.findings.inside.attention import attention_of
from analysis.findings.inside.norms import Norm, norm_of
from analysis.findings.inside.products import KINDS as PRODUCTS
from analysis.findings.inside.rotation import rotation_of
from analysis.findings.inside.softmax import narrow_softmax
from analysis.findings.registry import detector
from analysis.findings.rounding import (
    SIXTEEN_BIT,
    narrowest_format,
    round_to,
)
from analysis.findings.scene import Scene
from analysis.findings.transforms import factor
from analysis.findings.trials import Facts, Proposal, Sign, Trial
from core.runs import Array
from language import say
from metrics.formats import FORMATS

HEAD = re.compile(r"(^|\.)(lm_head|output_layer|embed_out|output|head|logits)$")


def _narrower(dtype: str) -> list[str]:
    """16-bit formats with fewer significand bits than a run's own."""
    own = FORMATS[dtype].precision if dtype in FORMATS else 24
    return [name for name in SIXTEEN_BIT if FORMATS[name].precision < own]


@detector("tf32_gemm", "lowprec_compute", kinds=PRODUCTS | {"matmul", "convolution"})
def narrow_operands(scene: Scene) -> Iterator[Proposal]:
    """Operands of a product rounded to 8 or 11 bits while the output keeps the run's own.

    Replaying with rounded operands makes the error vanish; it does not grow with K. Source: public
    threads on TF32 and HF32 defaults; TF32 to nearest reads as 11.0 operand bits, truncated 9.6.
    """
    if scene.dtype not in ("float32", "float64") or _on_narrow_grid(scene):
        return
    for name in ("tf32", "tf32:rz", "bfloat16"):
        predicted = _with_operands(scene, name)
        if predicted is None:
            return
        slug = "lowprec_compute" if name == "bfloat16" else "tf32_gemm"
        facts: Facts = {"format": name.partition(":")[0], "bits": 8 if name == "bfloat16" else 11}
        yield Trial(mechanism=slug, predicted=predicted, prior=0.7, facts=facts)
        if name == "bfloat16":
            yield Trial(mechanism="tf32_gemm", predicted=predicted, prior=0.3, facts=facts)


def _with_operands(scene: Scene, name: str) -> Array | None:
    """The output when every float operand goes through a format first."""

    def rounded(values: dict[str, Array]) -> dict[str, Array]:
        kept = (k for k in values if not k.endswith("bias"))
        return {k: round_to(values[k], name) for k in kept if values[k].dtype.kind == "f"}

    return scene.replay(
        inputs=rounded(dict(scene.given.inputs)), parameters=rounded(dict(scene.given.parameters))
    )


def _on_narrow_grid(scene: Scene) -> str | None:
    """The 16-bit format that holds the whole output of a wider run, if one does."""
    observed = scene.error.observed[scene.error.used]
    found = narrowest_format(observed)
    return found if found in _narrower(scene.dtype) else None


@detector("lowprec_compute", "lmhead_16bit")
def narrow_output(scene: Scene) -> Iterator[Proposal]:
    """The output of a wider run lies on a 16-bit grid: the operator was executed, or cast, there.

    A chance hit has probability 2^-(24 - p) per value. For the output head a cast of the logits
    alone is a mechanism of its own. Source: public threads on runtimes executing fp32 graphs in 16
    bits.
    """
    name = _on_narrow_grid(scene)
    if name is None or scene.kind in ("quantise", "causal_mask"):
        return
    facts: Facts = {"format": name}
    head = bool(HEAD.search(scene.call.module)) and scene.kind in PRODUCTS
    plain = round_to(scene.error.expected, name)
    inner = _with_operands(scene, name)
    whole = plain if inner is None else round_to(inner, name)
    yield Trial(mechanism="lowprec_compute", predicted=whole, prior=0.6, facts=facts)
    yield Trial(mechanism="lowprec_compute", predicted=plain, prior=0.55, facts=facts)
    yield Sign(mechanism="lowprec_compute", confidence=0.6, facts=facts)
    if head:
        yield Trial(mechanism="lmhead_16bit", predicted=plain, prior=0.8, facts=facts)
        yield Sign(mechanism="lmhead_16bit", confidence=0.65, facts=facts)


@detector("rope_phase_16bit", kinds={"rope"})
def narrow_phase(scene: Scene) -> Iterator[Proposal]:
    """Position × inverse frequency, or a factor of it, rounded to 16 bits before the cosine.

    The error is 0 at position 0 and grows with position. Source: public threads on rotary caches
    built in bfloat16.
    """
    model = rotation_of(scene)
    if model is None:
        return
    parts = ("frequencies", "positions", "phase")
    for name in SIXTEEN_BIT:
        for count in (3, 1, 2):
            for rounded in itertools.combinations(parts, count):
                turned = replace(model, rounded=rounded)
                predicted = turned.output(partial(round_to, dtype=name))
                facts: Facts = {"format": name, "rounded": ", ".join(rounded)}
                yield Trial(
                    mechanism="rope_phase_16bit", predicted=predicted, prior=0.6, facts=facts
                )


@detector("softmax_16bit", kinds={"attention", "masked_softmax", "softmax"})
def narrow_exponentials(scene: Scene) -> Iterator[Proposal]:
    """Exponentials of a softmax, or their sum, kept in 16 bits.

    Rows no longer sum to one within the run's rounding. Source: measured R 2.6 to 4.5 in bf16 and
    3e4 in fp32 for a softmax in bfloat16.
    """
    model = attention_of(scene)
    if model is None or model.layout == "scores" or model.weights is not None:
        return
    for name in SIXTEEN_BIT:
        for steps in ("all", "exp", "sum"):
            predicted = model.output(softmax=narrow_softmax(name, steps=steps))
            facts: Facts = {"format": name}
            yield Trial(mechanism="softmax_16bit", predicted=predicted, prior=0.6, facts=facts)
    if model.layout == "weights":
        yield from _row_sums(scene)


def _row_sums(scene: Scene) -> Iterator[Proposal]:
    total = np.where(scene.error.valid, scene.error.observed, 0.0).sum(-1)
    expected = np.where(scene.error.valid, scene.error.expected, 0.0).sum(-1)
    floor = np.sqrt(np.where(scene.error.valid, scene.error.variance, 0.0).sum(-1))
    rows = floor > 0
    if rows.any() and np.median(np.abs(total - expected)[rows] / floor[rows]) > 4:
        yield Sign(mechanism="softmax_16bit", confidence=0.5, facts={"format": say("16 bits")})


@detector("norm_stat_16bit", kinds={"rms_norm", "layer_norm"})
def narrow_statistic(scene: Scene) -> Iterator[Proposal]:
    """The mean of squares of a norm computed in 16 bits: every row is off by one small factor.

    Exact emulations are tried first; otherwise a factor per row, each within a few roundings of one
    and not the curve that an epsilon gives.
    """
    model = norm_of(scene)
    if model is None:
        return
    for name in SIXTEEN_BIT:
        for predicted in _statistics(model, name):
            yield Trial(
                mechanism="norm_stat_16bit",
                predicted=predicted,
                prior=0.65,
                facts={"format": name, "rows": int(model.square.size)},
            )
    rows = factor(scene.error, (-1,))
    if np.max(np.abs(rows - 1)) <= 2.0**-5:
        yield Trial(
            mechanism="norm_stat_16bit",
            predicted=scene.error.expected * rows,
            parameters=int(rows.size),
            prior=0.4,
            facts={"format": say("16 bits"), "rows": int(rows.size)},
        )


def _statistics(model: Norm, name: str) -> Iterator[Array]:
    def keep(values: Array) -> Array:
        return round_to(values, name)

    def summed(x: Array) -> Array:
        total = np.zeros((*x.shape[:-1], 1))
        for index in range(x.shape[-1]):
            total = keep(total + keep(x[..., index : index + 1] ** 2))
        return keep(total / x.shape[-1])

    yield model.output(statistic=lambda x: keep(np.mean(x * x, -1, keepdims=True)))
    yield model.output(statistic=lambda x: keep(np.mean(keep(x * x), -1, keepdims=True)))
    yield model.output(
        statistic=lambda x: keep(keep(keep(x * x).sum(-1, keepdims=True)) / x.shape[-1])
    )
    yield model.output(statistic=lambda x: np.mean(keep(x * x), -1, keepdims=True))
    yield model.output(statistic=lambda x: keep(np.mean(keep(x) ** 2, -1, keepdims=True)))
    yield model.output(statistic=summed)
