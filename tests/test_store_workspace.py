"""Runs, jobs and questions of a workspace, with real workers on small real dumps."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import store_samples
from test_store_comparisons import bits

from analysis.compare import compare
from analysis.progress import Progress
from analysis.views import SliceView, slice_view
from core.comparison import Comparison, Settings, Tolerance
from core.errors import CompareError, ExplorerError, LoadError, NotHereError
from core.runs import Run
from store import confinement
from store.options import Options, from_environment, workspace_root
from store.records import JobRecord, RunRecord
from store.workers import Workers
from store.workspace import Workspace, default

HERE = Path(__file__).parent
WAIT_S = 60
pytestmark = pytest.mark.xdist_group("workspace")  # one set of workers serves most tests
needs_landlock = pytest.mark.skipif(
    confinement.landlock_version() < 4, reason="this kernel has no Landlock with network rules"
)


def write_dump(folder: Path, *, scale: float = 1.0, tensors: int = 3) -> Path:
    folder.mkdir(parents=True)
    with h5py.File(folder / "step0.h5", "w") as file:
        for n in range(tensors):
            values = np.arange(64, dtype=np.float32).reshape(8, 8) + n
            file[f"layers.{n}/output"] = values * np.float32(scale)
    return folder


def options(tmp_path: Path, **changes: object) -> Options:
    given = {"folders": (tmp_path / "dumps",), "questions": 1, "ask_s": 20.0}
    return Options(**(given | changes))


def eventually(look: Callable[[], object], *, wait_s: float = WAIT_S) -> None:
    end = time.monotonic() + wait_s
    while not look():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def described(workspace: Workspace, record: RunRecord) -> RunRecord:
    eventually(lambda: workspace.run(record.id).status != "reading")
    return workspace.run(record.id)


def finished(workspace: Workspace, job: JobRecord) -> JobRecord:
    eventually(lambda: workspace.job(job.id).is_over)
    return workspace.job(job.id)


def two_runs(workspace: Workspace, tmp_path: Path, scale: float = 1.5) -> tuple[str, str]:
    reference = write_dump(tmp_path / "dumps" / "gpu")
    candidate = write_dump(tmp_path / "dumps" / "xpu", scale=scale)
    return workspace.add_folder(reference).id, workspace.add_folder(candidate).id


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path / "w", options=options(tmp_path)) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workspace, str, Path]]:
    """A workspace whose workers run already, with one comparison of gpu and xpu."""
    folder = tmp_path_factory.mktemp("shared")
    with Workspace(folder / "w", options=options(folder, ask_s=6.0, stall_s=10)) as opened:
        job = finished(opened, opened.submit(*two_runs(opened, folder)))
        assert job.comparison_id is not None, job.error
        yield opened, job.comparison_id, folder


Engine = Callable[..., Comparison]


@pytest.fixture
def submit(
    shared: tuple[Workspace, str, Path], monkeypatch: pytest.MonkeyPatch
) -> Callable[[Engine], JobRecord]:
    """Starts a job of its own with another engine in the shared workspace."""
    workspace = shared[0]
    runs = {run.label: run.id for run in workspace.runs()}

    def start(engine: Engine) -> JobRecord:
        monkeypatch.setattr(workspace._jobs, "_engine", engine)
        settings = Settings(Tolerance(time.time(), 0.0))  # never made before
        return workspace.submit(runs["gpu"], runs["xpu"], settings)

    return start


# Runs


def test_a_folder_becomes_a_run_that_says_what_is_in_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    added = workspace.add_folder(write_dump(tmp_path / "dumps" / "gpu"), label="GPU")
    assert added.status == "reading"
    run = described(workspace, added)
    assert (run.status, run.label, run.tensors, run.nbytes) == ("ready", "GPU", 3, 3 * 256)
    assert run.fingerprint


def test_the_same_folder_is_added_once_and_again_when_it_changed(
    workspace: Workspace, tmp_path: Path
) -> None:
    folder = write_dump(tmp_path / "dumps" / "gpu")
    first = workspace.add_folder(folder)
    assert workspace.add_folder(folder).id == first.id
    (folder / "more.txt").write_text("x")
    assert workspace.add_folder(folder).id != first.id
    assert len(workspace.runs()) == 2


def test_a_folder_that_is_no_dump_fails_with_the_loaders_words(
    workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "dumps" / "empty").mkdir(parents=True)
    run = described(workspace, workspace.add_folder(tmp_path / "dumps" / "empty"))
    assert run.status == "failed"
    assert run.error
    with pytest.raises(CompareError, match="cannot be compared"):
        workspace.submit(run.id, run.id)


def test_an_archive_becomes_a_run_and_its_values_are_there(
    workspace: Workspace, tmp_path: Path
) -> None:
    dump = write_dump(tmp_path / "dumps" / "a")
    path = Path(shutil.make_archive(str(dump.parent / "packed"), "xztar", dump.parent, dump.name))
    whole, packed = (described(workspace, workspace.add_folder(each)) for each in (dump, path))
    assert packed.status == "ready"
    assert packed.problems == ()
    assert (packed.tensors, packed.nbytes) == (whole.tensors, whole.nbytes)
    job = finished(workspace, workspace.submit(whole.id, packed.id))
    assert job.comparison_id is not None
    comparison = workspace.comparison(job.comparison_id)
    assert all(pair.stats and pair.stats.equal == pair.stats.count for pair in comparison.pairs)


def test_a_template_is_kept_with_the_run(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "dumps" / "fc.out.npy"
    path.parent.mkdir()
    np.save(path, np.ones(3))
    plain = described(workspace, workspace.add_folder(path))
    assert "template" not in plain.provenance
    again = described(workspace, workspace.add_folder(path, template="{module}.{slot}"))
    assert again.id == plain.id
    assert again.provenance["template"] == "{module}.{slot}"
    assert described(workspace, workspace.add_folder(path)).provenance == again.provenance
    cleared = described(workspace, workspace.set_template(plain.id, None))
    assert "template" not in cleared.provenance
    with pytest.raises(LoadError, match="unknown"):
        workspace.set_template(plain.id, "{modul}")


@pytest.mark.parametrize("path", ["/etc", "dumps/../secret", "dumps/link", "/nowhere/at/all"])
def test_a_folder_outside_the_permitted_ones_is_refused_alike(
    workspace: Workspace, tmp_path: Path, path: str
) -> None:
    write_dump(tmp_path / "secret")
    (tmp_path / "dumps").mkdir()
    (tmp_path / "dumps" / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(LoadError, match="not in a folder this server may read") as caught:
        workspace.add_folder(tmp_path / path)
    assert "PX_FOLDERS" in caught.value.hint


def test_an_unknown_run_is_not_here(workspace: Workspace) -> None:
    with pytest.raises(NotHereError, match="no run 'x'"):
        workspace.run("x")


# Jobs


def test_a_job_ends_in_a_comparison_that_is_kept_exactly(
    workspace: Workspace, tmp_path: Path
) -> None:
    reference, candidate = two_runs(workspace, tmp_path)
    job = finished(workspace, workspace.submit(reference, candidate))
    assert job.status == "done", job.error
    comparison = workspace.comparison(job.comparison_id or "")
    assert comparison.id == job.comparison_id
    assert [pair.problem for pair in comparison.pairs] == [None] * 3
    assert len(workspace.table(comparison.id)) == 3
    assert workspace.judgement(comparison.id).verdict == workspace.recent()[0].verdict
    (listed,) = workspace.recent()
    assert (listed.id, listed.label_reference, listed.compared, listed.total) == (
        comparison.id,
        "gpu",
        3,
        3,
    )
    with Workspace(tmp_path / "w", options=options(tmp_path)) as restarted:
        assert bits(restarted.comparison(comparison.id)) == bits(comparison)


def test_the_same_comparison_is_not_made_twice(workspace: Workspace, tmp_path: Path) -> None:
    reference, candidate = two_runs(workspace, tmp_path)
    first = finished(workspace, workspace.submit(reference, candidate))
    assert workspace.submit(reference, candidate).id == first.id
    looser = Settings(Tolerance(1.0, 1.0))
    other = finished(workspace, workspace.submit(reference, candidate, looser))
    assert other.comparison_id not in (None, first.comparison_id)


def test_a_comparison_that_was_lost_is_made_again(workspace: Workspace, tmp_path: Path) -> None:
    runs = two_runs(workspace, tmp_path)
    first = finished(workspace, workspace.submit(*runs))
    (tmp_path / "w" / "comparisons" / str(first.comparison_id) / "pairs.parquet").unlink()
    again = workspace.submit(*runs)
    assert again.id != first.id
    assert finished(workspace, again).comparison_id == first.comparison_id


def crashing(*_: object, **__: object) -> Comparison:
    store_samples.crash()
    raise AssertionError


def hanging(
    reference: Run,
    candidate: Run,
    settings: Settings,
    report: Callable[[Progress], None],
    **_: object,
) -> Comparison:
    report(Progress(10, 100, 1, 3, "layers.1/output"))
    time.sleep(600)
    return compare(reference, candidate, settings, report)


def mistaken(*_: object, **__: object) -> Comparison:
    raise ZeroDivisionError("a bug")


def refusing(*_: object, **__: object) -> Comparison:
    raise CompareError("These cannot be compared.", "Try others.")


@pytest.mark.parametrize(
    ("engine", "error", "hint"),
    [
        (crashing, "crashed (SIGSEGV)", "probably damaged"),
        (mistaken, "ZeroDivisionError: a bug", ""),
        (refusing, "These cannot be compared.", "Try others."),
        (store_samples.hog, "more memory", "PX_WORKER_MEMORY"),
        (hanging, "made no progress", "probably damaged"),
    ],
)
def test_a_job_that_fails_says_why_and_the_next_one_runs(
    shared: tuple[Workspace, str, Path],
    submit: Callable[[Engine], JobRecord],
    engine: Engine,
    error: str,
    hint: str,
) -> None:
    job = finished(shared[0], submit(engine))
    assert job.status == "failed"
    assert error in job.error
    assert hint in job.error_hint
    assert finished(shared[0], submit(compare)).status == "done"


def test_a_running_job_is_cancelled_within_a_second(
    shared: tuple[Workspace, str, Path], submit: Callable[[Engine], JobRecord]
) -> None:
    workspace = shared[0]
    job = submit(telling)
    eventually(lambda: workspace.job(job.id).status == "running")
    pids = [process.pid for process in worker_processes(workspace)]
    begun = time.monotonic()
    assert workspace.cancel(job.id).status == "cancelled"
    eventually(lambda: not any(map(is_running, pids)), wait_s=1.0)
    assert time.monotonic() - begun < 1.0
    time.sleep(0.2)
    assert workspace.job(job.id).status == "cancelled"
    assert workspace.jobs()[0].id == job.id


def worker_processes(workspace: Workspace) -> list[object]:
    return list(workspace._comparing._pool._pool_manager.worker_manager.workers.values())


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_progress_is_shown_while_a_job_runs(
    shared: tuple[Workspace, str, Path], submit: Callable[[Engine], JobRecord]
) -> None:
    workspace = shared[0]
    job = submit(telling)
    eventually(lambda: workspace.job(job.id).done_pairs == 1)
    seen = workspace.job(job.id)
    assert (seen.status, seen.done_bytes, seen.total_bytes) == ("running", 10, 100)
    assert seen.message == "layers.1/output"
    workspace.cancel(job.id)


def telling(*given: Any, **_: object) -> Comparison:
    report = given[-1]
    while True:
        report(Progress(10, 100, 1, 3, "layers.1/output"))
        time.sleep(0.05)


def test_an_unknown_job_is_not_here(workspace: Workspace) -> None:
    for look in (workspace.job, workspace.cancel):
        with pytest.raises(NotHereError, match="no job"):
            look("x")


SERVER = """
import sys, time
from pathlib import Path
from typing import Any
import test_store_workspace as t
if __name__ == "__main__":
    folder = Path(sys.argv[1])
    workspace = t.Workspace(folder / "w", options=t.options(folder), engine=t.hanging)
    job = workspace.submit(*t.two_runs(workspace, folder))
    t.eventually(lambda: workspace.job(job.id).status == "running")
    print(job.id, *(p.pid for p in t.worker_processes(workspace)), flush=True)
    time.sleep(600)
