"""A small handmade comparison and a workspace in memory, for tests of pages and charts.

The values are those of a six-layer decoder whose third layer's rotary embedding adds 113 times the
floor; later outputs inherit some of it. Nothing here is measured; what is tested is what is shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.table import pair_table
from core.annotations import Annotation
from core.comparison import Comparison, Judgement, Match, Pair, RunSummary, Settings, Tolerance
from core.errors import NotHereError
from core.findings import Diagnosis, Finding, Hypothesis, Replay
from core.runs import Problem
from core.stats import PairStats
from core.tensors import TensorInfo
from language import say
from metrics import pair_stats
from store.records import ComparisonRecord, JobRecord, RunRecord

OPERATORS = ("input_layernorm", "self_attn.q_proj", "self_attn.rope", "mlp.down_proj", "")
LAYERS = 6
FAULT = "model.layers.2.self_attn.rope"
WATCH = "model.layers.4.mlp.down_proj"
NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
HOSTILE = "<img src=x onerror=alert(1)>.**bold** [l](javascript:x) $y$ :red[z]\u202e`"


def tensor(operator: str, order: int, **changes: Any) -> TensorInfo:
    """An fp32 forward output; `changes` are fields of TensorInfo."""
    about: dict[str, Any] = {
        "id": f"step0/rank0/{operator}/forward_output.0", "name": f"{operator}/forward_output.0",
        "module": operator, "argument": "0", "pass_": "forward", "slot": "output",
        "shape": (1, 8, 384), "storage_dtype": "float32", "dtype": "float32", "order": order,
        "module_class": "Linear", "step": 0, "rank": 0,
    }  # fmt: skip
    return TensorInfo(**(about | changes))


def operators() -> list[str]:
    """Dotted operator paths in execution order."""
    layers = [
        f"model.layers.{n}.{op}".rstrip(".") for n in range(LAYERS) for op in OPERATORS
    ]  # fmt: skip
    return ["model.embed_tokens", *layers, "model.norm", "lm_head"]


def pair(info: TensorInfo, problem: str | None = None) -> Pair:
    """A pair of a tensor with itself, without numbers worth looking at."""
    stats = None if problem else _stats()
    return Pair(info, info, Match("exact"), Tolerance(1e-5, 1e-6), stats, problem)


@cache
def _stats() -> PairStats:
    values = np.linspace(-1, 1, 8 * 384, dtype=np.float32)
    about = {"dtype": "float32", "dtypes": ("float32", "float32"), "shape": (1, 8, 384)}
    return pair_stats(values, values + np.float32(1e-7), Tolerance(1e-5, 1e-6), start=0, **about)


def comparison(names: list[str] | None = None, **changes: Any) -> Comparison:
    """Every operator's output as a pair; the last pair is uncompared."""
    names = operators() if names is None else names
    pairs = [pair(tensor(name, order)) for order, name in enumerate(names)]
    pairs.append(
        pair(
            tensor("model.kv_cache", len(names)),
            say("shapes differ: {shape} against {theirs}", shape="8", theirs="16"),
        )
    )
    sides = {
        "reference": {"framework": "torch 2.6.0", "device": "GPU, 80 GB", "seed": "0"},
        "candidate": {"framework": "torch 2.6.0", "device": "XPU, 64 GB", "dtype_policy": "bf16"},
    }
    summaries = {
        side: RunSummary(f"{side} run", f"f-{side}", f"c-{side}", len(pairs), 10**6, provenance)
        for side, provenance in sides.items()
    }
    whole = Comparison(
        id="c0ffee",
        settings=Settings(),
        pairs=tuple(pairs),
        unmatched_candidate=(tensor("model.extra", 99),),
        **summaries,
    )
    return replace(whole, **changes)


def times_floor(name: str, order: int) -> float:
    """Total error of an operator: rounding before the fault, inherited after."""
    if name == FAULT:
        return 113.0
    after = order > operators().index(FAULT)
    return (9.0 if after else 0.8) + 0.1 * (order % 5)


def judgement(compared: Comparison) -> Judgement:
    """A fault at `FAULT`, watch at `WATCH`, inherited after the fault, rounding before."""
    rows = [_judged(p, order) for order, p in enumerate(compared.pairs)]
    verdicts = tuple(row[0] for row in rows)
    found = "fault" in verdicts
    return Judgement(
        verdict="fault" if found else "rounding",
        first_divergence=verdicts.index("fault") if found else None,
        floors=tuple(1e-7 for _ in rows),
        times_floor=tuple(row[1] for row in rows),
        inherited=tuple(row[2] for row in rows),
        added=tuple(row[3] for row in rows),
        verdicts=verdicts,
        sentence=say(
            "The two runs part at {place}: {times} the rounding floor.", place=FAULT, times="113×"
        )
        if found
        else "The two runs agree to rounding.",
        detail=say("Its inputs are equal on both sides."),
        floor_kinds=tuple("depth" for _ in rows),
    )


