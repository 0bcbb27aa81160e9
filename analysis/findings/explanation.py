"""The entry: every detector that fits a site, tried and ranked."""

from __future__ import annotations

import contextlib

import numpy as np

from analysis.findings.registry import DETECTORS, Detector
from analysis.findings.scene import Scene, scene_of
from analysis.findings.trials import Proposal, ranked
from analysis.replay.fit import UNFIT
from analysis.replay.site import Site
from core.findings import Hypothesis


def explain(site: Site) -> tuple[Hypothesis, ...]:
    """Mechanisms that explain what is wrong at a site, best first; empty when none does."""
    scene = scene_of(site)
    proposals: list[Proposal] = []
    with np.errstate(all="ignore"):
        for one in DETECTORS.values():
            if _fits(one, scene):
                proposals += _heard(one, scene)
        return ranked(proposals, scene.error, tensors=(scene.tensor.id,), dtype=scene.dtype)


def _heard(one: Detector, scene: Scene) -> list[Proposal]:
    """What a detector says; what it said so far where the operands are not of a form it knows.

    As in replay: dumps hold operators of any make under known names, and one detector that cannot
    read such a call must not silence the others.
    """
    heard: list[Proposal] = []
    with contextlib.suppress(*UNFIT):
        heard.extend(one.detect(scene))
    return heard


def _fits(one: Detector, scene: Scene) -> bool:
    return scene.slot in one.slots and (not one.kinds or scene.kind in one.kinds)
