"""A kept comparison of 200 000 pairs: opened, filtered, sorted, one pair looked at."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from analysis.table import pair_table
from analysis.verdict import judge
from benchmarks.row import ROOT, Row, own_peak_mb, timed
from core.comparison import Comparison, Match, Pair, RunSummary, Settings, Tolerance
from core.tensors import TensorInfo
from metrics import METRICS, pair_stats
from store import comparisons
from store.comparing import recorded
from store.comparisons import Kept
from store.ledger import FileLedger

PAIRS = 200_000
DISTINCT = 256  # statistics; all others are one of these again
ID = "benchmark"


def measure() -> Iterator[Row]:
    """Write one, then read it in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        seconds = timed(lambda: _write(Path(folder)))
        what = f"keep a comparison of {PAIRS} pairs"
        yield Row(what, f"{seconds:.0f} s, {_megabytes(folder)} MB")
        command = [sys.executable, "-m", "benchmarks.tables", folder]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        told = json.loads(done.stdout)
        for what, value in told.items():
            yield Row(f"{PAIRS} pairs × {len(METRICS)} metrics: {what}", value)


def _megabytes(folder: str) -> int:
    return sum(p.stat().st_size for p in Path(folder).rglob("*") if p.is_file()) // 1_000_000


def _write(folder: Path) -> None:
    rng = np.random.default_rng(0)
    tolerance = Tolerance(1e-5, 1.3e-6)
    stats = []
    for _ in range(DISTINCT):
        a = rng.standard_normal(1024, np.float32)
        b = a * (1 + np.float32(1e-6) * rng.standard_normal(1024, np.float32))
        about = {"dtype": "float32", "dtypes": ("float32", "float32"), "shape": (8, 128)}
        stats.append(pair_stats(a, b, tolerance, **about))
    with FileLedger(folder / "ledger", key=ID) as ledger:
        kept = list(ledger.keep(stats))
        infos = map(_tensor, range(PAIRS))
        pairs = tuple(
            Pair(info, info, Match("exact"), tolerance, kept[n % DISTINCT])
            for n, info in enumerate(infos)
        )
        side = RunSummary("run", "f", "c", PAIRS, PAIRS * 4096)
        comparison = Comparison(ID, side, side, Settings(), pairs)
        judgement = judge(comparison)
        row = np.array([[metric(each) for metric in METRICS.values()] for each in stats])
        columns = row[np.arange(PAIRS) % DISTINCT] * rng.random((PAIRS, 1))
        table = pair_table(comparison, judgement, values=dict(zip(METRICS, columns.T, strict=True)))
        about = Kept(recorded(comparison, judgement), "", "", 0)
        made = (judgement, table)
        comparisons.write(folder, comparison, about, owner="me", ledger=ledger, made=made)


def _tensor(n: int) -> TensorInfo:
    name = f"model.layers.{n // 40}.block.{n % 40}"
    return TensorInfo(
        id=f"step0/rank0/{name}/forward_output.0",
        name=f"{name}/forward_output.0",
        module=name,
        argument="0",
        pass_="forward",
        slot="output",
        shape=(8, 128),
        storage_dtype="float32",
        dtype="float32",
        order=n,
        step=0,
        rank=0,
    )


def _read(folder: Path) -> None:
    from store.derived import derived

    told = {}
    begun = _now()
    comparison = comparisons.read(folder, ID)
    judgement, table = derived(folder / ID, comparison)
    told["opened, judgement and table"] = _cost(begun)
    begun = _now()
    some = table[table.operator.str.startswith("model.layers.7") & (table.relative_l2 > 0)]
    some = some.sort_values("cosine_distance", ascending=False).head(100)
    told["filtered and sorted"] = _cost(begun)
    begun = _now()
    pair = comparison.pairs[int(some["pair"].iloc[0])]
    total = dataclasses.replace(pair).stats.reference.values.total  # type: ignore[union-attr]
    told["one pair and its histogram"] = _cost(begun)
    told["peak memory"] = f"{own_peak_mb():.0f} MB"
    assert total == 1024
    assert len(judgement.verdicts) == PAIRS
    print(json.dumps(told))


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _cost(begun: tuple[float, float]) -> str:
    wall, cpu = (1000 * (b - a) for a, b in zip(begun, _now(), strict=True))
    return f"{wall:.0f} ms, {cpu:.0f} ms of it at work"


if __name__ == "__main__":
    _read(Path(sys.argv[1]))
