"""The sets of pairs: which are made, and under which names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.planted import tiny_benign, torch_benign
from benchmarks.planted.casebook import is_present
from benchmarks.planted.manifest import Entry
from benchmarks.planted.tiny_pairs import write_case
from benchmarks.planted.torch_pairs import write_plan


def benign(folder: Path) -> Iterator[Entry]:
    """Honest pairs: nothing but rounding and harmless differences."""
    if is_present():
        tiny_benign.register()
        for n, case in enumerate(tiny_benign.cases(), 1):
            yield write_case(case, folder, f"b{n:03d}")
    for n, plan in enumerate(torch_benign.plans(), 1):
        yield write_plan(plan, folder, f"t{n:03d}")
