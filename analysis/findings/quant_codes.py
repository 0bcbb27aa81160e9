"""Detectors of activation quantisers: clipped or wrapped codes, scales of another call."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from analysis.findings.registry import detector
from analysis.findings.scene import Scene, tensor_at
from analysis.findings.trials import Facts, Proposal, Trial
from core.runs import Array


@detector("int8_saturation", "int8_wrap", "stale_scale", kinds={"quantise"})
def codes(scene: Scene) -> Iterator[Proposal]:
    """Codes that clip or wrap because the scale is too small or from another call.

    The run's own scale is taken at its word: clipped codes then say saturation, codes modulo 256
    wrapping; a scale equal to an earlier call's is a stale one. Source: public threads on delayed
    scaling; scale × largest code below the largest value.
    """
    scale = _own_scale(scene)
    x = next(iter(scene.given.floats), None)
    if scale is None or x is None:
        return
    with np.errstate(divide="ignore", invalid="ignore"):
        raw = x / scale
    whole = not np.any(scene.error.observed != np.rint(scene.error.observed))
    integer = whole and "float" not in scene.dtype
    top = 127.0 if integer else 448.0
    exact = np.rint(raw) if integer else raw
    clipped = np.clip(exact, -top, top)
    ratio = _scale_ratio(scene, scale)
    facts: Facts = {"ratio": ratio, "clipped": int((np.abs(raw) > top * 1.004).sum())}
    step = _stale_step(scene, scale)
    if step is not None:
        yield Trial(mechanism="stale_scale", predicted=clipped, prior=0.95, facts={"step": step})
    yield Trial(mechanism="int8_saturation", predicted=clipped, prior=0.7, facts=facts)
    wrapped = (exact + 128) % 256 - 128
    if integer and (wrapped != exact).any():
        facts = {"count": int((wrapped != exact).sum())}
        yield Trial(mechanism="int8_wrap", predicted=wrapped, prior=0.8, facts=facts)


def _own_scale(scene: Scene) -> Array | None:
    tensor = tensor_at(scene.call, "forward_output.1")
    if tensor is None or scene.site.output != "0":
        return None
    value = np.asarray(scene.call.value(tensor), np.float64)
    rows = scene.error.expected.shape[:-1]
    if value.size == 1:
        return value.reshape(())
    return value if value.shape[:-1] == rows else None


def _scale_ratio(scene: Scene, scale: Array) -> float:
    """The run's scale over what its input needs."""
    answer = scene.site.function(scene.given, scene.site.attributes) if scene.site.function else {}
    expected = answer.get("1") if answer else None
    if expected is None:
        return float("nan")
    needed = np.broadcast_to(np.asarray(expected.value, np.float64), np.shape(scale) or (1,))
    return float(np.median(np.broadcast_to(scale, needed.shape) / needed))


def _stale_step(scene: Scene, scale: Array) -> int | None:
    for call in scene.others():
        tensor = tensor_at(call, "forward_output.1")
        if tensor is None or call.order >= scene.call.order:
            continue
        old = np.asarray(call.value(tensor), np.float64)
        if old.size == scale.size and np.allclose(old.ravel(), np.ravel(scale), rtol=1e-6, atol=0):
            return -1 if call.step is None else call.step
    return None
