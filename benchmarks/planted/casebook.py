"""The casebook beside the checkout: its tiny model, its planted faults and its scorer's words."""

from __future__ import annotations

import csv
import importlib
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[3] / "shared" / "casebook"


class CasebookMissingError(Exception):
    """The casebook is not beside this checkout; the text says where it was looked for."""


@dataclass(frozen=True, slots=True)
class Casebook:
    """The casebook's modules, imported at run time."""

    runner: Any
    tinymodel: Any
    dumpio: Any
    faults: Any
    cases: Any
    thin: Any


def is_present() -> bool:
    """Whether the casebook stands where it is looked for."""
    return (FOLDER / "runner.py").is_file()


@cache
def casebook() -> Casebook:
    """Import the casebook. Raises CasebookMissingError where there is none."""
    if not is_present():
        raise CasebookMissingError(f"no casebook in ../{FOLDER.parent.name}/{FOLDER.name}")
    sys.path.insert(0, str(FOLDER))
    names = ("runner", "tinymodel", "dumpio", "faults", "cases", "thin")
    return Casebook(*(importlib.import_module(name) for name in names))


@cache
def families() -> dict[str, str]:
    """Family of every mechanism slug of the casebook's closed vocabulary."""
    with (FOLDER / "mechanisms.csv").open(encoding="utf-8", newline="") as file:
        return {row["slug"]: row["family"] for row in csv.DictReader(file)}
