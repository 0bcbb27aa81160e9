"""What a dump must not do: leave its folder, exhaust memory, crash the reader, forge the screen."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import h5py
import hostile
import numpy as np
import pytest
from h5py import h5d, h5s, h5t
from loader_contract import probed

from core.errors import LoadError
from loaders import Limits, open_run
from loaders.names import escaped, unescaped

READ_LATER = {"inflate", "checksum", "chunk", "chunk-length"}  # shows when values are asked for


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Every crafted file, opened and read whole in another process under a bound on memory."""
    folder = tmp_path_factory.mktemp("crafted")
    hostile.secrets(folder)
    paths = [hostile.write(folder, name) for name in hostile.CRAFTED]
    return {Path(found["file"]).stem: found for found in probed(paths)}


@pytest.mark.parametrize("name", hostile.CRAFTED)
def test_a_crafted_file_has_its_problem_named_and_the_rest_loads(
    name: str, results: dict[str, dict[str, Any]]
) -> None:
    found, code = results[name], hostile.CRAFTED[name][1]
    assert found["error"] is None
    assert found["tensors"]["a_good"] == found["tensors"]["z_good"] == hostile.GOOD.size
    if code in READ_LATER:
        assert found["failed"] == {"x": code}
    else:
        assert code in {problem for problem, *_ in found["problems"]}
        assert all(where.startswith(f"{name}.h5: /") for _, where, _ in found["problems"])


@pytest.mark.parametrize("name", ["external_link", "external_storage", "virtual_dataset"])
def test_nothing_outside_the_dump_is_read(name: str, results: dict[str, dict[str, Any]]) -> None:
    assert set(results[name]["tensors"]) == {"a_good", "z_good"}


NAMES = ["..", ".", "a\nb", "\x1b[31mred", "‮evil", "a\\b", "\x80", "back\\x41slash", "层 0/β"]


def test_names_are_shown_without_control_and_none_is_lost(tmp_path: Path) -> None:
    raw = [name.encode() for name in NAMES if name not in (".", "层 0/β")] + [b"bad\xff\xfe"]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name in raw:
            space = h5s.create_simple((2,))
            h5d.create(file.id, name, h5t.IEEE_F32LE, space).write(
                h5s.ALL, h5s.ALL, np.ones(2, np.float32)
            )
    run = open_run(tmp_path)
    assert len(run.tensors) == len(raw)
    assert {unescaped(name) for name in run.tensors} == set(raw)
    for name in run.tensors:
        assert all(unicodedata.category(c)[0] != "C" for c in name)
        assert ".." not in name.split("/")
        assert run.read(name).tolist() == [1, 1]


@pytest.mark.parametrize("name", [name.encode() for name in NAMES] + [b"\xff", b"\\\xff\\n", b""])
def test_an_escaped_name_comes_back_byte_for_byte(name: bytes) -> None:
    assert unescaped(escaped(name)) == name
    assert escaped(name).isprintable()


def test_pipes_and_links_are_named_not_opened(tmp_path: Path) -> None:
    folder = tmp_path / "dump"
    folder.mkdir()
    outside = hostile.secrets(tmp_path)
    with h5py.File(folder / "good.h5", "w") as file:
        file["x"] = hostile.GOOD
    os.mkfifo(folder / "pipe.h5")
    (folder / "link.h5").symlink_to(outside)
    (folder / "elsewhere").symlink_to(tmp_path)
    (folder / "notes.txt").symlink_to(outside)
    run = open_run(folder)
    assert list(run.tensors) == ["x"]
    assert {(p.code, p.where) for p in run.problems} == {
        ("symlink", "elsewhere"),
        ("symlink", "link.h5"),
        ("not-regular-file", "pipe.h5"),
    }


def test_one_broken_file_never_loses_the_rest(tmp_path: Path) -> None:
    for step in (0, 1, 2):
        with h5py.File(tmp_path / f"step{step}.h5", "w") as file:
            file["x"] = hostile.GOOD + step
    (tmp_path / "step1.h5").write_bytes(b"\x89HDF\r\n\x1a\n and then nonsense" * 9)
    (tmp_path / "words.h5").write_text("not HDF5 at all")
    (tmp_path / "nothing.hdf5").touch()
    (tmp_path / "notes.txt").write_text("ignored, but counted")
    (tmp_path / "w.npy").write_bytes(b"\x93NUMPY")
    run = open_run(tmp_path)
    assert list(run.tensors) == ["step0/x", "step2/x"]
    assert run.read("step2/x")[0, 0] == 2
    assert {(p.code, p.where) for p in run.problems} == {
        ("damaged", "step1.h5"),
        ("unknown-format", "words.h5"),
        ("unknown-format", "nothing.hdf5"),
        ("truncated", "w.npy"),
    }
    assert run.provenance["files.ignored"] == "1"


def test_a_folder_without_anything_readable_says_why(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="holds no tensor"):
        open_run(tmp_path)
    (tmp_path / "x.h5").write_text("no")
    with pytest.raises(LoadError, match=r"x\.h5: its content is of no format"):
        open_run(tmp_path)
    with pytest.raises(LoadError, match="There is no dump"):
        open_run(tmp_path / "missing")


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (Limits(tensor=100), "tensor-size"),
        (Limits(depth=1), "depth"),
        (Limits(storage_chunks=1), "storage-chunks"),
        (Limits(problems=1), "more"),
    ],
)
def test_limits_hold(tmp_path: Path, limits: Limits, code: str) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"] = np.zeros(10)
        file["g/h/i/w"] = np.zeros(1000)
        file.create_dataset("c", data=np.zeros(90), chunks=(9,))
        file["s"] = file["t"] = h5py.SoftLink("/nowhere")
    assert code in {problem.code for problem in open_run(tmp_path, limits=limits).problems}


def test_a_file_of_too_many_objects_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name in "abc":
            file[name] = hostile.GOOD
    with pytest.raises(LoadError, match="too many objects"):
        open_run(tmp_path, limits=Limits(objects=2))


CRASHING_WRITER = """
import h5py, os
file = h5py.File("live.h5", "w", libver="latest")
data = file.create_dataset("x", (4,), "f4", maxshape=(None,))
if {swmr}:
    file.swmr_mode = True
data[:] = 1
data.flush()
os._exit(0)
"""


@pytest.mark.parametrize("swmr", [True, False])
def test_a_file_its_writer_left_open_is_read_if_it_can_be(tmp_path: Path, swmr: bool) -> None:
    code = CRASHING_WRITER.format(swmr=swmr)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    if swmr:
        run = open_run(tmp_path)
        assert run.read("x").tolist() == [1, 1, 1, 1]
        assert [problem.code for problem in run.problems] == ["open-for-write"]
    else:
        with pytest.raises(LoadError, match="h5clear"):
            open_run(tmp_path)