def _judged(p: Pair, order: int) -> tuple[Any, float, float, float]:
    name = p.reference.operator
    if p.problem:
        return "uncompared", math.nan, math.nan, math.nan
    total = times_floor(name, order) if FAULT in operators() else 1.0
    verdict = {FAULT: "fault", WATCH: "watch"}.get(name, "inherited" if total > 6 else "rounding")
    added = {FAULT: 113.0, WATCH: 7.5}.get(name, 0.5)
    return verdict, total, math.sqrt(max(0.0, total**2 - added**2)), added


def replay(name: str, **changes: Any) -> Replay:
    """A replayed output: rounding on both sides, most of its error inherited after the fault."""
    info = tensor(name, 0)
    far = name == FAULT
    about: dict[str, Any] = {
        "tensor": info.id, "total": 113.0 if far else 1.2, "propagated": 0.4 if far else 0.9,
        "local_reference": 0.9, "local_candidate": 113.0 if far else 0.8, "floor": 1.0,
        "ratio_reference": 0.9, "ratio_candidate": 113.0 if far else 0.8, "worst_reference": 3.1,
        "worst_candidate": 610.0 if far else 3.0, "rows": 8, "rows_total": 8,
    }  # fmt: skip
    return Replay(**(about | changes))


def finding(name: str = FAULT, **changes: Any) -> Finding:
    """The rotary phase rounded to 16 bits, with two rejected explanations."""
    info = tensor(name, 0)
    about: dict[str, Any] = {
        "id": "F1", "verdict": "fault", "tensor": info.id, "module": name, "operator": name,
        "slot": "forward_output.0", "step": 0, "rank": 0, "call": 0, "side": "candidate",
        "confidence": 0.98, "hypotheses": hypotheses(),
    }  # fmt: skip
    return Finding(**(about | changes))


def hypotheses() -> tuple[Hypothesis, ...]:
    """The one that explains everything, one that explains nothing, one known by its pattern."""
    nan = math.nan
    return (
        Hypothesis(mechanism="rope_phase_16bit", confidence=0.98, before=113.0, after=1.0),
        Hypothesis(mechanism="rope_base", confidence=0.02, before=113.0, after=701.0),
        Hypothesis(mechanism="position_offset", confidence=0.01, before=nan, after=nan),
    )


def diagnosis(compared: Comparison, **changes: Any) -> Diagnosis:
    """A fault at `FAULT`, something to watch at `WATCH`, and the outputs around them replayed."""
    watch = finding(WATCH, id="F2", verdict="watch", confidence=0.71, hypotheses=())
    about: dict[str, Any] = {
        "comparison": compared.id, "verdict": "fault", "findings": (finding(), watch),
        "replays": tuple(replay(name) for name in operators()),
        "not_replayed": {"step0/rank0/lm_head/forward_output.0": "its input is not dumped"},
    }  # fmt: skip
    return Diagnosis(**(about | changes))


def table(compared: Comparison, judged: Judgement) -> pd.DataFrame:
    """The pair table of the handmade comparison, relative L2 included, other metrics NaN."""
    rows = pair_table(compared, judged)
    rows["relative_l2"] = rows["times_floor"] * 1e-7
    return rows


def run_record(run_id: str, **changes: Any) -> RunRecord:
    """A dump that was read."""
    about: dict[str, Any] = {
        "id": run_id, "label": run_id, "origin": "folder", "path": f"/dumps/{run_id}",
        "status": "ready", "created": NOW, "tensors": 33, "nbytes": 3_040_000_000,
        "steps": (3,), "ranks": (0,), "format": "HDF5 dump, version 1",
        "provenance": {"framework": "torch", "framework_version": "2.6.0", "device": "GPU"},
    }  # fmt: skip
    return RunRecord(**(about | changes))


