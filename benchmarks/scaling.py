"""Time and memory against size, pairs by the ten thousand, one worker against two."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.compare import _dumps
from benchmarks.row import Cost, Row, cost_of

SIZES_MB = (100, 400, 1000, 4000, 8000)  # of both sides together
TENSOR = 25_000_000  # elements; 100 MB in float32
WORKERS_MB = 2000
PAIRS = 100_000
SMALL = 1024  # elements; 4 KB in float32


def measure() -> Iterator[Row]:
    """Three tables in one: size, workers, small pairs; each from the shell, cold start included."""
    yield from _sizes()
    yield from _workers()
    yield from _small()


def _sizes() -> Iterator[Row]:
    costs = []
    for megabytes in SIZES_MB:
        with tempfile.TemporaryDirectory() as folder:
            cost = _compared(_large(Path(folder), megabytes))
        costs.append(cost)
        yield Row(
            f"compare {megabytes} MB of float32, whole process",
            f"{cost.seconds:.1f} s",
            f"peak {cost.peak_mb:.0f} MB",
        )
    yield Row("time against size: share of the variance on a straight line", _straight(costs))


def _straight(costs: Sequence[Cost]) -> str:
    seconds = np.array([cost.seconds for cost in costs])
    return f"{np.corrcoef(SIZES_MB, seconds)[0, 1] ** 2:.4f}"


def _workers() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        dumps = _large(Path(folder), WORKERS_MB)
        here = _compared(dumps)
        one = _compared(dumps, "--workers", "2", cores=1)
        two = _compared(dumps, "--workers", "2")
    yield Row(
        f"compare {WORKERS_MB} MB, two workers on two cores against the same on one",
        f"{two.seconds:.1f} s",
        f"{one.seconds:.1f} s",
        f"{one.seconds / two.seconds:.2f}",
    )
    yield Row(
        f"compare {WORKERS_MB} MB, two workers against two threads of one process",
        f"{two.seconds:.1f} s",
        f"{here.seconds:.1f} s",
        f"{here.seconds / two.seconds:.2f}",
    )


def _small() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        dumps = _dumps(Path(folder), PAIRS, SMALL)
        costs = [_compared(dumps), _compared(dumps, "--workers", "2")]
    for words, cost in zip(("in one process", "with two workers"), costs, strict=True):
        yield Row(
            f"compare {PAIRS} pairs of 4 KB from one HDF5 file, {words}",
            f"{PAIRS / cost.seconds:.0f} pairs/s",
            f"peak {cost.peak_mb:.0f} MB",
        )


def _compared(dumps: Sequence[Path], *options: str, cores: int = 0) -> Cost:
    command = ["cli.py", "compare", *map(str, dumps), *options]
    return cost_of(command, cores=cores)


def _large(folder: Path, megabytes: int) -> tuple[Path, Path]:
    """Two dumps of .npy files, written by repeating a few million values: quick, and not sparse."""
    rng = np.random.default_rng(0)
    block = rng.standard_normal(1_250_000, np.float32)
    paths = folder / "reference", folder / "candidate"
    for path, values in zip(paths, (block, block * np.float32(1 + 1e-6)), strict=True):
        path.mkdir()
        left, n = megabytes * 1_000_000 // 2 // 4, 0
        while left > 0:
            size = min(TENSOR, left)
            with (path / f"layers_{n}.npy").open("wb") as file:
                header = {"descr": "<f4", "fortran_order": False, "shape": (size,)}
                np.lib.format.write_array_header_1_0(file, header)
                for _ in range(size // block.size):
                    values.tofile(file)
            left, n = left - size, n + 1
    return paths
