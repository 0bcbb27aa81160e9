"""The same answers from a shell: inspect a dump, compare two, show a comparison of the workspace.

Exit code 0: pass. 1: fail (a fault or something to watch). 2: could not compare.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from analysis.adapt.dims import rule_from_text
from analysis.compare import compare
from analysis.coverage_text import oddity_in_words, shares_in_words
from analysis.execution import Executor
from analysis.export import comparison_json
from analysis.matching import mapping_from_text, mapping_text
from analysis.matching.mapping import Form
from analysis.progress import Progress, Report
from analysis.rows import Row, pair_rows
from analysis.verdict import judge
from charts.names import plain
from commands import parsers
from core.collector import collect_seldom
from core.comparison import Comparison, Judgement, Settings, Tolerance
from core.coverage import Coverage
from core.errors import ExplorerError, SelectionError
from core.numbers import error, shape, size, times_floor
from core.runs import Run, nbytes
from core.selection import selection_from_text
from loaders import open_run
from metrics import CPU, METRICS

PASS, FAIL, COULD_NOT_COMPARE = 0, 1, 2
_EXIT = {"fault": FAIL, "watch": FAIL, "rounding": PASS, "uncompared": COULD_NOT_COMPARE}
_TEMPLATE = "what file names mean, for example 'step{step}/{module}.{slot}.{argument}'"
_PROSE = 1000  # characters; names are cut much earlier
_SHOWN_METRICS = ("relative_l2", "cosine_distance", "max_abs_error", "ulp_p99")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; a user's mistake is told in a sentence and gives exit code 2."""
    collect_seldom()
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
    inspect.add_argument("--template", help=_TEMPLATE)
    inspect.set_defaults(run=_inspect)

    two = commands.add_parser("compare", help="compare two dumps: verdict, first divergence, pairs")
    two.add_argument("reference", type=Path)
    two.add_argument("candidate", type=Path)
    two.add_argument("--atol", type=float, help="absolute tolerance of an element")
    two.add_argument("--rtol", type=float, help="relative tolerance of an element")
    two.add_argument("--save", type=Path, metavar="FILE", help="write a file any Explorer opens")
    two.add_argument(
        "--workers", type=int, default=1, help="processes; 1 measures here, on all cores"
    )
    two.add_argument("--cluster", metavar="ADDRESS", help="scheduler of a Dask cluster")
    _add_pairing(two)
    two.add_argument("--device", default=CPU, help="cpu (default), or cuda, cuda:1 … by PyTorch")
    two.add_argument("--template", help=f"{_TEMPLATE}; for both dumps")
    two.set_defaults(run=_compare)

    kept = commands.add_parser("show", help="a comparison of the workspace or in a file")
    kept.add_argument("comparison", help="its id in the workspace, or a file from compare --save")
    kept.set_defaults(run=_show)
    parsers.add_findings(commands)
    parsers.add_report(commands)
    for command in (two, kept):
        command.add_argument("--json", type=Path, metavar="FILE", help="write the whole comparison")
        command.add_argument(
            "--write-mapping", type=Path, metavar="FILE", help="write what was paired, to be edited"
        )
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


def _add_pairing(two: argparse.ArgumentParser) -> None:
    two.add_argument("--mapping", type=Path, metavar="FILE", help="which tensors belong together")
    two.add_argument(
        "--dims",
        action="append",
        default=[],
        metavar="PATTERN=DIMS",
        help="axes and shards of tensors, for example '*o_proj*=b s h[tp:partial]'; repeatable",
    )
    two.add_argument("--steps", default="", help="align steps by number, by order, or by +1, -1 …")
    for name in ("--only-steps", "--only-ranks"):
        two.add_argument(
            name, type=_numbers, default=(), metavar="N,N", help="of the reference; default: all"
        )


def _inspect(arguments: argparse.Namespace) -> int:
    run = open_run(arguments.folder, template=arguments.template)
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
    dumps = (arguments.reference, arguments.candidate)
    reference, candidate = (open_run(dump, template=arguments.template) for dump in dumps)
    for run in (reference, candidate):
        _print_problems(run)
    settings = _settings(arguments)
    with _executor(arguments) as executor:
        if arguments.save:
            return _compare_and_save(arguments, (reference, candidate), settings, executor)
        comparison = compare(
            reference, candidate, settings, _progress(), executor=executor, device=arguments.device
        )
    return _report(_Answer(comparison, judge(comparison)), arguments)


def _compare_and_save(
    arguments: argparse.Namespace,
    runs: Sequence[Run],
    settings: Settings,
    executor: Executor | None,
) -> int:
    from store import direct  # what is kept, and how, is needed by this command alone

    reference, candidate = runs
    dumps = arguments.reference, arguments.candidate
    with direct.ledger(dumps, (reference, candidate), settings, arguments.save) as saving:
        comparison = compare(
            *(reference, candidate, settings, _progress()),
            executor=executor,
            ledger=saving.ledger,
            device=arguments.device,
        )
        direct.save(saving, comparison, (reference, candidate))
        return _report(_Answer(comparison, judge(comparison)), arguments)


