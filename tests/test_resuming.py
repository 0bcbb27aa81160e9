"""Killed in the middle with no chance to say so, a comparison goes on where it was."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_store_comparisons import bits
from test_store_workspace import eventually, finished, options

from analysis import batches
from analysis.compare import compare
from analysis.progress import Progress
from core.comparison import Comparison
from loaders import open_run
from store.ledger import FileLedger
from store.workspace import Workspace

HERE = Path(__file__).parent
pytestmark = pytest.mark.xdist_group("workspace")


def write_dump(folder: Path, scale: float) -> Path:
    folder.mkdir(parents=True)
    for n in range(40):
        values = np.random.default_rng(n).standard_normal((16, 16)).astype(np.float32)
        np.save(folder / f"t{n:02}.npy", values * np.float32(scale))
    return folder


def halting(*given: Any, **keywords: Any) -> Comparison:
    """Compares pair by pair and stands still in the middle, for ever."""
    batches.BATCH_TENSORS = 1
    reference, candidate, settings, report = given

    def told(progress: Progress) -> None:
        report(progress)
        if 2 * progress.done_bytes > progress.total_bytes:
            os.write(1, b"half\n")
            time.sleep(600)

    return compare(reference, candidate, settings, told, **keywords)


def resuming(*given: Any, ledger: FileLedger) -> Comparison:
    """Insists that there is something to go on from."""
    assert list(ledger.known()), "nothing was kept"
    return compare(*given, ledger=ledger)


HALTED = """
import sys
from pathlib import Path
from loaders import open_run
from store.ledger import FileLedger
from test_resuming import halting
runs = [open_run(Path(path)) for path in sys.argv[1:3]]
halting(*runs, None, lambda _: None, ledger=FileLedger(Path(sys.argv[3]), key="k"))
"""


def killed_in_the_middle(script: Path, *arguments: object) -> None:
    environment = os.environ | {"PYTHONPATH": f"{HERE}:{HERE.parent}"}
    with subprocess.Popen(
        [sys.executable, script, *map(str, arguments)],
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half\n"
        process.send_signal(signal.SIGKILL)


def test_a_killed_comparison_gives_the_same_bits_when_it_goes_on(tmp_path: Path) -> None:
    dumps = write_dump(tmp_path / "gpu", 1.0), write_dump(tmp_path / "xpu", 1.0001)
    runs = open_run(dumps[0]), open_run(dumps[1])
    script = tmp_path / "halted.py"
    script.write_text(HALTED)
    killed_in_the_middle(script, *dumps, tmp_path / "ledger")
    seen: list[Progress] = []
    with FileLedger(tmp_path / "ledger", key="k") as ledger:
        known = len(list(ledger.known()))
        assert 0 < known < 40
        resumed = compare(*runs, progress=seen.append, ledger=ledger)
    assert seen[0].kept_bytes == known * 2 * 16 * 16 * 4
    assert seen[-1].done_bytes - seen[0].kept_bytes == (40 - known) * 2 * 16 * 16 * 4
    assert bits(resumed) == bits(compare(*runs))


SERVER = """
import sys, time
from pathlib import Path
import test_resuming as t
import test_store_workspace as w
if __name__ == "__main__":
    folder = Path(sys.argv[1])
    workspace = w.Workspace(folder / "w", options=w.options(folder), engine=t.halting)
    workspace.submit(*w.two_runs(workspace, folder))
    time.sleep(600)  # the worker says when half is done
"""


def test_a_job_whose_server_was_killed_goes_on_when_submitted_again(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    killed_in_the_middle(script, tmp_path)
    with Workspace(tmp_path / "w", options=options(tmp_path), engine=resuming) as workspace:
        (interrupted,) = workspace.jobs()
        eventually(lambda: workspace.job(interrupted.id).status == "interrupted")
        again = workspace.submit(interrupted.reference_id, interrupted.candidate_id)
        job = finished(workspace, again)
        assert job.status == "done", job.error
        resumed = workspace.comparison(job.comparison_id or "")
        runs = [open_run(tmp_path / "dumps" / name) for name in ("gpu", "xpu")]
        assert bits(resumed) == bits(compare(*runs))
        assert not list((tmp_path / "w" / "comparisons").glob(".ledger-*"))
