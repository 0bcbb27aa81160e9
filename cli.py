"""The same answers from a shell: inspect a dump, compare two, show a comparison of the workspace.

Exit code 0: pass. 1: fail (a fault or something to watch). 2: could not compare.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.compare import compare
from analysis.export import comparison_json
from analysis.progress import Progress, Report
from analysis.table import pair_table
from analysis.verdict import judge
from charts.names import plain
from core.comparison import Comparison, Judgement, Settings, Tolerance
from core.errors import ExplorerError, SelectionError
from core.numbers import error, shape, size, times_floor
from core.runs import Run, nbytes
from core.selection import selection_from_text
from loaders import open_run
from metrics import METRICS

PASS, FAIL, COULD_NOT_COMPARE = 0, 1, 2
_EXIT = {"fault": FAIL, "watch": FAIL, "rounding": PASS, "uncompared": COULD_NOT_COMPARE}
_PROSE = 1000  # characters; names are cut much earlier
_SHOWN_METRICS = ("relative_l2", "cosine_distance", "max_abs_error", "ulp_p99")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; a user's mistake is told in a sentence and gives exit code 2."""
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
    except ExplorerError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"       {error.hint}", file=sys.stderr)
        return COULD_NOT_COMPARE
    except BrokenPipeError:
        sys.stderr.close()  # the reader, `head` for example, has seen enough
        return PASS
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cli.py", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    inspect = commands.add_parser("inspect", help="what a dump holds, or one tensor of it")
    inspect.add_argument("folder", type=Path)
    inspect.add_argument("tensor", nargs="?", help="id of one tensor, whose values are printed")
    inspect.add_argument("--slice", default="", help="part of the tensor, for example '0, 2:5'")
    inspect.set_defaults(run=_inspect)

    two = commands.add_parser("compare", help="compare two dumps: verdict, first divergence, pairs")
    two.add_argument("reference", type=Path)
    two.add_argument("candidate", type=Path)
    two.add_argument("--atol", type=float, help="absolute tolerance of an element")
    two.add_argument("--rtol", type=float, help="relative tolerance of an element")
    two.set_defaults(run=_compare)

    kept = commands.add_parser("show", help="a comparison kept in the workspace, by its id")
    kept.add_argument("comparison")
    kept.set_defaults(run=_show)
    for command in (two, kept):
        command.add_argument("--json", type=Path, metavar="FILE", help="write the whole comparison")
        command.add_argument("--under", default="", help="only this module and what is inside it")
        command.add_argument("--tensor", default="", help="only this tensor, with every metric")
        command.add_argument(
            "--sort",
            default="times_floor",
            choices=["order", "times_floor", "added", *METRICS],
            help="what the pairs are sorted by, worst first (default: %(default)s)",
        )
        command.add_argument("--top", type=int, default=10, help="how many pairs (default: 10)")
    return parser


def _inspect(arguments: argparse.Namespace) -> int:
    run = open_run(arguments.folder)
    if arguments.tensor:
        return _inspect_tensor(run, arguments.tensor, arguments.slice)
    if arguments.slice:
        raise SelectionError("--slice needs a tensor.", "Name one after the folder.")
    total = size(sum(map(nbytes, run.tensors.values())))
    print(f"{plain(run.label)}: {len(run.tensors)} tensors, {total}")
    for key, value in sorted(run.provenance.items()):
        print(f"  {plain(key)}: {plain(value)}")
    for tensor in run.tensors.values():
        stored = "" if tensor.storage_dtype == tensor.dtype else f" in {tensor.storage_dtype}"
        print(f"{plain(tensor.id)}  {tensor.dtype}{stored}  {shape(tensor.shape)}")
    _print_problems(run)
    return PASS


def _inspect_tensor(run: Run, tensor_id: str, selection: str) -> int:
    tensor = run[tensor_id]
    values = run.read(tensor_id, selection_from_text(selection, shape=tensor.shape))
    print(f"{plain(tensor.id)}  {tensor.dtype}  {shape(tensor.shape)}")
    print(values)
    return PASS


def _print_problems(run: Run) -> None:
    for problem in run.problems:
        where, message = plain(problem.where), plain(problem.message)
        print(f"not read: {where}: {message} [{problem.code}]", file=sys.stderr)


