"""Work cut in pieces and given away: the same bits whoever does it, and whoever dies doing it."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_store_comparisons import bits

from analysis import batches
from analysis.batches import PIECE, Batch
from analysis.compare import compare
from analysis.measuring import measure
from analysis.progress import Progress
from core.comparison import Comparison, Tolerance
from core.runs import Run
from loaders import open_run
from store.executors import Cluster, LocalWorkers
from store.ledger import FileLedger

pytestmark = pytest.mark.xdist_group("executor")  # its processes want both cores
LARGE = PIECE + 12_345
SMALL = 120


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A tensor of two pieces, many small ones, one of another shape and one without partner."""
    root = tmp_path_factory.mktemp("dumps")
    rng = np.random.default_rng(0)
    large = rng.integers(-100, 100, LARGE, np.int8).astype(np.float16)
    for side, name in enumerate(("gpu", "xpu")):
        folder = root / name
        folder.mkdir()
        changed = large.copy()
        changed[:: 1000 + side] += np.float16(side)
        np.save(folder / "large.npy", changed)
        rows = np.random.default_rng(1).standard_normal((SMALL, 8, 16)).astype(np.float32)
        for n, row in enumerate(rows * np.float32(1 + side * 1e-6)):
            np.save(folder / f"small_{n:03}.npy", row)
        np.save(folder / "odd.npy", np.zeros((3, 4 + side)))
        np.save(folder / f"only_{name}.npy", np.arange(5.0) + side)
    return root / "gpu", root / "xpu"


@pytest.fixture(scope="module")
def runs(dumps: tuple[Path, Path]) -> tuple[Run, Run]:
    return open_run(dumps[0]), open_run(dumps[1])


@pytest.fixture(scope="module")
def alone(runs: tuple[Run, Run]) -> Comparison:
    return compare(*runs)


def test_pieces_do_not_depend_on_who_measures_them(
    dumps: tuple[Path, Path], runs: tuple[Run, Run], alone: Comparison
) -> None:
    seen: list[Progress] = []
    with LocalWorkers(2, dumps) as executor:
        shared = compare(*runs, progress=seen.append, executor=executor)
    assert bits(shared) == bits(alone)
    assert seen[-1].done_bytes == seen[-1].total_bytes
    assert seen[-1].bytes_per_s > 0
    assert seen[-1].left_s == 0


def test_a_tensor_is_measured_as_a_whole_would_be(alone: Comparison, runs: tuple[Run, Run]) -> None:
    stats = next(p.stats for p in alone.pairs if p.reference.id == "large")
    a, b = (run.read("large").astype(np.int64) for run in runs)
    assert stats is not None
    assert stats.count == LARGE
    assert stats.equal == int((a == b).sum())
    assert stats.max_abs_error.value == int(abs(a - b).max())
    assert stats.max_abs_error.index == int(abs(a - b).argmax())
    energy = float(stats.moments.error.energy)
    assert energy == pytest.approx(((a - b) ** 2).sum(), rel=1e-12)


def test_work_is_cut_by_bytes_and_by_number(runs: tuple[Run, Run], alone: Comparison) -> None:
    subjects = [
        batches.Subject(p.reference.id, p.candidate.id, p.tolerance)
        for p in alone.pairs
        if p.problem is None
    ]
    work = list(batches.batches(runs, subjects))
    pieces = [(t.number, k) for batch in work for t in batch.tasks for k in range(t.first, t.end)]
    assert len(pieces) == len(set(pieces)) == SMALL + 2
    assert all(len(batch.tasks) <= batches.BATCH_TENSORS for batch in work)
    assert sum(batch.nbytes for batch in work) == 2 * (2 * LARGE + SMALL * 8 * 16 * 4)
    rest = batches.batches(runs, subjects, known=frozenset(pieces[1:]))
    assert [(t.number, t.first) for batch in rest for t in batch.tasks] == pieces[:1]


def fatal(batch: Batch, *_: object) -> Any:
    """Dies of one tensor, whatever else is in the batch."""
    if any(task.subject.reference == "small_007" for task in batch.tasks):
        os.kill(os.getpid(), signal.SIGSEGV)
    return measure(batch)


@pytest.mark.slow
def test_a_tensor_that_kills_its_reader_costs_only_itself(
    dumps: tuple[Path, Path], runs: tuple[Run, Run], alone: Comparison
) -> None:
    from analysis.execution import Memory

    ledger = Memory()
    ledger.measure = fatal  # type: ignore[method-assign]
    with LocalWorkers(2, dumps) as executor:
        compared = compare(*runs, executor=executor, ledger=ledger)
    for got, expected in zip(compared.pairs, alone.pairs, strict=True):
        if got.reference.id == "small_007":
            assert "the worker that read it died" in (got.problem or "")
        else:
            assert bits(got) == bits(expected)


class Held:
    """An executor whose work does not end before it is cancelled."""

    workers, lost = 2, ()

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []

    def submit(self, _function: Callable[..., Any], *_arguments: Any) -> Future[Any]:
        self.futures.append(Future())
        return self.futures[-1]


