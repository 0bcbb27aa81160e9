"""`python -m benchmarks [--keep] [NAME …]`: run all measurements or those named, print a table.

With `--keep` the table of each also becomes a dated file under `benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import os
import platform
from pathlib import Path

from benchmarks.row import Row

NAMES = (
    *("engine", "reading", "compare", "findings", "peers", "pairing", "tables", "scaling"),
    *("upload", "pages", "tensor_page"),
)
OTHERS = ("lighthouse", "screenshots")  # only when named: one needs npm, the other makes files
RESULTS = Path(__file__).parent / "results"
_HEAD = ("| measurement | value | reference in the same run | ratio |", "|---|---|---|---|")


def main() -> None:
    """Print the rows of each measurement as a Markdown table."""
    parser = argparse.ArgumentParser(prog="benchmarks")
    parser.add_argument("--keep", action="store_true", help="keep dated files of the tables")
    parser.add_argument("names", nargs="*", metavar="NAME", help=" | ".join(NAMES + OTHERS))
    arguments = parser.parse_args()
    print("\n".join(_HEAD))
    for name in arguments.names or NAMES:
        lines = []
        for row in importlib.import_module(f"benchmarks.{name}").measure():
            lines.append(_line(row))
            print(lines[-1], flush=True)
        if arguments.keep:
            _keep(name, lines)


def _line(row: Row) -> str:
    return f"| {row.what} | {row.value} | {row.reference} | {row.ratio} |"


def _keep(name: str, lines: list[str]) -> None:
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    RESULTS.mkdir(exist_ok=True)
    text = "\n".join([f"{name}, {today}, {machine}", "", *_HEAD, *lines, ""])
    (RESULTS / f"{today}-{name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
