"""What a diagnosis costs: a small pair in a whole process, a big one beside its statistics."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from analysis.compare import compare
from analysis.diagnose import diagnose
from analysis.findings import explain
from benchmarks.row import Row, cost_of, timed
from loaders import open_run

# Layers, tokens and width of the pairs: 316 tensors of a small model's size, and 1 GB a side.
SMALL, BIG = (105, 64, 64), (20, 2048, 2048)

_Floats = NDArray[np.float32]


def measure() -> Iterator[Row]:
    """`findings` in the shell against importing torch; a diagnosis against comparing, both warm."""
    with tempfile.TemporaryDirectory() as folder:
        small = _pair(Path(folder), *SMALL)
        named = [sys.executable, "cli.py", "findings", *map(str, small)]
        cost_of(named)  # kernels are compiled once
        cost = cost_of(named)
        torch = cost_of([sys.executable, "-c", "import torch"])
        yield Row(
            f"findings, {3 * SMALL[0]} small tensors, whole process",
            f"{cost.seconds:.2f} s, {cost.cpu_seconds:.2f} s of processor",
            f"import torch {torch.seconds:.2f} s, {torch.cpu_seconds:.2f} s of processor",
            f"{cost.cpu_seconds / torch.cpu_seconds:.2f}",
        )
        _costs(small)
    with tempfile.TemporaryDirectory() as folder:
        compared, diagnosed = _costs(_pair(Path(folder), *BIG))
        yield Row(
            "diagnosis of 2 × 1 GB, float32 linear layers",
            f"{diagnosed:.2f} s",
            f"their statistics {compared:.2f} s",
            f"{diagnosed / compared:.2f}",
        )


def _costs(paths: tuple[Path, Path]) -> tuple[float, float]:
    """Seconds to compare a pair, and to diagnose it from there."""
    reference, candidate = open_run(paths[0]), open_run(paths[1])
    made = []
    compared = timed(lambda: made.append(compare(reference, candidate)))
    return compared, timed(lambda: diagnose(reference, candidate, made[0], explain=explain))


def _pair(folder: Path, layers: int, tokens: int, width: int) -> tuple[Path, Path]:
    """Two runs of a stack of linear layers: sums over K whole, and in four parts."""
    paths = folder / "reference", folder / "candidate"
    for path, parts in zip(paths, (1, 4), strict=True):
        path.mkdir()
        with h5py.File(path / "globalrank-0_localrank-0.h5", "w") as file:
            _write(file.create_group("0", track_order=True), layers, tokens, width, parts)
    return paths


def _write(group: h5py.Group, layers: int, tokens: int, width: int, parts: int) -> None:
    generator = np.random.default_rng(0)
    x = generator.standard_normal((tokens, width), np.float32)
    for n in range(layers):
        weight = generator.standard_normal((width, width), np.float32) / np.float32(width**0.5)
        y = _product(x, weight, parts)
        call = f"model.layers.{n}.mlp.proj.Linear.0"
        group[f"{call}.forward_params.weight"] = weight
        group[f"{call}.forward_input.0"] = x
        group[f"{call}.forward_output.0"] = y
        x = y


def _product(x: _Floats, weight: _Floats, parts: int) -> _Floats:
    split = zip(np.split(x, parts, 1), np.split(weight, parts, 1), strict=True)
    return np.asarray(np.sum([a @ b.T for a, b in split], axis=0, dtype=np.float32))
