"""The statistics engine in memory: against a plain read of the same arrays, and against NumPy.

The plain read XORs both arrays in the same compiler, over the same ranges, with the same threads.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from benchmarks.row import ROOT, Row, timed
from core.comparison import Tolerance
from metrics import accumulator, pair_stats

THREADS = 2
NBYTES = 256 << 20  # of each side
SEED_ELEMENTS = 1 << 22
ORACLE_ELEMENTS = 1 << 22
TOLERANCE = Tolerance(1e-5, 1.3e-6)
SMALL = (8, 128)  # 4 KB in float32
REPEATS = 5


def measure() -> Iterator[Row]:
    """Three formats on two threads, one on one thread, small tensors, the share of each stage."""
    for dtype in ("float32", "bfloat16", "float16"):
        yield from _rows(dtype)
    yield _scaling()
    yield _small()
    yield from _stages()


def _rows(dtype: str) -> Iterator[Row]:
    a, b = _pair(dtype, NBYTES)
    read, ours = _best(lambda: _read(a, b, THREADS), lambda: _gather(a, b, dtype, THREADS))
    gigabytes = 2 * NBYTES / 1e9
    yield Row(
        f"all statistics, {dtype}, 2 × {NBYTES >> 20} MB, {THREADS} threads",
        f"{gigabytes / ours:.2f} GB/s",
        f"plain read {gigabytes / read:.2f} GB/s",
        f"{read / ours:.3f}",
    )
    sys.path.append(str(ROOT / "tests"))
    from oracle import pair_stats as oracle

    part = slice(0, ORACLE_ELEMENTS)
    slow = timed(lambda: oracle(a[part], b[part], TOLERANCE, **_about(dtype, (ORACLE_ELEMENTS,))))
    rate = ORACLE_ELEMENTS / slow
    yield Row(
        f"all statistics, {dtype}, against NumPy in float64",
        f"{a.size / ours / 1e6:.0f} M pairs of elements/s",
        f"{rate / 1e6:.1f} M/s",
        f"{a.size / ours / rate:.0f}",
    )


def _scaling() -> Row:
    a, b = _pair("float32", NBYTES)
    one, two = _best(lambda: _gather(a, b, "float32", 1), lambda: _gather(a, b, "float32", THREADS))
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

    (seconds,) = _best(many)
    return Row("pairs of 4 KB, one thread", f"{2000 / seconds:.0f} pairs/s")


def _stages() -> Iterator[Row]:
    """Cycles by stage, from a process whose kernels are compiled to count them."""
    environment = dict(os.environ, PX_ENGINE_TIMED="1")
    for dtype in ("float32", "bfloat16"):
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
    from metrics.engine import layout
    from metrics.engine.accumulator import _empty
    from metrics.engine.plan import plan
    from metrics.engine.workspace import NarrowSpace

    a, b = _pair(dtype, 16 << 20)
    about = _about(dtype, (a.size // 4096, 4096))
    known = plan((a.dtype, b.dtype), TOLERANCE, about["dtype"], about["dtypes"], about["shape"])
    space = NarrowSpace()
    for _ in range(2):  # the first pass warms up
        space.clock[:] = 0
        space.run(known, a.ctypes.data, b.ctypes.data, a.size, 0, *_empty(known))
    names = {n[2:].lower(): i for n, i in vars(layout).items() if n.startswith("T_")}
    print(json.dumps({n: int(space.clock[i]) for n, i in names.items() if n != "rest"}))


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


def _best(*works: Callable[[], None]) -> list[float]:
    """Shortest times, taken by turns so that a busy neighbour disturbs all alike."""
    found = [float("inf")] * len(works)
    for work in works:
        work()
    for _ in range(REPEATS):
        for i, work in enumerate(works):
            start = time.perf_counter()
            work()
            found[i] = min(found[i], time.perf_counter() - start)
    return found


if __name__ == "__main__":
    _print_stages(sys.argv[1])