"""


def test_a_job_whose_server_was_killed_is_interrupted_and_can_be_submitted_again(
    tmp_path: Path,
) -> None:
    environment = os.environ | {"PYTHONPATH": f"{HERE}:{HERE.parent}"}
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    with subprocess.Popen(
        [sys.executable, script, tmp_path], stdout=subprocess.PIPE, env=environment, text=True
    ) as server:
        assert server.stdout is not None
        job_id, *pids = server.stdout.readline().split()
        with Workspace(tmp_path / "w", options=options(tmp_path)) as neighbour:
            assert neighbour.job(job_id).status == "running"
        server.send_signal(signal.SIGKILL)
    eventually(lambda: not any(is_running(int(pid)) for pid in pids), wait_s=10)
    with Workspace(tmp_path / "w", options=options(tmp_path)) as restarted:
        dead = restarted.job(job_id)
        assert dead.status == "interrupted"
        again = restarted.submit(dead.reference_id, dead.candidate_id)
        assert again.id != job_id
        assert finished(restarted, again).status == "done"


def test_the_catalogue_is_remade_from_what_is_on_disk(tmp_path: Path) -> None:
    with Workspace(tmp_path / "w", options=options(tmp_path)) as workspace:
        finished(workspace, workspace.submit(*two_runs(workspace, tmp_path)))
        before = workspace.recent()
    for path in (tmp_path / "w").glob("catalogue.sqlite*"):
        path.unlink()
    with Workspace(tmp_path / "w", options=options(tmp_path)) as restarted:
        assert bits(restarted.recent()) == bits(before)


# Questions


def shapes(reference: Run, candidate: Run, *, tensor: str) -> tuple[int, float]:
    values = candidate.read(tensor)
    return values.shape[0], float(values.sum() / reference.read(tensor).sum())


def worker_id(*_: object, nonce: int) -> tuple[int, int]:
    return os.getpid(), nonce


def refused(*_: object) -> None:
    raise NotHereError("It is not there.", "Look elsewhere.")


def test_a_question_is_answered_from_both_dumps(shared: tuple[Workspace, str, Path]) -> None:
    workspace, comparison_id, _ = shared
    tensor = workspace.comparison(comparison_id).pairs[0].reference.id
    assert workspace.ask(comparison_id, shapes, tensor=tensor) == (8, pytest.approx(1.5))


def test_a_transposed_pair_is_kept_and_read_as_it_was_compared(
    shared: tuple[Workspace, str, Path],
) -> None:
    workspace, _, folder = shared
    values = np.random.default_rng(1).standard_normal((6, 9)).astype(np.float32)
    ids = []
    for name, stored in (("rows", values), ("columns", values.T)):
        (folder / "dumps" / name).mkdir()
        with h5py.File(folder / "dumps" / name / "step0.h5", "w") as file:
            file["layers.0/output"] = stored
        ids.append(workspace.add_folder(folder / "dumps" / name).id)
    job = finished(workspace, workspace.submit(*ids))
    assert job.comparison_id is not None, job.error
    (pair,) = workspace.comparison(job.comparison_id).pairs
    assert pair.adaptation is not None
    assert [step.operation for step in pair.adaptation.steps] == ["transpose"]
    assert pair.stats is not None
    assert pair.stats.equal == values.size
    names = {"reference_id": pair.reference.id, "candidate_id": pair.candidate.id}
    seen = workspace.ask(
        job.comparison_id, slice_view, selection=":, :", dtype="float32", rms=1.0, **names
    )
    assert np.array_equal(seen.images.candidate, values)


def test_a_huge_slice_is_a_glance_until_a_worker_has_read_all_of_it(
    shared: tuple[Workspace, str, Path],
) -> None:
    workspace, comparison_id, folder = shared
    tensor = workspace.comparison(comparison_id).pairs[0].reference
    asked = {"reference_id": tensor.id, "candidate_id": tensor.id, "selection": ":, :",
             "dtype": "float32", "rms": 1.0}  # fmt: skip
    direct = workspace.slice_view(comparison_id, whole=":, :", huge=False, **asked)

    def look() -> SliceView:
        return workspace.slice_view(comparison_id, whole=":, :", huge=True, **asked)

    reduced = folder / "w" / "reduced"
    eventually(lambda: look() is not None and list(reduced.glob("*.npz")))
    (kept,) = reduced.glob("*.npz")
    seen = look()
    assert seen.seen == seen.elements == 64
    assert np.nanmax(np.abs(seen.images.error)) == np.nanmax(np.abs(direct.images.error))
    kept.unlink()  # another slice needed its room
    eventually(lambda: look() is not None and kept.exists())


def test_questions_run_in_another_process_and_equal_ones_are_asked_once(
    shared: tuple[Workspace, str, Path],
) -> None:
    workspace, comparison_id, _ = shared
    first = workspace.ask(comparison_id, worker_id, nonce=1)
    assert first[0] != os.getpid()
    assert workspace.ask(comparison_id, worker_id, nonce=1) is first
    assert workspace.ask(comparison_id, worker_id, nonce=2)[1] == 2


@pytest.mark.parametrize(
    ("question", "message", "hint"),
    [
        (store_samples.crash, r"read gpu and xpu crashed \(SIGSEGV\)", "probably damaged"),
        (store_samples.hang, "took too long", "probably damaged"),
        (store_samples.hog, "more memory", "smaller part"),
        (refused, "It is not there", "Look elsewhere"),
    ],
)
def test_a_question_that_fails_is_an_error_the_page_can_show(
    shared: tuple[Workspace, str, Path],
    question: Callable[..., None],
    message: str,
    hint: str,
) -> None:
    workspace, comparison_id, _ = shared
    with pytest.raises(ExplorerError, match=message) as caught:
        workspace.ask(comparison_id, question)
    assert hint in caught.value.hint
    assert workspace.ask(comparison_id, worker_id, nonce=3)[1] == 3  # the next one is answered


def test_a_bug_in_a_question_stays_a_bug(shared: tuple[Workspace, str, Path]) -> None:
    workspace, comparison_id, _ = shared
    with pytest.raises(ZeroDivisionError):
        workspace.ask(comparison_id, mistaken)


def test_a_worker_killed_while_idle_is_replaced(shared: tuple[Workspace, str, Path]) -> None:
    workspace, comparison_id, _ = shared
    pid, _nonce = workspace.ask(comparison_id, worker_id, nonce=4)
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.5)
    assert workspace.ask(comparison_id, worker_id, nonce=5)[0] != pid


def test_a_question_about_an_unknown_comparison_is_not_here(workspace: Workspace) -> None:
    with pytest.raises(NotHereError, match="no comparison"):
        workspace.ask("nothing", shapes, tensor="x")


def test_a_dump_that_is_gone_or_changed_is_told_and_a_copy_elsewhere_serves(
    workspace: Workspace, tmp_path: Path
) -> None:
    reference, candidate = two_runs(workspace, tmp_path)
    made = finished(workspace, workspace.submit(reference, candidate)).comparison_id or ""
    (tmp_path / "dumps" / "gpu" / "note.txt").write_text("changed")
    with pytest.raises(NotHereError, match="gpu has changed"):
        workspace.ask(made, worker_id, nonce=1)
    (tmp_path / "dumps" / "gpu").rename(tmp_path / "gone")
    with pytest.raises(NotHereError, match="gpu is gone"):
        workspace.ask(made, worker_id, nonce=1)
    copy = workspace.add_folder(write_dump(tmp_path / "dumps" / "copy"))
    again = finished(workspace, workspace.submit(copy.id, candidate))
    assert again.comparison_id == made  # the id comes from the content
    assert workspace.ask(made, worker_id, nonce=1)[1] == 1


# Confinement


@pytest.fixture(scope="module")
def confined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workers, Path]]:
    """A worker that may read `open`, write `jobs`, and no other part of the folder."""
    folder = tmp_path_factory.mktemp("confined")
    for name in ("open", "jobs"):
        (folder / name).mkdir()
        (folder / name / "x").write_text("here")
    (folder / "secret").write_text("hidden")
    bounds = confinement.Bounds(
        readable=(str(folder / "open"),),
        writable=(str(folder / "jobs"),),
        private=str(folder),
        nbytes=1 << 30,
    )
    workers = Workers(1, bounds)
    yield workers, folder
    workers.close()


def run(workers: Workers, function: Callable[..., object], *arguments: object) -> object:
    return workers.call("tried", function, *arguments, timeout_s=30)


@needs_landlock
@pytest.mark.parametrize(
    "path", ["/etc/passwd", "secret", "../", "/proc/1/environ", "/root/.bashrc"]
)
def test_a_worker_cannot_read_what_it_was_not_given(
    confined: tuple[Workers, Path], path: str
) -> None:
    workers, folder = confined
    with pytest.raises(OSError, match=r"Permission denied|Is a directory"):
        run(workers, store_samples.read_file, str(folder / path))


@needs_landlock
def test_a_worker_reads_and_writes_where_it_may(confined: tuple[Workers, Path]) -> None:
    workers, folder = confined
    assert run(workers, store_samples.read_file, str(folder / "open/x")) == "here"
    assert run(workers, store_samples.write_file, str(folder / "jobs/y")) == 1
    for path in ("open/x", "new", "/tmp/px-should-not-be"):
        with pytest.raises(PermissionError):
            run(workers, store_samples.write_file, str(folder / path))


@needs_landlock
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_worker_has_no_network(confined: tuple[Workers, Path], kind: int) -> None:
    with pytest.raises(PermissionError):
        run(confined[0], store_samples.open_socket, int(kind))


def test_a_workers_memory_is_bounded(confined: tuple[Workers, Path]) -> None:
    with pytest.raises(ExplorerError, match="more memory"):
        run(confined[0], store_samples.hog)


def test_a_worker_carries_neither_the_pages_nor_a_framework(workspace: Workspace) -> None:
    heavy = ("streamlit", "torch", "plotly", "store.tasks")
    workers = workspace._questions
    assert run(workers, store_samples.loaded_modules, heavy) == ["store.tasks"]


# The process's own workspace


def test_options_come_from_the_environment() -> None:
    told = from_environment(
        {"PX_FOLDERS": "/a:/b", "PX_MAX_UPLOAD": "7", "PX_QUESTION_WORKERS": "3"}
    )
    assert told.folders == (Path("/a"), Path("/b"))
    assert (told.max_upload, told.questions, told.comparisons) == (7, 3, 1)
    assert from_environment({}) == Options()
    assert workspace_root({"PX_WORKSPACE": "/data"}) == Path("/data")


def test_the_default_workspace_is_opened_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PX_WORKSPACE", str(tmp_path / "mine"))
    opened = default()
    assert default() is opened
    assert (tmp_path / "mine" / "catalogue.sqlite").exists()
    opened.check()
    opened.close()


def test_a_workspace_that_cannot_be_written_says_so(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "w" / "jobs").rename(tmp_path / "w" / "moved")
    with pytest.raises(OSError, match="No such file"):
        workspace.check()
    (tmp_path / "w" / "moved").rename(tmp_path / "w" / "jobs")
