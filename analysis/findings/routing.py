"""Detectors of mixtures of experts: exchanged experts, ignored correction bias."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from analysis.findings.registry import detector
from analysis.findings.scene import Scene
from analysis.findings.trials import Facts, Proposal, Sign, Trial
from analysis.replay.site import OperatorCall

_MOST_EXPERTS = 256


@detector("expert_mapping", kinds={"expert", "linear", "act_mul"})
def exchanged_expert(scene: Scene) -> Iterator[Proposal]:
    """An expert's tokens are computed with the weights of another expert of the same layer.

    Every sibling's weights are tried. Source: public threads on expert placement; the map of
    nearest experts.
    """
    if scene.kind != "expert" and "expert" not in scene.call.module.lower():
        return
    for call in siblings(scene.call, scene.site.calls_candidate):
        if call.parameters.keys() != scene.call.parameters.keys():
            continue
        theirs = {name: call.value(tensor) for name, tensor in call.parameters.items()}
        predicted = scene.replay(parameters=theirs)
        if predicted is not None:
            facts: Facts = {"expert": number(scene.call.module), "other": number(call.module)}
            yield Trial(mechanism="expert_mapping", predicted=predicted, prior=0.8, facts=facts)


def siblings(call: OperatorCall, calls: tuple[OperatorCall, ...]) -> list[OperatorCall]:
    """Calls of the same step whose module differs in one numbered part of its path."""
    own = call.module.split(".")
    found = []
    for other in calls:
        path = other.module.split(".")
        differing = [a for a, b in zip(own, path, strict=False) if a != b]
        same_depth = len(path) == len(own) and len(differing) == 1
        if same_depth and differing[0].isdigit() and other.step == call.step:
            found.append(other)
    in_layer = [o for o in found if _layer(o.module) == _layer(call.module)]
    return in_layer[:_MOST_EXPERTS]


def _layer(module: str) -> str:
    """The path up to the expert's number: the last numbered part."""
    parts = module.split(".")
    numbered = [i for i, part in enumerate(parts) if part.isdigit()]
    return ".".join(parts[: numbered[-1]]) if numbered else module


def number(module: str) -> int:
    """The last number in a module path; -1 without one."""
    numbers = [int(part) for part in module.split(".") if part.isdigit()]
    return numbers[-1] if numbers else -1


@detector("router_bias_missing", kinds={"route"})
def ignored_bias(scene: Scene) -> Iterator[Proposal]:
    """Experts chosen by the plain scores although a correction bias is stored.

    Source: public threads on auxiliary-loss-free balancing; the bias moves the choice only.
    """
    current = scene.attribute("biased") in (None, True)
    predicted = scene.replay(biased=not current)
    if predicted is not None:
        yield Trial(mechanism="router_bias_missing", predicted=predicted, prior=0.75)


@detector("expert_mapping", kinds={"route"})
def permuted_ids(scene: Scene) -> Iterator[Proposal]:
    """The chosen ids are the expected ones through a one-to-one map.

    Source: public threads on expert placement; weights of the router stay right.
    """
    expected, observed = scene.error.expected, scene.error.observed
    if scene.site.output != "1" or expected.shape != observed.shape:
        return
    ids = np.unique(expected)
    mapped = [np.unique(observed[expected == one]) for one in ids]
    images = [float(m[0]) for m in mapped if m.size == 1]
    if len(images) == ids.size == len(set(images)) and images != ids.tolist():
        moved = next(i for i, image in zip(ids, images, strict=True) if i != image)
        facts: Facts = {"expert": int(moved), "other": int(images[list(ids).index(moved)])}
        yield Sign(mechanism="expert_mapping", confidence=0.95, facts=facts)
