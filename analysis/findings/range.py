"""Detectors of values leaving the range of a format."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from analysis.findings.inside.attention import attention_of
from analysis.findings.inside.norms import norm_of
from analysis.findings.registry import detector
from analysis.findings.scene import Scene
from analysis.findings.trials import Facts, Proposal, Sign, Trial
from core.runs import Array
from metrics.formats import FORMATS

_OVERFLOWING = ("float16", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz")
_FP16_LARGEST = 65504.0


@detector("fp16_overflow", slots=("output", "gradient", "parameter"))
def overflow(scene: Scene) -> Iterator[Proposal]:
    """Infinities exactly where the expected value exceeds a narrow format's largest one.

    NaN instead in formats without infinity. Source: public threads on fp16 residual streams; the
    position set tells it from every other origin of non-finite values.
    """
    error = scene.error
    bad = ~np.isfinite(error.observed) & np.isfinite(error.expected)
    if not bad.any():
        return
    for name in _OVERFLOWING:
        limit = float(FORMATS[name].largest)
        beyond = np.abs(error.expected) > limit
        # The step up to infinity begins half an ulp above the largest value.
        near = np.abs(np.abs(error.expected) / limit - 1) < 0.01
        if (bad == beyond)[error.valid & ~near].all() and (bad & beyond).any():
            facts: Facts = {"format": name, "limit": limit, "count": int(bad.sum())}
            yield Sign(mechanism="fp16_overflow", confidence=0.985, facts=facts)
            return


@detector("saturation_clamp")
def clamp(scene: Scene) -> Iterator[Proposal]:
    """Values held at a limit which the expected ones exceed: a pile of equal extremes.

    Source: public threads on saturating conversions; two or more values at the extreme, and
    clipping the expected output there explains the error.
    """
    error = scene.error
    used = error.used
    if not used.any() or scene.kind == "quantise":
        return
    for low, high in _limits(error.observed[used]):
        predicted = np.clip(error.expected, low, high)
        moved = used & (predicted != error.expected)
        if moved.sum() >= 2:
            limit = high if np.isfinite(high) else low
            facts: Facts = {"limit": limit, "count": int(moved.sum())}
            yield Trial(
                mechanism="saturation_clamp",
                predicted=predicted,
                parameters=1,
                prior=0.6,
                facts=facts,
            )


def _limits(values: Array) -> Iterator[tuple[float, float]]:
    """Extremes at which at least two values pile up: both ends, upper, lower."""
    top, bottom = float(values.max()), float(values.min())
    upper, lower = int((values == top).sum()) >= 2, int((values == bottom).sum()) >= 2
    if upper and lower and abs(top + bottom) <= 1e-6 * top:
        yield bottom, top
    if upper:
        yield -np.inf, top
    if lower:
        yield bottom, np.inf


@detector("flush_to_zero", slots=("output", "gradient"))
def flush(scene: Scene) -> Iterator[Proposal]:
    """Exact zeros wherever the expected value is below a threshold, and nowhere else.

    The two sets of magnitudes must not overlap (one in a hundred may). Source: flush modes of
    accelerators; thresholds are smallest normals.
    """
    error = scene.error
    used = error.used & (error.expected != 0)
    zero, size = used & (error.observed == 0), np.abs(error.expected)
    lost = zero & (size > 2 * np.sqrt(np.maximum(error.variance, 0)))
    if not lost.any() or scene.kind == "quantise" or lost.sum() > 0.9 * used.sum():
        return
    threshold = float(np.quantile(size[zero], 0.995))
    few = lost.sum() < 4
    if few and threshold > 0.01 * float(np.sqrt(np.mean(error.expected[used] ** 2))):
        return
    kept = size[used & ~zero]
    small = kept[kept < threshold * 0.99]
    if small.size <= 0.02 * zero.sum():
        facts: Facts = {"threshold": threshold, "count": int(lost.sum())}
        confidence = 0.6 if few else 0.96 if small.size == 0 else 0.85
        yield Sign(mechanism="flush_to_zero", confidence=confidence, facts=facts)


@detector("flush_to_zero", kinds={"attention"})
def flushed_weights(scene: Scene) -> Iterator[Proposal]:
    """Attention weights below a threshold dropped inside the kernel.

    Source: flush modes of accelerators; thresholds are tried in powers of two.
    """
    model = attention_of(scene)
    if model is None or model.value is None:
        return
    weights = model.probabilities()
    for power in range(4, 25, 2):
        kept = np.where(weights < 2.0**-power, 0.0, weights)
        facts: Facts = {"threshold": 2.0**-power, "count": int((kept != weights).sum())}
        yield Trial(
            mechanism="flush_to_zero",
            predicted=model.output(kept),
            parameters=1,
            prior=0.4,
            facts=facts,
        )


@detector("flush_to_zero", kinds={"linear", "row_linear", "mul", "add", "rms_norm", "activation"})
def flushed_inputs(scene: Scene) -> Iterator[Proposal]:
    """Inputs below a format's smallest normal read as zero.

    Source: accelerators that flush subnormal inputs (denormals-are-zero).
    """
    for name in ("float16", "bfloat16", "float8_e4m3fn"):
        least = FORMATS[name].smallest_normal
        values = scene.given.inputs
        small = {
            k: np.where(np.abs(v) < least, 0.0, v)
            for k, v in values.items()
            if v.dtype.kind == "f" and ((np.abs(v) < least) & (v != 0)).any()
        }
        predicted = scene.replay(inputs=small) if small else None
        if predicted is not None:
            count = int(sum((small[k] != values[k]).sum() for k in small))
            facts: Facts = {"threshold": least, "count": count}
            yield Trial(mechanism="flush_to_zero", predicted=predicted, prior=0.5, facts=facts)


@detector("eps_underflow", kinds={"rms_norm", "layer_norm"})
def vanished_eps(scene: Scene) -> Iterator[Proposal]:
    """Rows of zero variance divided by zero: NaN or infinity there and in no other row.

    Source: public threads on epsilons below a 16-bit format's smallest value.
    """
    model = norm_of(scene)
    if model is None:
        return
    bad = (~np.isfinite(scene.error.observed)).any(-1)
    tiny = model.square[..., 0] <= 10 * model.eps
    if bad.any() and not (bad & ~tiny).any():
        yield Sign(mechanism="eps_underflow", confidence=0.96, facts={"rows": int(bad.sum())})
    elif tiny.any() and not bad.any():
        predicted = model.output(eps=0.0)
        facts: Facts = {"rows": int(tiny.sum())}
        yield Trial(mechanism="eps_underflow", predicted=predicted, prior=0.45, facts=facts)


@detector("variance_overflow", kinds={"rms_norm", "layer_norm"})
def overflown_variance(scene: Scene) -> Iterator[Proposal]:
    """Rows that came out as zero (or as the bias) because their sum of squares left fp16's range.

    The vanished rows are those of the largest sums, from 65504 on. Source: public threads on fp16
    norms; no NaN appears, 1 / sqrt(inf) is 0.
    """
    model = norm_of(scene)
    if model is None:
        return
    observed = scene.error.observed - model.bias
    gone = ~observed.any(-1) & scene.error.expected.any(-1)
    total = model.square[..., 0] * model.values.shape[-1]
    largest = np.max(model.values**2, -1)
    if not gone.any() or not (total[gone] > _FP16_LARGEST).all():
        return
    for what in (total, total / model.values.shape[-1], largest):
        rest = what[~gone & scene.error.expected.any(-1)]
        if what[gone].min() > 0.99 * rest.max(initial=0.0):
            facts: Facts = {"rows": int(gone.sum()), "least": float(total[gone].min())}
            yield Sign(mechanism="variance_overflow", confidence=0.97, facts=facts)
            return