@dataclass(eq=False)
class FakeWorkspace:
    """What pages ask of a workspace, kept in memory."""

    compared: dict[str, Comparison] = field(default_factory=dict)
    dump_names: tuple[str, ...] = ()
    notes: list[Annotation] = field(default_factory=list)
    found: dict[str, Diagnosis] = field(default_factory=dict)
    known_runs: dict[str, RunRecord] = field(default_factory=dict)
    known_jobs: dict[str, JobRecord] = field(default_factory=dict)
    past: list[ComparisonRecord] = field(default_factory=list)
    asked: list[tuple[str, ...]] = field(default_factory=list)

    folders: tuple[Path, ...] = (Path("/dumps"),)

    def comparison(self, comparison_id: str) -> Comparison:
        if comparison_id not in self.compared:
            raise NotHereError(
                f"Comparison {comparison_id!r} is not on this server.", "Compare the dumps again."
            )
        return self.compared[comparison_id]

    def judgement(self, comparison_id: str) -> Judgement:
        return judgement(self.comparison(comparison_id))

    def diagnosis(self, comparison_id: str) -> Diagnosis:
        compared = self.comparison(comparison_id)
        return self.found.get(comparison_id) or diagnosis(compared)

    def findings(self, comparison_id: str) -> tuple[Finding, ...]:
        kept = self.found.get(comparison_id)
        return kept.findings if kept else ()

    def siblings(self, comparison_id: str) -> list[ComparisonRecord]:
        self.comparison(comparison_id)
        return list(self.past)

    def annotations(self, comparison_id: str) -> list[Annotation]:
        return [note for note in self.notes if note.comparison_id == comparison_id]

    def annotate(self, comparison_id: str, target: str, **what: Any) -> Annotation:
        made = Annotation(
            id=str(len(self.notes)), comparison_id=comparison_id, target=target, created=NOW, **what
        )
        self.notes.insert(0, made)
        return made

    def runs_of(self, comparison_id: str) -> tuple[str, str]:
        self.comparison(comparison_id)
        return "r1", "r2"

    def names(self, run_id: str, most: int = 400) -> tuple[str, ...]:
        self.run(run_id)
        return self.dump_names[:most]

    def set_template(self, run_id: str, template: str | None) -> RunRecord:
        self.asked.append(("template", run_id, template or ""))
        return self.run(run_id)

    def redaction_key(self) -> bytes:
        return b"key of a server"

    def table(self, comparison_id: str) -> pd.DataFrame:
        return table(self.comparison(comparison_id), self.judgement(comparison_id))

    def runs(self) -> list[RunRecord]:
        return list(self.known_runs.values())

    def run(self, run_id: str) -> RunRecord:
        if run_id not in self.known_runs:
            raise NotHereError(f"Run {run_id!r} is not on this server.", "Drop its folder again.")
        return self.known_runs[run_id]

    def add_folder(self, path: Path, *, label: str, origin: str) -> RunRecord:
        if origin == "folder" and not str(path).startswith("/dumps"):
            raise NotHereError(f"{path} is outside the folders this server may read.", "Ask.")
        record = run_record(path.name, label=label, origin=origin, path=str(path))
        self.known_runs[record.id] = record
        return record

    def submit(self, reference_id: str, candidate_id: str, settings: Settings) -> JobRecord:
        self.asked.append(("submit", reference_id, candidate_id, str(settings.tolerance)))
        job = JobRecord(
            id="j1", status="running", reference_id=reference_id, candidate_id=candidate_id,
            created=NOW, done_bytes=620, total_bytes=1000, done_pairs=3, total_pairs=33,
        )  # fmt: skip
        self.known_jobs[job.id] = job
        return job

    def job(self, job_id: str) -> JobRecord:
        if job_id not in self.known_jobs:
            raise NotHereError(f"Job {job_id!r} is not on this server.", "Compare again.")
        return self.known_jobs[job_id]

    def jobs(self) -> list[JobRecord]:
        return list(self.known_jobs.values())

    def cancel(self, job_id: str) -> None:
        self.known_jobs[job_id] = replace(self.known_jobs[job_id], status="cancelled")

    def recent(self, limit: int = 10) -> list[ComparisonRecord]:
        return self.past[:limit]


def past_record(comparison_id: str, **changes: Any) -> ComparisonRecord:
    """One line of the recent comparisons."""
    about: dict[str, Any] = {
        "id": comparison_id, "label_reference": "GPU bf16", "label_candidate": "XPU bf16",
        "verdict": "fault", "first_divergence": FAULT, "worst_added": 113.0, "compared": 32,
        "total": 33, "created": NOW,
    }  # fmt: skip
    return ComparisonRecord(**(about | changes))


def refused(count: int) -> tuple[Problem, ...]:
    """Items of a dump that could not be read."""
    return tuple(Problem("external-link", f"a.h5:/x{n}", "points outside") for n in range(count))
