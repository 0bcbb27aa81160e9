"""The sets of pairs: which are made, and under which names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.planted import (
    tiny_benign,
    tiny_faults,
    tiny_kinds,
    torch_benign,
    torch_fault_pairs,
    two_faults,
)
from benchmarks.planted.casebook import casebook, is_present
from benchmarks.planted.manifest import Entry
from benchmarks.planted.tiny_pairs import write_case
from benchmarks.planted.torch_pairs import write_plan

THIN = ("outputs", "layers", "half")


def visible(folder: Path) -> Iterator[Entry]:
    """The casebook's own pairs under its own ids, which its fixed shuffle gives."""
    cases = casebook().cases.CASES
    order = np.random.default_rng(len(cases)).permutation(len(cases))
    for n, place in enumerate(order, 1):
        yield write_case(cases[place], folder, f"v{n:03d}")


def benign(folder: Path) -> Iterator[Entry]:
    """Honest pairs: nothing but rounding and harmless differences."""
    if is_present():
        tiny_kinds.register()
        for n, case in enumerate(tiny_benign.cases(), 1):
            yield write_case(case, folder, f"b{n:03d}")
    for n, plan in enumerate(torch_benign.plans(), 1):
        yield write_plan(plan, folder, f"t{n:03d}")


def faults(folder: Path) -> Iterator[Entry]:
    """One planted fault in each candidate."""
    if is_present():
        tiny_faults.register()
        for n, case in enumerate(tiny_faults.cases(), 1):
            yield write_case(case, folder, f"p{n:03d}")
    for n, plan in enumerate(torch_fault_pairs.plans(), 1):
        yield write_plan(plan, folder, f"q{n:03d}")


def two(folder: Path) -> Iterator[Entry]:
    """Two planted faults in each candidate."""
    if is_present():
        yield from two_faults.pairs(folder)


def thin(folder: Path, out: Path, how: str) -> None:
    """Copy a set of torch_xray dumps with less in them: `outputs`, `layers` or `half`."""
    casebook().thin.main(str(folder), str(out), how)
