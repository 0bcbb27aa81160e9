"""The entry: every detector that fits a site, tried and ranked."""

from __future__ import annotations

import numpy as np

from analysis.findings.registry import DETECTORS, Detector
from analysis.findings.scene import Scene, scene_of
from analysis.findings.trials import Proposal, ranked
from analysis.replay.site import Site
from core.findings import Hypothesis


def explain(site: Site) -> tuple[Hypothesis, ...]:
    """Mechanisms that explain what is wrong at a site, best first; empty when none does."""
    scene = scene_of(site)
    proposals: list[Proposal] = []
    with np.errstate(all="ignore"):
        for one in DETECTORS.values():
            if _fits(one, scene):
                proposals += one.detect(scene)
        return ranked(proposals, scene.error, tensors=(scene.tensor.id,), dtype=scene.dtype)


def _fits(one: Detector, scene: Scene) -> bool:
    return scene.slot in one.slots and (not one.kinds or scene.kind in one.kinds)