def test_what_is_under_way_is_cancelled_when_the_user_stops(runs: tuple[Run, Run]) -> None:
    executor = Held()

    def stop(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(*runs, progress=stop, executor=executor)
    assert executor.futures
    assert all(future.cancelled() for future in executor.futures)


def test_no_chunk_is_read_after_the_user_stops(
    runs: tuple[Run, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    monkeypatch.setattr("analysis.measuring.CHUNK", 1 << 20)

    def stop(progress: Progress) -> None:
        read.append(progress.done_bytes)
        if len(read) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(*runs, progress=stop)
    assert len(read) == 5
    assert read[-1] <= 5 << 21


def test_a_comparison_goes_on_where_it_was_stopped(
    tmp_path: Path,
    runs: tuple[Run, Run],
    alone: Comparison,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batches, "BATCH_BYTES", 1 << 20)
    heard: list[Progress] = []

    def stop(progress: Progress) -> None:
        heard.append(progress)
        if progress.done_bytes > 4 * PIECE:
            raise KeyboardInterrupt

    with FileLedger(tmp_path / "x", key="k") as ledger, pytest.raises(KeyboardInterrupt):
        compare(*runs, progress=stop, ledger=ledger)
    with FileLedger(tmp_path / "x", key="k") as ledger:
        known = len(list(ledger.known()))
        assert known > 0
        resumed = compare(*runs, progress=heard.append, ledger=ledger)
        assert bits(resumed) == bits(alone)
    assert heard[-1].kept_bytes > 0
    with FileLedger(tmp_path / "x", key="k") as ledger:
        assert len(list(ledger.known())) == SMALL + 2 + 4
    with FileLedger(tmp_path / "x", key="another") as ledger:
        assert list(ledger.known()) == []


@pytest.mark.parametrize("cut", [1, 300])
def test_a_ledger_cut_short_keeps_the_frames_before(
    tmp_path: Path, runs: tuple[Run, Run], alone: Comparison, cut: int
) -> None:
    path = tmp_path / "x"
    with FileLedger(path, key="k") as ledger:
        compare(*runs, ledger=ledger)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - cut)
    with FileLedger(path, key="k") as ledger:
        assert len(list(ledger.known())) < SMALL + 6
        assert bits(compare(*runs, ledger=ledger)) == bits(alone)


def cluster(tmp_path: Path, address: Path) -> list[Any]:
    """A scheduler and two workers, each a process of its own that talks TCP."""
    import subprocess
    import sys

    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)}
    quiet = {"env": environment, "cwd": tmp_path, "stderr": subprocess.DEVNULL}
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    scheduler = subprocess.Popen(
        [*dask, "--port", "0", "--no-dashboard", "--scheduler-file", str(address)], **quiet
    )
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(address)]
    workers = [
        subprocess.Popen([*worker, "--nthreads", "1", "--no-nanny", "--no-dashboard"], **quiet)
        for _ in range(2)
    ]
    return [scheduler, *workers]


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[tuple[str, list[Any]]]:
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    address = tmp_path / "scheduler.json"
    processes = cluster(tmp_path, address)
    try:
        end = time.monotonic() + 60
        while not address.exists():
            assert time.monotonic() < end, "the scheduler did not start"
            time.sleep(0.1)
        yield json.loads(address.read_text())["address"], processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_gives_the_same_bits(
    dask: tuple[str, list[Any]], runs: tuple[Run, Run], alone: Comparison
) -> None:
    address, processes = dask
    killed = threading.Event()

    def kill_one(progress: Progress) -> None:
        if progress.done_bytes and not killed.is_set():
            processes[1].kill()
            killed.set()

    assert address.startswith("tcp://")
    with Cluster(address) as executor:
        executor._client.wait_for_workers(2, timeout=60)
        compared = compare(*runs, progress=kill_one, executor=executor)
    assert killed.is_set()
    assert processes[1].wait() == -signal.SIGKILL
    assert processes[2].poll() is None
    assert bits(compared) == bits(alone)


def test_elements_beyond_two_billion_are_found_where_they_are(tmp_path: Path) -> None:
    size = (1 << 31) + 8
    for name, value in (("gpu", 0), ("xpu", 3)):
        (tmp_path / name).mkdir()
        path = tmp_path / name / "x.npy"
        with path.open("wb") as file:
            header = {"descr": "|i1", "fortran_order": False, "shape": (size,)}
            np.lib.format.write_array_header_1_0(file, header)
            begin = file.tell()
            file.truncate(begin + size)  # a hole: two gigabytes of zeros that lie on no disk
            file.seek(begin + size - 3)
            file.write(bytes([value]))
    runs = open_run(tmp_path / "gpu"), open_run(tmp_path / "xpu")
    subject = batches.Subject("x", "x", Tolerance(0.0, 0.0))
    known = {(0, piece) for piece in range(batches.pieces_of(size) - 1)}
    (last,) = batches.batches(runs, [subject], known=known)
    (measured,) = measure(last)
    assert last.nbytes == 2 * 8
    assert measured.stats is not None
    assert measured.stats.count == 8
    assert measured.stats.max_abs_error.index == size - 3
    assert measured.stats.max_abs_error.value == 3
