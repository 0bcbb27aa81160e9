"""The statistics engine in memory: against a plain read of the same arrays, and against NumPy.

The plain read XORs both arrays in the same compiler, over the same ranges, with the same threads.
Processor time leaves out what other work on the machine takes, but also that two threads together
wait for one memory: on a quiet machine read the rows by the wall clock.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from benchmarks.row import ROOT, Row
from core.comparison import Tolerance
from metrics import accumulator, pair_stats

FORMATS = ("float32", "bfloat16", "float16")
THREADS = 2
NBYTES = 256 << 20  # of each side
SEED_ELEMENTS = 1 << 22
ORACLE_ELEMENTS = 1 << 22
TOLERANCE = Tolerance(1e-5, 1.3e-6)
SMALL = (8, 128)  # 4 KB in float32
REPEATS = 9
STRETCH = 1 << 18  # elements


def measure() -> Iterator[Row]:
    """Three formats on two threads, one on one thread, small tensors, the share of each stage."""
    for dtype in FORMATS:
        yield from _rows(dtype)
    yield _scaling()
    yield _small()
    yield from _stages()


def _rows(dtype: str) -> Iterator[Row]:
    a, b = _pair(dtype, NBYTES)
    read, ours = _best(lambda: _read(a, b, THREADS), lambda: _gather(a, b, dtype, THREADS))
    gigabytes = 2 * NBYTES / 1e9
    what = f"all statistics, {dtype}, 2 × {NBYTES >> 20} MB, {THREADS} threads"
    for clock, mine, plain in (
        ("wall clock", ours.wall, read.wall),
        ("processor time", ours.processor / THREADS, read.processor / THREADS),
    ):
        yield Row(
            f"{what}, by {clock}",
            f"{gigabytes / mine:.2f} GB/s",
            f"plain read {gigabytes / plain:.2f} GB/s",
            f"{plain / mine:.3f}",
        )
    sys.path.append(str(ROOT / "tests"))
    from oracle import pair_stats as oracle

    part = slice(0, ORACLE_ELEMENTS)
    about = _about(dtype, (ORACLE_ELEMENTS,))
    (slow,) = _best(lambda: oracle(a[part], b[part], TOLERANCE, **about), repeats=2)
    rate, own = ORACLE_ELEMENTS / slow.processor, THREADS * a.size / ours.processor
    yield Row(
        f"all statistics, {dtype}, against NumPy in float64, by processor time",
        f"{own / 1e6:.0f} M pairs of elements/s on {THREADS} threads",
        f"{rate / 1e6:.1f} M/s on one",
        f"{own / rate:.0f}",
    )


def _scaling() -> Row:
    a, b = _pair("float32", NBYTES)
    works = (partial(_gather, a, b, "float32", threads) for threads in (1, THREADS))
    one, two = (shortest.wall for shortest in _best(*works))
    return Row(
        "all statistics, float32, two threads against one",
        f"{two:.3f} s",
        f"{one:.3f} s",
        f"{one / two:.2f}",
    )


def _small() -> Row:
    a, b = _pair("float32", 4096)
    about = _about("float32", SMALL)

    def many() -> None:
        for _ in range(2000):
            pair_stats(a, b, TOLERANCE, **about)

    (shortest,) = _best(many)
    return Row(
        "pairs of 4 KB, one thread, by processor time", f"{2000 / shortest.processor:.0f} pairs/s"
    )


def _stages() -> Iterator[Row]:
    """Cycles by stage, from a process whose kernels are compiled to count them."""
    environment = dict(os.environ, PX_ENGINE_TIMED="1")
    for dtype in FORMATS:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.engine", dtype],
            cwd=ROOT,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        stages: dict[str, int] = json.loads(done.stdout)
        total = sum(stages.values())
        shares = ", ".join(f"{name} {100 * n / total:.0f} %" for name, n in stages.items())
        yield Row(f"share of each stage, {dtype}", shares)


def _print_stages(dtype: str) -> None:
    """Least cycles of each stage over many short stretches: other work on the machine adds some."""
    from metrics.engine import layout
    from metrics.engine.accumulator import _empty
    from metrics.engine.plan import plan
    from metrics.engine.workspace import NarrowSpace

    a, b = _pair(dtype, 16 << 20)
    about = _about(dtype, (a.size // 4096, 4096))
    known = plan((a.dtype, b.dtype), TOLERANCE, about["dtype"], about["dtypes"], about["shape"])
    space = NarrowSpace()
    least = np.full(space.clock.size, np.iinfo(np.int64).max)
    for first in (*range(0, a.size, STRETCH), *range(0, a.size, STRETCH)):
        space.clock[:] = 0
        x, y = a[first : first + STRETCH], b[first : first + STRETCH]
        space.run(known, x.ctypes.data, y.ctypes.data, x.size, first, *_empty(known))
        least = np.minimum(least, space.clock)
    names = {n[2:].lower(): i for n, i in vars(layout).items() if n.startswith("T_")}
    print(json.dumps({n: int(least[i]) for n, i in names.items() if n != "rest"}))


def _about(dtype: str, shape: tuple[int, ...]) -> dict[str, Any]:
    return {"dtype": dtype, "dtypes": (dtype, dtype), "shape": shape}


def _pair(dtype: str, nbytes: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Normal values and the same with an error of about 1e-3 (of 1 ulp where that is more)."""
    numpy_type = np.dtype(getattr(ml_dtypes, dtype, dtype))
    size = nbytes // numpy_type.itemsize
    rng = np.random.default_rng(0)
    a = rng.standard_normal(min(size, SEED_ELEMENTS), np.float32)
    b = a * (1 + np.float32(1e-3) * rng.standard_normal(a.size, np.float32))
    return np.resize(a.astype(numpy_type), size), np.resize(b.astype(numpy_type), size)


def _gather(a: NDArray[Any], b: NDArray[Any], dtype: str, threads: int) -> None:
    gathering = accumulator(TOLERANCE, **_about(dtype, (a.size // 4096, 4096)), threads=threads)
    gathering.add(a, b)
    gathering.stats()


def _read(a: NDArray[Any], b: NDArray[Any], threads: int) -> None:
    words = [side.view(np.uint64) for side in (a, b)]
    cuts = range(0, words[0].size, 1 << 19)
    with ThreadPoolExecutor(threads) as executor:
        list(executor.map(lambda at: _xor_both(words, at), cuts))


def _xor_both(words: list[NDArray[np.uint64]], at: int) -> int:
    from benchmarks.plain_read import xor

    return sum(xor(side[at : at + (1 << 19)]) for side in words)


class Shortest(NamedTuple):
    """Shortest times of one piece of work, in seconds."""

    wall: float
    processor: float  # of all threads together


def _best(*works: Callable[[], None], repeats: int = REPEATS) -> list[Shortest]:
    """Works taken by turns, so that a busy neighbour disturbs all alike."""
    for work in works:
        work()
    found = [Shortest(float("inf"), float("inf"))] * len(works)
    for _ in range(repeats):
        for i, work in enumerate(works):
            start = time.perf_counter(), time.process_time()
            work()
            wall, processor = time.perf_counter() - start[0], time.process_time() - start[1]
            found[i] = Shortest(min(found[i].wall, wall), min(found[i].processor, processor))
    return found


if __name__ == "__main__":
    _print_stages(sys.argv[1])
