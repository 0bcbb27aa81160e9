"""What the page Findings draws of a diagnosis: shares of each output's error, around a finding."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.floor import block_of
from core.findings import Diagnosis, Finding, Replay
from core.tensors import TensorInfo

NEIGHBOURS = 4  # replayed outputs shown before and after a finding


@dataclass(frozen=True, slots=True)
class Entry:
    """Where one output's squared error comes from: shares in [0, 1] that add up to 1, or NaN.

    `times_floor` is the whole error in units of the operator's own floor. The three terms may
    partly cancel, so shares are of the sum of their squares.
    """

    tensor: str
    operator: str
    candidate: float
    reference: float
    inherited: float
    times_floor: float


def around(
    diagnosis: Diagnosis, finding: Finding, tensors: Mapping[str, TensorInfo]
) -> tuple[Entry, ...]:
    """The replayed outputs next to a finding in execution order, in its step, rank and block.

    `tensors` are the reference's by id. The finding's own output is among them when it was
    replayed.
    """
    near = [
        r for r in diagnosis.replays if r.tensor in tensors and _near(tensors[r.tensor], finding)
    ]
    near.sort(key=lambda r: tensors[r.tensor].order)
    at = next((n for n, r in enumerate(near) if r.tensor == finding.tensor), len(near) // 2)
    window = near[max(0, at - NEIGHBOURS) : at + NEIGHBOURS + 1]
    return tuple(entry(r, tensors[r.tensor].operator) for r in window)


def entry(replay: Replay, operator: str) -> Entry:
    """Shares of one replayed output."""
    terms = (replay.local_candidate, replay.local_reference, replay.propagated)
    candidate, reference, inherited = _shares(*terms)
    times = replay.total / replay.floor if replay.floor else math.nan
    return Entry(replay.tensor, operator, candidate, reference, inherited, times)


def replay_of(diagnosis: Diagnosis, finding: Finding) -> Replay | None:
    """The replay of the finding's own output, if there is one."""
    return next((r for r in diagnosis.replays if r.tensor == finding.tensor), None)


def closest(diagnosis: Diagnosis, most: int = 5) -> Sequence[Replay]:
    """The replays nearest to a finding, largest ratio of either side first."""
    judged = [r for r in diagnosis.replays if not math.isnan(_ratio(r))]
    return sorted(judged, key=_ratio, reverse=True)[:most]


def _shares(*terms: float) -> list[float]:
    energy = math.hypot(*terms)
    whole = energy > 0 and math.isfinite(energy)
    return [(term / energy) ** 2 if whole else math.nan for term in terms]


def _ratio(replay: Replay) -> float:
    return max(replay.ratio_candidate, replay.ratio_reference)


def _near(tensor: TensorInfo, finding: Finding) -> bool:
    same_place = (tensor.step, tensor.rank) == (finding.step, finding.rank)
    return same_place and block_of(tensor.module) == block_of(finding.module)
