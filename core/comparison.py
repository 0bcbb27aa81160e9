"""Two runs, paired and measured: the frozen value that every page, command and report reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from core.adaptation import Adaptation, RunSide, Shape
from core.coverage import Coverage
from core.findings import FloorKind
from core.runs import Problem
from core.stats import PairStats
from core.tensors import TensorInfo, TensorSummary

Verdict = Literal["fault", "watch", "inherited", "rounding", "uncompared"]
MatchMethod = Literal["mapping", "exact", "normalised", "sequence", "fingerprint", "statistics"]
Accept = Literal["yes", "no"]

# A match less sure than this is a suggestion: shown, and left out of the verdict until accepted.
ACCEPTED_FROM = 0.5


@dataclass(frozen=True, slots=True)
class Tolerance:
    """An element matches when |candidate - reference| <= atol + rtol·|reference|, as in NumPy."""

    atol: float
    rtol: float


@dataclass(frozen=True, slots=True)
class MappingRow:
    """One line of a user's mapping: tensors or modules that belong together, or must not.

    `reference` and `candidates` are tensor ids or module paths, in which `*` stands for one
    segment; several candidates are parts of one tensor. `adaptation` is the text of the steps, ""
    to have them proposed. With accept "no" the two are never paired; an empty side then means that
    the other is to have no partner at all.
    """

    reference: str
    candidates: tuple[str, ...]
    accept: Accept = "yes"
    adaptation: str = ""


@dataclass(frozen=True, slots=True)
class DimsRule:
    """The axes of the tensors whose id fits a pattern (`*` and `?`), on one side or both."""

    pattern: str
    dims: str
    side: Literal["reference", "candidate", "both"] = "both"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user chose for a comparison; part of its id.

    `tolerance` None: each pair's own, from the coarser logical dtype of its two sides. `mapping`
    and `dims`: the first row that fits counts. `steps` says which steps belong together: "" by
    number, or in order when the two runs number them differently; "number", "order", or an offset
    such as "+1", which is added to the candidate's numbers. `only_steps` and `only_ranks` are those
    of the reference, in its numbers, to which the comparison is limited; () is all.
    """

    tolerance: Tolerance | None = None
    mapping: tuple[MappingRow, ...] = ()
    dims: tuple[DimsRule, ...] = ()
    steps: str = ""
    only_steps: tuple[int, ...] = ()
    only_ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """How two tensors were found to belong together; confidence in [0, 1].

    `adaptation` is what makes them comparable, None when they are as they stand.
    """

    method: MatchMethod
    confidence: float = 1.0
    note: str = ""
    adaptation: Adaptation | None = None

    @property
    def is_suggested(self) -> bool:
        """Whether the match waits for the user's word."""
        return self.confidence < ACCEPTED_FROM


@dataclass(frozen=True, slots=True)
class SummaryPair:
    """What is known of both sides of a pair when one of them, or both, has no values."""

    reference: TensorSummary
    candidate: TensorSummary

    @property
    def same_checksum(self) -> bool | None:
        """Whether the checksums agree; None where one is missing or they are of other kinds."""
        ours, theirs = self.reference.checksum, self.candidate.checksum
        if not ours or ours.partition(":")[0] != theirs.partition(":")[0]:
            return None
        return ours == theirs


@dataclass(frozen=True, slots=True)
class Pair:
    """One tensor as both runs hold it. Exactly one of `stats`, `summary` and `problem` is set."""

    reference: TensorInfo
    candidate: TensorInfo
    match: Match
    tolerance: Tolerance
    stats: PairStats | None = None
    problem: str | None = None
    summary: SummaryPair | None = None

    @property
    def is_compared(self) -> bool:
        """Whether anything of the two sides was compared."""
        return self.problem is None

    @property
    def adaptation(self) -> Adaptation | None:
        """What was done to the two before they were compared."""
        return self.match.adaptation

    def members(self, side: RunSide) -> tuple[TensorInfo, ...]:
        """The tensors of one side: the pair's own, then its shards or other parts."""
        own = self.reference if side == "reference" else self.candidate
        return (own,) if self.adaptation is None else (own, *self.adaptation.parts(side))

    @property
    def shape(self) -> Shape:
        """Shape in which the two are compared: the reference's, unless it was adapted."""
        own = self.reference.shape
        return own if self.adaptation is None else self.adaptation.shape("reference", own)


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
    """Pairs in the reference's execution order, what was in one run only, what was looked at."""

    id: str
    reference: RunSummary
    candidate: RunSummary
    settings: Settings
    pairs: Sequence[Pair]
    unmatched_reference: tuple[TensorInfo, ...] = ()
    unmatched_candidate: tuple[TensorInfo, ...] = ()
    coverage: Coverage | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the analysis makes of a comparison; every tuple runs parallel to `Comparison.pairs`.

    `floors` is the relative L2 error that rounding explains, `times_floor` the pair's relative L2
    error in units of it, `inherited` the largest error among the inputs of the same operator call
    in the same units, `added` what the operator itself put on top (NaN where unknown).
    `first_divergence` is an index into the pairs. `sentence` could be read aloud in a meeting,
    `detail` says why in two lines. `floor_kinds` says in which floor `added` is counted: that of
    the replayed operator itself, or the depth law of its format where it was not replayed.
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
    floor_kinds: tuple[FloorKind, ...] = ()
