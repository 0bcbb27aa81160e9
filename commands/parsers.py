"""What the further commands take; what they do is imported when one of them runs."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[[argparse.Namespace], int]


def add_findings(commands: Any) -> None:
    """`findings`: rounding or fault, where, which side, why."""
    parser = commands.add_parser("findings", help="what is wrong, where, on which side, and why")
    parser.add_argument(
        "what", nargs="*", metavar="REF CAND | ID", help="two dumps, or a comparison kept here"
    )
    parser.add_argument("--batch", type=Path, metavar="FILE", help="lines of: name, REF, CAND")
    parser.add_argument("--workers", type=int, default=1, help="processes for --batch")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write findings as JSON")
    parser.add_argument("--replays", action="store_true", help="with every replayed output")
    parser.add_argument("--id", default="", metavar="F1", help="only this finding")
    parser.add_argument(
        "--yardstick", type=Path, metavar="RUN", help="a trusted run or a repeat of REF: its error "
        "against REF is the unit of CAND's",
    )  # fmt: skip
    parser.add_argument("--bundle", type=Path, metavar="FILE", help="repro bundle of --id, or F1")
    parser.add_argument(
        "--functions", type=Path, metavar="FILE.py", help="reference functions of your operators"
    )
    parser.set_defaults(run=_runs("findings"))


def add_report(commands: Any) -> None:
    """`report`: a kept comparison as a document."""
    parser = commands.add_parser("report", help="a comparison as HTML, PDF, Markdown or workbook")
    parser.add_argument("comparison", help="its id in the workspace")
    parser.add_argument("--out", type=Path, metavar="FILE", help="its ending chooses the format")
    parser.add_argument("--names", default="", choices=["", "redacted"], help="hash all names")
    parser.add_argument("--worst", default="40", help="how many pairs are listed (default: 40)")
    parser.add_argument("--lang", default="en", help="language: en or zh")
    parser.set_defaults(run=_runs("report"))


def _runs(module: str) -> Run:
    def run(arguments: argparse.Namespace) -> int:
        code: int = importlib.import_module(f"commands.{module}").run(arguments)
        return code

    return run
