"""`cli.py findings`: rounding or fault, where, which side, why; one pair or many."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.compare import compare
from analysis.diagnose import diagnose
from analysis.export_findings import diagnosis_json, replays_json
from analysis.findings import explain
from analysis.findings.texts import describe, title_of
from analysis.replay.plugins import load_functions
from analysis.repro import bundle
from analysis.verdict import judge
from charts.names import plain
from core.comparison import Comparison
from core.errors import ExplorerError
from core.findings import Diagnosis, Finding
from core.numbers import error, share, times_floor
from core.runs import Run
from loaders import open_run

PASS, FAIL, COULD_NOT_COMPARE = 0, 1, 2
_EXIT = {"fault": FAIL, "watch": FAIL, "setup": FAIL, "rounding": PASS}
_PROSE = 1000


def run(arguments: argparse.Namespace) -> int:
    """One pair or a batch; the exit code is that of the worst."""
    if arguments.functions:
        load_functions(arguments.functions)
    if arguments.batch:
        return _batch(arguments)
    found = _found(arguments.what)
    if arguments.json:
        _write(arguments.json, _as_json(found.diagnosis, replays=arguments.replays))
    _print(found.diagnosis, arguments.id)
    if arguments.yardstick:
        _print_yardstick(found, arguments.yardstick)
    if arguments.bundle:
        _write_bundle(found, arguments)
    return _EXIT.get(found.diagnosis.verdict, COULD_NOT_COMPARE)


@dataclass(frozen=True, slots=True)
class _Found:
    """A diagnosis with what it was made from; runs are absent where the workspace kept it."""

    diagnosis: Diagnosis
    comparison: Comparison
    runs: tuple[Run, Run] | None = None


def _found(what: Sequence[str]) -> _Found:
    if len(what) == 1:
        from store import workspace  # the store is needed for kept comparisons alone

        kept = workspace.default()
        return _Found(kept.diagnosis(what[0]), kept.comparison(what[0]))
    if len(what) != 2:
        raise ExplorerError(
            "findings needs two dumps, or the id of a comparison.",
            "python cli.py findings REF CAND",
        )
    return diagnosed(*map(Path, what))


def diagnosed(reference: Path, candidate: Path) -> _Found:
    """Open, compare and diagnose two dumps."""
    runs = open_run(reference), open_run(candidate)
    comparison = compare(*runs)
    return _Found(diagnose(*runs, comparison, explain=explain), comparison, runs)


def _batch(arguments: argparse.Namespace) -> int:
    jobs = list(_jobs(arguments.batch))
    if arguments.workers > 1:
        with ProcessPoolExecutor(arguments.workers) as pool:
            answers = dict(pool.map(_answer, jobs))
    else:
        answers = dict(map(_answer, jobs))
    if arguments.json:
        _write(arguments.json, answers)
    for name, answer in answers.items():
        first = answer.get("first") or {}
        where = f"{first.get('module', '')}  {', '.join(first.get('mechanisms', []))}"
        print(f"{plain(name)}  {answer['verdict']}  {plain(where)}")
    codes = [_EXIT.get(answer["verdict"], COULD_NOT_COMPARE) for answer in answers.values()]
    return max(codes, default=COULD_NOT_COMPARE)


def _jobs(path: Path) -> Iterator[tuple[str, str, str]]:
    """Name, reference and candidate of each line; tabs or spaces apart, `#` starts a remark."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        words = line.split("#")[0].split("\t") if "\t" in line else line.split("#")[0].split()
        if not words or not any(words):
            continue
        if len(words) != 3:
            raise ExplorerError(
                f"{path}, line {number}: {len(words)} words instead of name, REF and CAND.",
                "Put a tab between them when paths hold spaces.",
            )
        yield words[0].strip(), words[1].strip(), words[2].strip()


def _answer(job: tuple[str, str, str]) -> tuple[str, dict[str, Any]]:
    """One pair of a batch; one that cannot be compared says so and does not stop the others."""
    name, reference, candidate = job
    try:
        return name, diagnosis_json(diagnosed(Path(reference), Path(candidate)).diagnosis)
    except ExplorerError as error:
        return name, {"verdict": "uncompared", "first": None, "error": error.message}


def _as_json(diagnosis: Diagnosis, *, replays: bool) -> dict[str, Any]:
    more = {"replays": replays_json(diagnosis)} if replays else {}
    return diagnosis_json(diagnosis) | more


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _print(diagnosis: Diagnosis, only: str) -> None:
    shown = [f for f in diagnosis.findings if only in ("", f.id)]
    if only and not shown:
        raise ExplorerError(f"There is no finding {only!r}.", "Run without --id to list them.")
    print(f"{diagnosis.verdict.upper()}  {len(diagnosis.findings)} findings")
    for finding in shown:
        _print_finding(finding)
    left = len(diagnosis.not_replayed)
    print(f"{len(diagnosis.replays)} outputs recomputed in float64, {left} could not be")


def _print_finding(finding: Finding) -> None:
    text = describe(finding)
    place = f"{plain(finding.operator)}  {finding.slot}"
    step = "" if finding.step is None else f"  step {finding.step}"
    print(f"\n{finding.id}  {finding.verdict}, side {finding.side}: {plain(text.title, _PROSE)}")
    print(f"    {place}{step}  confidence {share(finding.confidence, 1)}")
    print(f"    {plain(text.detail, _PROSE)}")
    if finding.zone:
        print(f"    lies among: {plain(', '.join(finding.zone), _PROSE)}")
    for hypothesis in finding.hypotheses:
        fall = f"{times_floor(hypothesis.before)} to {times_floor(hypothesis.after)}"
        print(f"    {share(hypothesis.confidence, 1):>8}  {hypothesis.mechanism}  {fall}  ", end="")
        print(plain(title_of(hypothesis), _PROSE))
    for step_ in text.next_steps:
        print(f"    next: {plain(step_, _PROSE)}")


def _print_yardstick(found: _Found, yardstick: Path) -> None:
    """The candidate's error in units of a third run's, against the same reference."""
    from analysis.table import pair_table  # pandas is needed here alone
    from analysis.three_way import judged, ratios

    if found.runs is None:
        raise ExplorerError("--yardstick needs the two dumps.", "Name REF and CAND, not an id.")
    other = compare(found.runs[0], open_run(yardstick))
    tables = [pair_table(each, judge(each), ("relative_l2",)) for each in (found.comparison, other)]
    said = judged(ratios(*tables))
    print(f"\nagainst the yardstick: {said.verdict.upper()}, {said.compared} outputs, ", end="")
    print(f"median {error(said.median)} and worst {error(said.worst)} times its error")
    if said.first:
        print(f"    first beyond it: {plain(said.first)}")


def _write_bundle(found: _Found, arguments: argparse.Namespace) -> None:
    wanted = arguments.id or next((f.id for f in found.diagnosis.findings), "")
    finding = next((f for f in found.diagnosis.findings if f.id == wanted), None)
    if finding is None:
        raise ExplorerError("There is no finding to make a bundle of.", "")
    if found.runs is None:
        from store import workspace

        parcel = workspace.default().bundle(found.comparison.id, finding.tensor)
    else:
        parcel = bundle(*found.runs, comparison=found.comparison, tensor=finding.tensor)
    arguments.bundle.write_bytes(parcel)
    print(f"{arguments.bundle}: {len(parcel):,} bytes", file=sys.stderr)
