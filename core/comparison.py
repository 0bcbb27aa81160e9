"""Two runs, paired and measured: the frozen value that every page, command and report reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from core.runs import Problem
from core.stats import PairStats
from core.tensors import TensorInfo

Verdict = Literal["fault", "watch", "inherited", "rounding", "uncompared"]
MatchMethod = Literal["exact", "normalised"]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """An element matches when |candidate - reference| <= atol + rtol·|reference|, as in NumPy."""

    atol: float
    rtol: float


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user chose for a comparison; part of its id.

    `tolerance` None: each pair's own, from the coarser logical dtype of its two sides.
    """

    tolerance: Tolerance | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """How two tensors were found to belong together; confidence in [0, 1]."""

    method: MatchMethod
    confidence: float = 1.0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """One tensor as both runs hold it. Exactly one of `stats` and `problem` is set."""

    reference: TensorInfo
    candidate: TensorInfo
    match: Match
    tolerance: Tolerance
    stats: PairStats | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a comparison remembers of a run.

    `content` is a hash of every tensor's name, type, shape and values: equal for equal dumps on any
    machine, whatever the file layout. `run_id` is the workspace's name for the dump, if it has one.
    """

    label: str
    fingerprint: str
    content: str
    tensors: int
    nbytes: int
    provenance: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Pairs in the reference's execution order, and what was in one run only."""

    id: str
    reference: RunSummary
    candidate: RunSummary
    settings: Settings
    pairs: Sequence[Pair]
    unmatched_reference: tuple[TensorInfo, ...] = ()
    unmatched_candidate: tuple[TensorInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the analysis makes of a comparison; every tuple runs parallel to `Comparison.pairs`.

    `floors` is the relative L2 error that rounding explains, `times_floor` the pair's relative L2
    error in units of it, `inherited` the largest error among the inputs of the same operator call
    in the same units, `added` what the operator itself put on top (NaN where unknown).
    `first_divergence` is an index into the pairs. `sentence` could be read aloud in a meeting,
    `detail` says why in two lines.
    """

    verdict: Verdict
    first_divergence: int | None
    floors: tuple[float, ...]
    times_floor: tuple[float, ...]
    inherited: tuple[float, ...]
    added: tuple[float, ...]
    verdicts: tuple[Verdict, ...]
    sentence: str
    detail: str
