"""Detectors of runs that were given different things: ids, masks, positions."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from analysis.findings.registry import detector
from analysis.findings.scene import Scene
from analysis.findings.trials import Facts, Proposal, Sign

_MASK = re.compile(r"mask|cu_seqlens|seq_?lens|padding", re.IGNORECASE)


@detector("different_inputs", "different_mask", slots=("input",))
def different_inputs(scene: Scene) -> Iterator[Proposal]:
    """What an operator was handed from outside differs: a mask by its name or its values 0 and 1.

    Source: triage begins with the inputs; everything downstream is another input.
    """
    observed, expected = scene.error.observed, scene.error.expected
    differing = int((observed != expected).sum()) if observed.shape == expected.shape else -1
    facts: Facts = {"count": differing}
    where = f"{scene.call.operator} {scene.call.module_class} {scene.argument}"
    binary = scene.dtype == "bool" or _binary(observed)
    mask = bool(_MASK.search(where)) and (binary or scene.dtype != "float32")
    masked = scene.kind in ("causal_mask", "attention", "masked_softmax") and binary
    slug = "different_mask" if mask or masked else "different_inputs"
    other = "different_inputs" if slug == "different_mask" else "different_mask"
    yield Sign(mechanism=slug, confidence=0.95, facts=facts)
    yield Sign(mechanism=other, confidence=0.3, facts=facts)


def _binary(values: np.ndarray) -> bool:
    return values.size > 1 and bool(np.isin(np.unique(values), (0, 1)).all())
