"""Writes a pair of runs of a torch model, and checks that what was planted is what differs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from benchmarks.planted.manifest import Entry, difficulty, plain
from benchmarks.planted.torch_runs import Job, Side, run
from core.runs import Array, Run
from core.tensors import TensorInfo
from loaders import open_run


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is wrong with the candidate: `edit` changes its model, the rest is the answer."""

    mechanism: str
    family: str
    module: str
    edit: Callable[[nn.Module], object]
    slot: str = "forward_output.0"
    step: str = "0"
    verdict: str = "fault"
    accepted: tuple[str, ...] = ()
    cause: str = ""
    layer: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A pair: what both run, on what, and what is wrong with the candidate."""

    job: Job
    reference: Side
    candidate: Side
    fault: Fault | None = None
    note: str = ""
    unequal: tuple[str, ...] = field(default=())  # ends of modules whose integers may differ


def write_plan(plan: Plan, folder: Path, name: str) -> Entry:
    """Run and record both sides; with a fault also the candidate without it, to compare with."""
    shutil.rmtree(folder / name, ignore_errors=True)
    run(plan.job, plan.reference, folder / name / "reference")
    edit = plan.fault.edit if plan.fault else None
    run(plan.job, plan.candidate, folder / name / "candidate", edit)
    facts, problems = _checked(plan, folder / name)
    return _entry(plan, name, facts, problems)


def _checked(plan: Plan, folder: Path) -> tuple[dict[str, float], list[str]]:
    reference, candidate = open_run(folder / "reference"), open_run(folder / "candidate")
    if plan.fault is None:
        return {"rel_out": _last_error(reference, candidate)}, _honest(plan, reference, candidate)
    with tempfile.TemporaryDirectory() as scratch:
        run(plan.job, plan.candidate, Path(scratch) / "clean")
        clean = open_run(Path(scratch) / "clean")
        return _planted(plan.fault, reference, clean, candidate)


def _honest(plan: Plan, reference: Run, candidate: Run) -> list[str]:
    problems = []
    for tensor, other in _common(reference, candidate):
        a, b = reference.read(tensor.id), candidate.read(other.id)
        if a.shape != b.shape:
            continue
        if not tensor.dtype.startswith(("float", "bfloat")):
            if not np.array_equal(a, b) and not tensor.module.endswith(plan.unequal):
                problems.append(f"{tensor.name}: integers differ")
        elif relative_error(a, b) == np.inf:
            problems.append(f"{tensor.name}: not finite")
    if not _last_error(reference, candidate) < 0.6:
        problems.append("far apart")
    return problems[:3]


def _planted(
    fault: Fault, reference: Run, clean: Run, candidate: Run
) -> tuple[dict[str, float], list[str]]:
    """The first tensor that differs from the clean candidate must be the declared one."""
    found = first_difference(clean, candidate)
    declared = (fault.module, fault.slot, fault.step)
    if found is None:
        return {}, ["no effect"]
    where = (found.module, found.slot_label, str(found.step or 0))
    problems = [] if where == declared else [f"first difference is {where}, declared {declared}"]
    same = [t for t in reference.tensors.values() if _key(t) == _key(found)]
    facts = {"effect": relative_error(clean.read(found.id), candidate.read(found.id))}
    if same:
        honest = reference.read(same[0].id), clean.read(found.id)
        facts["noise_site"] = relative_error(*honest)
    return facts, problems


def first_difference(clean: Run, candidate: Run) -> TensorInfo | None:
    """First tensor in execution order whose values are not those of the other run."""
    for tensor, other in _common(candidate, clean):
        a, b = clean.read(other.id), candidate.read(tensor.id)
        if a.shape != b.shape or not np.array_equal(_bits(a), _bits(b)):
            return tensor
    return None


def _common(first: Run, second: Run) -> list[tuple[TensorInfo, TensorInfo]]:
    known = {_key(tensor): tensor for tensor in second.tensors.values()}
    return [(t, known[_key(t)]) for t in first.tensors.values() if _key(t) in known]


def _key(tensor: TensorInfo) -> tuple[Any, ...]:
    return tensor.step, tensor.module, tensor.op, tensor.call, tensor.slot_label


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _last_error(reference: Run, candidate: Run) -> float:
    common = _common(reference, candidate)
    outputs = [pair for pair in common if pair[0].pass_ == "forward" and pair[0].slot == "output"]
    a, b = (
        run.read(tensor.id) for run, tensor in zip((reference, candidate), outputs[-1], strict=True)
    )
    return relative_error(a, b)


def relative_error(a: Array, b: Array) -> float:
    """Relative L2 error of b, in [0, inf]; inf where one is finite and the other is not."""
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if first.shape != second.shape:
        return float("nan")
    finite = np.isfinite(first)
    if (finite != np.isfinite(second)).any():
        return float("inf")
    norm = float(np.linalg.norm(first[finite]))
    change = float(np.linalg.norm(second[finite] - first[finite]))
    return change / norm if norm else float(change > 0)


def _entry(plan: Plan, name: str, facts: dict[str, float], problems: list[str]) -> Entry:
    fault = plan.fault
    computes = plan.candidate.computes_in
    verdict = fault.verdict if fault else "rounding"
    return Entry(
        id=name,
        mechanism=fault.mechanism if fault else "rounding",
        family=fault.family if fault else "benign",
        verdict=verdict,
        module=fault.module if fault else None,
        slot=fault.slot if fault else None,
        step=fault.step if fault else "0",
        ref_dtype=plan.reference.computes_in,
        cand_dtype=computes,
        quant=None,
        accepted=[fault.mechanism, *fault.accepted] if fault else ["rounding"],
        seed=plan.job.seed,
        layer=fault.layer if fault else 0,
        cause=fault.cause if fault else plan.note,
        difficulty=difficulty(facts.get("effect", float("nan")), computes, verdict),
        source="torch",
        model=f"{plan.job.model} {plan.job.layout}; {plan.note}",
        facts=plain(facts),
        problems=problems,
    )
