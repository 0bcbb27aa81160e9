"""`python -m benchmarks [NAME …]`: run all measurements or those named, print a table."""

from __future__ import annotations

import importlib
import sys

NAMES = (
    "engine", "reading", "compare", "peers", "pairing", "tables", "scaling", "upload", "pages",
)  # fmt: skip


def main() -> None:
    """Print the rows of each measurement as a Markdown table."""
    print("| measurement | value | reference in the same run | ratio |")
    print("|---|---|---|---|")
    for name in sys.argv[1:] or NAMES:
        for row in importlib.import_module(f"benchmarks.{name}").measure():
            print(f"| {row.what} | {row.value} | {row.reference} | {row.ratio} |", flush=True)


if __name__ == "__main__":
    main()
