"""What the analysis says about two runs: replayed operators, findings, and their evidence.

Values only, no prose: `analysis.findings.texts` turns a mechanism and its facts into sentences, so
that page, command line, API and report say the same words, in the reader's language.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Side = Literal["candidate", "reference", "both", "unknown"]
Fact = float | int | str
FindingVerdict = Literal["fault", "watch", "setup"]
DiagnosisVerdict = Literal["fault", "setup", "watch", "rounding", "uncompared"]
FloorKind = Literal["replay", "twin", "depth", "format", "exact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """One output of one operator call, recomputed in float64 from each run's own dumped inputs.

    `tensor` is the reference's tensor id. The identity candidate - reference = local(candidate) +
    propagated - local(reference) holds exactly; the four terms are given as root mean squares in
    the tensor's own unit, on the rows that were replayed. `ratio_*` is R: the root of the local
    error's energy over the floor's (dimensionless, about 1 for an honest operator); `worst_*` the
    largest |local error| of an element over its own floor (z). `floor` is the floor's root mean
    square. Undefined is NaN. `attributes` are the operator's (eps, scale, rope base …) as recorded,
    or as fitted to the reference where `fitted` names them.
    """

    tensor: str
    total: float
    propagated: float
    local_reference: float
    local_candidate: float
    floor: float
    ratio_reference: float
    ratio_candidate: float
    worst_reference: float
    worst_candidate: float
    rows: int
    rows_total: int
    floor_kind: FloorKind = "replay"
    attributes: Mapping[str, Fact] = field(default_factory=dict)
    fitted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """One explanation of a finding: a mechanism slug and the numbers that speak for it.

    `confidence` in [0, 1]. `before` and `after`: the unexplained error in units of its floor,
    without and with the hypothesis; NaN where the mechanism is recognised by another sign. `facts`
    fill the mechanism's text (slope, bits, head, token, eps …). `tensors` are what it was seen on.
    """

    mechanism: str
    confidence: float
    before: float
    after: float
    facts: Mapping[str, Fact] = field(default_factory=dict)
    tensors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One place where a run goes wrong, and why, as far as the dumps tell.

    `tensor` is the reference's id of the first wrong tensor, `""` when only the candidate has it.
    `hypotheses` are best first and may be empty: the place is known, the cause is not. `zone` lists
    the operators among which the fault lies when not every operator was captured; empty when
    `operator` is certain. `damage` is this place's share in [0, 1] of the error at the model's
    output, NaN where unknown.
    """

    id: str
    verdict: FindingVerdict
    tensor: str
    module: str
    operator: str
    slot: str
    step: int | None
    rank: int | None
    call: int
    side: Side
    confidence: float
    hypotheses: tuple[Hypothesis, ...] = ()
    zone: tuple[str, ...] = ()
    damage: float = float("nan")
    facts: Mapping[str, Fact] = field(default_factory=dict)

    @property
    def mechanism(self) -> str:
        """Slug of the best hypothesis, `""` when the cause is not known."""
        return self.hypotheses[0].mechanism if self.hypotheses else ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything the analysis makes of the dumps of a comparison; findings in order of importance.

    `not_replayed` maps the reference ids of outputs that could not be recomputed to the reason.
    `modes` names, by side, a format that a whole run rounds its matrix operands to (`tf32` in a run
    that stores float32): a setting of that run, counted into its floors.
    """

    comparison: str
    verdict: DiagnosisVerdict
    findings: tuple[Finding, ...] = ()
    replays: tuple[Replay, ...] = ()
    not_replayed: Mapping[str, str] = field(default_factory=dict)
    modes: Mapping[str, str] = field(default_factory=dict)