def _compare(arguments: argparse.Namespace) -> int:
    runs = [open_run(arguments.reference), open_run(arguments.candidate)]
    for run in runs:
        _print_problems(run)
    comparison = compare(*runs, _settings(arguments), _progress())
    return _report(_Answer(comparison, judge(comparison)), arguments)


def _show(arguments: argparse.Namespace) -> int:
    from store import workspace  # the store is needed by this command alone

    kept = workspace.default()
    comparison = kept.comparison(arguments.comparison)
    return _report(_Answer(comparison, kept.judgement(arguments.comparison)), arguments)


def _settings(arguments: argparse.Namespace) -> Settings:
    if arguments.atol is None and arguments.rtol is None:
        return Settings()
    return Settings(Tolerance(arguments.atol or 0.0, arguments.rtol or 0.0))


def _progress() -> Report:
    if not sys.stderr.isatty():
        return lambda _: None

    def tell(progress: Progress) -> None:
        done = f"{size(progress.done_bytes)} of {size(progress.total_bytes)}"
        print(f"\r{done}", end="", file=sys.stderr)

    return tell


@dataclass(frozen=True, slots=True)
class _Answer:
    comparison: Comparison
    judgement: Judgement


def _report(answer: _Answer, arguments: argparse.Namespace) -> int:
    if arguments.json:
        text = json.dumps(comparison_json(answer.comparison, answer.judgement), allow_nan=False)
        arguments.json.write_text(text + "\n")
    table = pair_table(answer.comparison, answer.judgement, _wanted(arguments))
    _print_verdict(answer, table)
    if arguments.tensor:
        _print_tensor(table, arguments.tensor)
    else:
        _print_pairs(_chosen(table, arguments))
    return _EXIT[answer.judgement.verdict]


def _wanted(arguments: argparse.Namespace) -> list[str]:
    """Metrics that will be printed, in the order of the registry."""
    shown = {*_SHOWN_METRICS, arguments.sort}
    return [name for name in METRICS if arguments.tensor or name in shown]


def _print_verdict(answer: _Answer, table: pd.DataFrame) -> None:
    comparison, judged = answer.comparison, answer.judgement
    print(f"{judged.verdict.upper()}  {plain(judged.sentence, _PROSE)}")
    print(plain(judged.detail, _PROSE))
    if judged.first_divergence is not None:
        row = table.iloc[judged.first_divergence]
        print(f"first divergence: {plain(row.operator)}  {row.slot}  {plain(row.tensor)}")
    print(
        f"compared {int((table.problem == '').sum())} of {len(table)} pairs; "
        f"{len(comparison.unmatched_reference)} tensors in the reference only, "
        f"{len(comparison.unmatched_candidate)} in the candidate only; id {comparison.id}"
    )


def _chosen(table: pd.DataFrame, arguments: argparse.Namespace) -> pd.DataFrame:
    if arguments.under:
        inside = table.operator.str.startswith(f"{arguments.under}.")
        table = table[(table.operator == arguments.under) | inside]
    if arguments.sort != "order":
        # Worst first, and what has no number last: an uncompared pair is listed, never dropped.
        rising = arguments.sort in METRICS and METRICS[arguments.sort].ideal != 0
        table = table.sort_values(arguments.sort, ascending=rising, kind="stable")
    return table.head(arguments.top)


def _print_pairs(table: pd.DataFrame) -> None:
    if table.empty:
        print("no pairs")
        return
    columns = {
        "verdict": list(table.verdict),
        "× floor": [times_floor(v) for v in table.times_floor],
        **{METRICS[m].label: [error(v) for v in table[m]] for m in _SHOWN_METRICS},
        "tensor": [plain(t) for t in table.tensor],
    }
    print()
    print(pd.DataFrame(columns).to_string(index=False))
    for row in table[table.problem != ""].itertuples():
        print(f"not compared: {plain(row.tensor)}: {plain(row.problem)}")


def _print_tensor(table: pd.DataFrame, tensor_id: str) -> None:
    rows = table[table.tensor == tensor_id]
    if rows.empty:
        raise ExplorerError(f"The comparison has no tensor {tensor_id!r}.", "See --sort order.")
    for key, value in rows.iloc[0].items():
        shown = error(value) if key in METRICS else value
        print(f"{key:28} {plain(str(shown))}")


if __name__ == "__main__":
    sys.exit(main())
