"""What the catalogue tells of runs, jobs and comparisons; what pages and commands list."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from core.comparison import Verdict
from core.runs import Problem

SAVED_COMPARISON = "precision-comparison"  # format of a record that is no dump

Origin = Literal["upload", "folder", "sample"]
RunStatus = Literal["reading", "ready", "failed"]
JobStatus = Literal["queued", "running", "done", "failed", "cancelled", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One dump the workspace knows. What comes after `error_hint` is known once it was read.

    `id` changes when the names, sizes or times of the dump's files do. `nbytes` counts the tensors
    as stored, uncompressed. `created` is in UTC.
    """

    id: str
    label: str
    origin: Origin
    path: str
    status: RunStatus
    created: datetime
    error: str = ""
    error_hint: str = ""
    fingerprint: str = ""
    tensors: int = 0
    nbytes: int = 0
    steps: tuple[int, ...] = ()
    ranks: tuple[int, ...] = ()
    format: str = ""
    provenance: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    @property
    def comparison_id(self) -> str | None:
        """What was handed in is a saved comparison with this id; None for a dump."""
        return self.provenance.get("comparison") if self.format == SAVED_COMPARISON else None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One comparison asked for. `message` is the tensor at hand while it runs.

    `bytes_per_s` is its rate, `left_s` the seconds it will still take; NaN while unknown.
    """

    id: str
    status: JobStatus
    reference_id: str
    candidate_id: str
    created: datetime
    done_bytes: int = 0
    total_bytes: int = 0
    done_pairs: int = 0
    total_pairs: int = 0
    message: str = ""
    bytes_per_s: float = math.nan
    left_s: float = math.nan
    comparison_id: str | None = None
    error: str = ""
    error_hint: str = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing will change any more."""
        return self.status not in ("queued", "running")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRecord:
    """One kept comparison in a line.

    `first_divergence` is an operator, "" if there is none; `worst_added` in units of the floor, NaN
    if unknown. `compared` of `total` tensors of the reference have statistics.
    """

    id: str
    label_reference: str
    label_candidate: str
    verdict: Verdict
    first_divergence: str
    worst_added: float
    compared: int
    total: int
    created: datetime


def now() -> datetime:
    """The time as records keep it."""
    return datetime.now(UTC)