def _executor(arguments: argparse.Namespace) -> AbstractContextManager[Executor | None]:
    if not arguments.cluster and arguments.workers <= 1:
        return nullcontext()
    from store import executors

    if arguments.cluster:
        return executors.Cluster(arguments.cluster)
    return executors.LocalWorkers(arguments.workers, (arguments.reference, arguments.candidate))


def _show(arguments: argparse.Namespace) -> int:
    from store import direct, workspace  # need the database, which no other command does

    if Path(arguments.comparison).is_file():
        with direct.opened(Path(arguments.comparison)) as (comparison, judgement):
            return _report(_Answer(comparison, judgement), arguments)
    kept = workspace.default()
    comparison = kept.comparison(arguments.comparison)
    return _report(_Answer(comparison, kept.judgement(arguments.comparison)), arguments)


def _settings(arguments: argparse.Namespace) -> Settings:
    tolerance = None
    if arguments.atol is not None or arguments.rtol is not None:
        tolerance = Tolerance(arguments.atol or 0.0, arguments.rtol or 0.0)
    mapping = _read_text(arguments.mapping) if arguments.mapping else ""
    return Settings(
        tolerance,
        mapping=mapping_from_text(mapping) if mapping else (),
        dims=tuple(map(rule_from_text, arguments.dims)),
        steps=arguments.steps,
        only_steps=arguments.only_steps,
        only_ranks=arguments.only_ranks,
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExplorerError(f"{path} cannot be read: {error}.", "Give a text file.") from error


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
    if arguments.write_mapping:
        form: Form = "json" if arguments.write_mapping.suffix == ".json" else "csv"
        arguments.write_mapping.write_text(mapping_text(answer.comparison, form), encoding="utf-8")
    rows = pair_rows(answer.comparison, answer.judgement, _wanted(arguments))
    _print_verdict(answer, rows)
    if arguments.tensor:
        _print_tensor(rows, arguments.tensor)
    else:
        _print_pairs(_chosen(rows, arguments))
    return _EXIT[answer.judgement.verdict]


def _wanted(arguments: argparse.Namespace) -> list[str]:
    """Metrics that will be printed, in the order of the registry."""
    shown = {*_SHOWN_METRICS, arguments.sort}
    return [name for name in METRICS if arguments.tensor or name in shown]


def _print_verdict(answer: _Answer, rows: list[Row]) -> None:
    comparison, judged = answer.comparison, answer.judgement
    print(f"{judged.verdict.upper()}  {plain(judged.sentence, _PROSE)}")
    print(plain(judged.detail, _PROSE))
    if judged.first_divergence is not None:
        row = rows[judged.first_divergence]
        where = plain(row["operator"]), row["slot"], plain(row["tensor"])
        print("first divergence:", "  ".join(where))
    print(
        f"compared {sum(not row['problem'] for row in rows)} of {len(rows)} pairs; "
        f"{len(comparison.unmatched_reference)} tensors in the reference only, "
        f"{len(comparison.unmatched_candidate)} in the candidate only; id {comparison.id}"
    )
    if comparison.coverage is not None:
        _print_coverage(comparison.coverage)


def _print_coverage(coverage: Coverage) -> None:
    print(f"coverage: {shares_in_words(coverage)}")
    if coverage.suggested:
        print(f"suggested pairs, not compared: {coverage.suggested}; see --write-mapping")
    for oddity in coverage.oddities:
        print(f"note: {plain(oddity_in_words(oddity), _PROSE)}")


def _chosen(rows: list[Row], arguments: argparse.Namespace) -> list[Row]:
    """The rows asked for, worst first, and what has no number last: listed, never dropped."""
    if arguments.under:
        inside = arguments.under, f"{arguments.under}."
        rows = [
            r for r in rows if r["operator"] == inside[0] or r["operator"].startswith(inside[1])
        ]
    if arguments.sort != "order":
        rising = arguments.sort in METRICS and METRICS[arguments.sort].ideal != 0
        rows = sorted(rows, key=lambda row: _rank(row[arguments.sort], rising=rising))
    return rows[: arguments.top]


def _rank(value: float, *, rising: bool) -> tuple[bool, float]:
    return value != value, 0.0 if value != value else value if rising else -value


def _print_pairs(rows: list[Row]) -> None:
    if not rows:
        print("no pairs")
        return
    columns = {
        "verdict": [row["verdict"] for row in rows],
        "× floor": [times_floor(row["times_floor"]) for row in rows],
        **{METRICS[m].label: [error(row[m]) for row in rows] for m in _SHOWN_METRICS},
        "tensor": [plain(row["tensor"]) for row in rows],
    }
    print()
    widths = [max(map(len, (label, *cells))) for label, cells in columns.items()]
    for line in (tuple(columns), *zip(*columns.values(), strict=True)):
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    for row in rows:
        if row["problem"]:
            print(f"not compared: {plain(row['tensor'])}: {plain(row['problem'])}")


def _print_tensor(rows: list[Row], tensor_id: str) -> None:
    found = [row for row in rows if row["tensor"] == tensor_id]
    if not found:
        raise ExplorerError(f"The comparison has no tensor {tensor_id!r}.", "See --sort order.")
    for key, value in found[0].items():
        shown = error(value) if key in METRICS else value
        print(f"{key:28} {plain(str(shown))}")


if __name__ == "__main__":
    sys.exit(main())
