"""`python -m benchmarks.planted FOLDER [SET …]`: write the pairs, one subfolder a set."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.planted import sets
from benchmarks.planted.manifest import Entry, write

SETS: dict[str, Callable[[Path], Iterator[Entry]]] = {
    "visible": sets.visible,
    "benign": sets.benign,
    "faults": sets.faults,
    "two": sets.two,
}


def main() -> None:
    """Write the sets named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}")
    chosen = parser.parse_args()
    for name in chosen.sets or SETS:
        _write(chosen.folder / name, SETS[name])


def _write(folder: Path, make: Callable[[Path], Iterator[Entry]]) -> None:
    entries = []
    for entry in make(folder):
        entries.append(entry)
        for problem in entry.problems:
            print(f"{entry.id} {entry.mechanism} {entry.model}: {problem}", flush=True)
    write(folder, entries)
    unsound = sum(bool(entry.problems) for entry in entries)
    print(f"{folder}: {len(entries) - unsound} pairs, {unsound} unsound left out", flush=True)


if __name__ == "__main__":
    main()
