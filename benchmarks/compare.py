"""Comparing two dumps from the shell, cold start included, against a plain read of them."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

from benchmarks.row import Row, cost_of, timed

GIGABYTE = 1_000_000_000
TENSORS = 32


def measure() -> Iterator[Row]:
    """A pair of 1 GB float32 dumps, and a pair of 10 000 tensors of 4 KB."""
    with tempfile.TemporaryDirectory() as folder:
        big = _dumps(Path(folder) / "big", TENSORS, GIGABYTE // TENSORS // 4)
        read = timed(lambda: _plain_read(big))
        cost = cost_of([sys.executable, "cli.py", "compare", *map(str, big)])
        yield Row(
            "compare, 2 × 1 GB float32, whole process",
            f"{2 * GIGABYTE / cost.seconds / 1e6:.0f} MB/s, peak {cost.peak_mb:.0f} MB",
            f"plain read {2 * GIGABYTE / read / 1e6:.0f} MB/s",
            f"{read / cost.seconds:.4f}",
        )
    with tempfile.TemporaryDirectory() as folder:
        small = _dumps(Path(folder) / "small", 10_000, 1024)
        cost = cost_of([sys.executable, "cli.py", "compare", *map(str, small)])
        yield Row(
            "compare, 10 000 pairs of 4 KB, whole process",
            f"{10_000 / cost.seconds:.0f} pairs/s, peak {cost.peak_mb:.0f} MB",
        )


def _dumps(folder: Path, tensors: int, elements: int) -> tuple[Path, Path]:
    generator = np.random.default_rng(0)
    paths = folder / "reference", folder / "candidate"
    for path in paths:
        path.mkdir(parents=True)
    with (
        h5py.File(paths[0] / "dump.h5", "w") as ours,
        h5py.File(paths[1] / "dump.h5", "w") as theirs,
    ):
        for n in range(tensors):
            values = generator.standard_normal(elements, dtype=np.float32)
            ours[f"layers.{n}.mlp"] = values
            theirs[f"layers.{n}.mlp"] = values * np.float32(1 + 2**-23)
    return paths


def _plain_read(paths: tuple[Path, Path]) -> None:
    for path in paths:
        mapped = np.memmap(path / "dump.h5", np.uint8, "r")
        whole = mapped[: mapped.size // 8 * 8].view(np.uint64)
        for start in range(0, whole.size, 1 << 19):
            np.bitwise_xor.reduce(whole[start : start + (1 << 19)])
