"""Killed in the middle with no chance to say so, a comparison goes on where it was."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
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
from store import bundles, comparisons
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


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Comparison]:
    """A saved comparison of a user with shapes that differ and tensors without partner."""
    import cli

    root = tmp_path_factory.mktemp("saved")
    dumps = write_dump(root / "gpu", 1.0), write_dump(root / "xpu", 1.01)
    np.save(dumps[1] / "t39.npy", np.zeros(3))
    np.save(dumps[0] / "only.npy", np.zeros(3))
    path = root / "a.pxc"
    assert cli.main(["compare", *map(str, dumps), "--save", str(path)]) == cli.FAIL
    return path, compare(open_run(dumps[0]), open_run(dumps[1]))


def test_a_saved_comparison_is_one_file_with_everything_in_it(
    saved: tuple[Path, Comparison], tmp_path: Path
) -> None:
    path, compared = saved
    assert [p.name for p in path.parent.iterdir() if p.is_file()] == ["a.pxc"]
    kept = bundles.take(path, tmp_path, "me")
    assert kept.record.id == compared.id
    assert bits(comparisons.read(tmp_path, compared.id)) == bits(compared)
    assert [p.name for p in tmp_path.iterdir()] == [compared.id]


def test_show_reads_a_saved_comparison_without_the_dumps(
    saved: tuple[Path, Comparison], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import cli

    elsewhere = tmp_path / "copy.bin"
    elsewhere.write_bytes(saved[0].read_bytes())
    assert cli.main(["show", str(elsewhere)]) == cli.FAIL
    assert f"id {saved[1].id}" in capsys.readouterr().out
    assert cli.main(["show", str(Path(__file__))]) == cli.COULD_NOT_COMPARE
    assert "no saved comparison" in capsys.readouterr().err


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]


@pytest.mark.parametrize("place", range(12))
def test_a_damaged_bundle_is_refused_or_read_whole(
    saved: tuple[Path, Comparison], tmp_path: Path, place: int
) -> None:
    from core.errors import LoadError

    data = saved[0].read_bytes()
    damaged = tmp_path / "x.pxc"
    damaged.write_bytes(flipped(data, 60 + place * (len(data) - 100) // 12))
    (tmp_path / "w").mkdir()
    try:
        bundles.take(damaged, tmp_path / "w", "me")
    except LoadError:
        assert list((tmp_path / "w").iterdir()) == []
    else:  # a byte that stands between the members, or in a picture
        assert bits(comparisons.read(tmp_path / "w", saved[1].id)) == bits(saved[1])


def renamed(archive: Path, change: Callable[[str, bytes], tuple[str, bytes]], to: Path) -> Path:
    import zipfile

    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(to, "w") as target:
        for member in source.infolist():
            target.writestr(*change(member.filename, source.read(member)))
    return to


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda n, d: ("../evil" if n == "meta.json" else n, d), "unknown"),
        (lambda n, d: (n, d.replace(b'"id": "', b'"id": "0')), "id does not follow"),
        (lambda n, d: (n, d.replace(b'"version": 1', b'"version": 9')), "version is 9"),
        (lambda n, d: (n, d.replace(b"gpu", b"GPU") if n == "meta.json" else d), ""),
        (lambda n, d: (n, d.replace(b'"content"', b'"contemt"')), "content"),
    ],
)
def test_a_forged_bundle_says_what_is_wrong(
    saved: tuple[Path, Comparison],
    tmp_path: Path,
    change: Callable[[str, bytes], tuple[str, bytes]],
    why: str,
) -> None:
    from core.errors import LoadError

    forged = renamed(saved[0], change, tmp_path / "x.pxc")
    (tmp_path / "w").mkdir()
    if not why:  # a label is nobody's content
        assert bundles.take(forged, tmp_path / "w", "me").record.label_reference == "GPU"
        return
    with pytest.raises(LoadError, match=why):
        bundles.take(forged, tmp_path / "w", "me")
    assert list(tmp_path.glob("**/*evil*")) == []
