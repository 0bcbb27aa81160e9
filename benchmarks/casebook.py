"""`python -m benchmarks.casebook`: diagnose pairs whose answer is known, and score the answers.

Sets: `visible` (the casebook's own), `benign`, `faults`, `two`, and each of the first three with
less in the dumps: `visible-outputs`, `visible-layers`, `visible-half` and so on. Pairs are written
once, into a folder that is kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.planted import sets
from benchmarks.planted.casebook import FOLDER, is_present
from benchmarks.planted.manifest import FILE, copy, read, write
from benchmarks.planted.predicting import Prediction, predict_all, score_by_casebook
from benchmarks.planted.scoring import error_lines, found_both, score, table

KEPT = Path(__file__).parent.parent / "build" / "casebook"
WHOLE = ("visible", "benign", "faults")
SETS = (*WHOLE, *(f"{name}-{how}" for name in WHOLE for how in sets.THIN), "two")


def main() -> None:
    """Write what is missing, diagnose, print the tables."""
    chosen = _arguments()
    for name in chosen.sets or SETS:
        folder = chosen.data / name
        make(folder)
        entries = [entry for entry in read(folder) if _asked_for(entry, chosen.only)]
        predictions = list(_progress(predict_all([folder / entry["id"] for entry in entries])))
        print(f"\n== {name} ==\n{report(name, entries, predictions, errors=chosen.errors)}")
        if name == "visible" and not chosen.only:
            scorer = FOLDER / "score.py"
            print(f"casebook's scorer: {score_by_casebook(folder, predictions, scorer)}")
        sys.stdout.flush()


def make(folder: Path) -> None:
    """Write a set unless it is there; a thin one from the whole one beside it."""
    if (folder / FILE).exists():
        return
    whole, _, how = folder.name.partition("-")
    if how:
        make(folder.with_name(whole))
        write_thin(folder.with_name(whole), folder, how)
    else:
        write(folder, list(getattr(sets, whole)(folder)))


def write_thin(whole: Path, folder: Path, how: str) -> None:
    """Pairs of a whole set that are in torch_xray's layout, with less in them."""
    entries = []
    for entry in read(whole):
        if list((whole / entry["id"]).rglob("globalrank-*.h5")):
            sets.thin(whole / entry["id"], folder / entry["id"], how)
            entries.append(entry)
    copy(folder, entries)


def report(
    name: str,
    entries: Sequence[dict[str, Any]],
    predictions: Sequence[Prediction],
    *,
    errors: bool,
) -> str:
    """The table of a set, and what was wrong."""
    scored = score(entries, predictions)
    seconds = sorted(prediction.seconds for prediction in predictions)
    times = f"median {seconds[len(seconds) // 2]:.2f}, most {seconds[-1]:.2f}"
    lines = [table(scored), f"seconds a pair: {times}"]
    if name == "two":
        lines.append(_both(entries, predictions))
    return "\n".join(lines + (error_lines(scored) if errors else []))


def _both(entries: Sequence[dict[str, Any]], predictions: Sequence[Prediction]) -> str:
    found = [found_both(entry, said) for entry, said in zip(entries, predictions, strict=True)]
    first, second, named = (sum(column) for column in zip(*found, strict=True))
    both = sum(one[0] and one[1] for one in found)
    return (
        f"of {len(found)} pairs: first found {first}, second {second}, both {both}, named {named}"
    )


def _asked_for(entry: dict[str, Any], only: Sequence[str]) -> bool:
    return not only or entry["id"] in only or entry["mechanism"] in only


def _progress(predictions: Iterator[Prediction]) -> Iterator[Prediction]:
    for n, prediction in enumerate(predictions, 1):
        print(f"\r{n} ", end="", file=sys.stderr, flush=True)
        yield prediction


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}")
    parser.add_argument("--data", type=Path, default=KEPT, help="folder the pairs are kept in")
    parser.add_argument("--only", nargs="*", default=(), help="ids or mechanisms")
    parser.add_argument("--errors", action="store_true", help="list the wrong answers")
    chosen = parser.parse_args()
    if not is_present() and not chosen.sets:
        parser.error(f"no casebook at {FOLDER}: name the sets to run (benign, faults: torch only)")
    return chosen


if __name__ == "__main__":
    main()
