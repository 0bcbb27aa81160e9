"""Archives: a dump in one loads as the dump, and nothing in one does anything else."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from core.errors import LoadError
from loaders import Limits, open_run
from loaders.archives import unpack

ONES = np.ones((2, 3), np.float32)


def _dump(folder: Path) -> Path:
    place = folder / "a dump" / "step3"
    place.mkdir(parents=True)
    np.save(place / "fc.npy", ONES * 3)
    with h5py.File(place / "x.h5", "w") as file:
        file["w"] = ONES
    torch.save(torch.ones(2), place / "t.pt")
    return place.parent


def _zip(dump: Path, path: Path, method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for file in sorted(dump.rglob("*")):
            archive.write(file, file.relative_to(dump.parent))
    return path


def _tar(dump: Path, path: Path, mode: str) -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        archive.add(dump, dump.name)
    return path


PACKED: dict[str, Callable[[Path, Path], Path]] = {
    "x.zip": lambda dump, path: _zip(dump, path),
    "deflated.zip": lambda dump, path: _zip(dump, path, zipfile.ZIP_DEFLATED),
    "x.tar": lambda dump, path: _tar(dump, path, "w"),
    "x.tar.gz": lambda dump, path: _tar(dump, path, "w:gz"),
    "x.tar.bz2": lambda dump, path: _tar(dump, path, "w:bz2"),
    "x.tar.xz": lambda dump, path: _tar(dump, path, "w:xz"),
    "no suffix": lambda dump, path: _tar(dump, path, "w:xz"),
}


@pytest.mark.parametrize("name", PACKED)
def test_a_dump_in_an_archive_is_the_dump(tmp_path: Path, name: str) -> None:
    dump = _dump(tmp_path)
    path = PACKED[name](dump, tmp_path / name)
    run, plain = open_run(path), open_run(dump)
    assert run.problems == ()
    assert list(run.tensors) == list(plain.tensors) == ["step3/fc", "step3/t", "step3/w"]
    assert run.read("step3/fc").tolist() == (ONES * 3).tolist()
    assert run.label == name.partition(".")[0]


def test_a_folder_with_nothing_but_an_archive_is_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "upload").mkdir()
    _zip(_dump(tmp_path), tmp_path / "upload" / "x.zip")
    assert list(open_run(tmp_path / "upload").tensors) == ["step3/fc", "step3/t", "step3/w"]


def test_archives_among_files_are_folders_of_their_own(tmp_path: Path) -> None:
    dump = _dump(tmp_path / "made")
    (tmp_path / "all").mkdir()
    _zip(dump, tmp_path / "all" / "left.zip")
    _tar(dump, tmp_path / "all" / "right.tar.xz", "w:xz")
    run = open_run(tmp_path / "all")
    assert {name for name in run.tensors if name.endswith("fc")} == {
        "step3/left/fc",
        "step3/right/fc",
    }


def test_an_archive_is_unpacked_once_and_again_when_it_changed(tmp_path: Path) -> None:
    path, scratch = _zip(_dump(tmp_path), tmp_path / "x.zip"), tmp_path / "scratch"
    first = open_run(path, scratch=scratch)
    second = open_run(path, scratch=scratch)
    assert first.fingerprint == second.fingerprint
    assert len([place for place in scratch.iterdir() if place.is_dir()]) == 1
    elsewhere = open_run(path, scratch=tmp_path / "other")
    assert elsewhere.fingerprint == first.fingerprint
    os.utime(path, ns=(1, 1))
    assert open_run(path, scratch=scratch).fingerprint != first.fingerprint


# --- what must not be

GOOD = io.BytesIO()
np.save(GOOD, ONES)


def _member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    info.size = len(GOOD.getvalue()) if kind == tarfile.REGTYPE else 0
    return info


BAD_NAMES = [
    "../out.npy",
    "a/../../out.npy",
    "/out.npy",
    "..",
    "a\\..\\out.npy",
    "C:/out.npy",
    "a\nb.npy",
    "\x1b[31m.npy",
    "‮evil.npy",
    "x" * 256 + ".npy",
    "/".join("d" * 40) + ".npy",
]


@pytest.mark.parametrize("suffix", ["zip", "tar"])
@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_member_with_a_bad_name_is_named_and_the_rest_loads(
    tmp_path: Path, name: str, suffix: str
) -> None:
    path = tmp_path / f"x.{suffix}"
    if suffix == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, GOOD.getvalue())
            archive.writestr("good.npy", GOOD.getvalue())
    else:
        with tarfile.open(path, "w") as archive:
            for each in (name, "good.npy"):
                archive.addfile(_member(each), io.BytesIO(GOOD.getvalue()))
    before = set(tmp_path.rglob("*"))
    run = open_run(path, scratch=tmp_path / "scratch")
    assert list(run.tensors) == ["good"]
    [problem] = run.problems
    assert problem.code in ("name", "depth")
    assert problem.where.startswith(f"x.{suffix}: ")
    assert problem.where.isprintable()
    outside = [p for p in set(tmp_path.rglob("*")) - before if "scratch" not in p.parts]
    assert outside == []


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (tarfile.SYMTYPE, "symlink"),
        (tarfile.LNKTYPE, "symlink"),
        (tarfile.FIFOTYPE, "not-regular-file"),
        (tarfile.CHRTYPE, "not-regular-file"),
    ],
)
def test_links_and_devices_are_named_not_made(tmp_path: Path, kind: bytes, code: str) -> None:
    (tmp_path / "secret.npy").write_bytes(GOOD.getvalue())
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as archive:
        archive.addfile(_member("link.npy", kind, "../../secret.npy"))
        archive.addfile(_member("good.npy"), io.BytesIO(GOOD.getvalue()))
        archive.addfile(_member("link.npy"), io.BytesIO(GOOD.getvalue()))  # through the link
    run = open_run(path, scratch=tmp_path / "scratch")
    assert set(run.tensors) == {"good", "link"}
    assert [problem.code for problem in run.problems] == [code]
    for file in (tmp_path / "scratch").rglob("*"):
        assert not file.is_symlink()
        assert file.is_dir() or stat.S_ISREG(file.lstat().st_mode)


def test_a_link_in_a_zip_is_named_not_made(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        info = zipfile.ZipInfo("link.npy")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
        archive.writestr("good.npy", GOOD.getvalue())
    run = open_run(tmp_path / "x.zip")
    assert list(run.tensors) == ["good"]
    assert [problem.code for problem in run.problems] == ["symlink"]


def test_a_file_that_is_there_twice_is_written_once(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for name in ("a.npy", "a.npy", "./a.npy", "a.npy/b.npy"):
            archive.addfile(_member(name), io.BytesIO(GOOD.getvalue()))
    run = open_run(tmp_path / "x.tar")
    assert list(run.tensors) == ["a"]
    assert [problem.code for problem in run.problems] == ["alias"] * 3


def _refused(path: Path, tmp_path: Path, limits: Limits | None = None) -> str:
    with pytest.raises(LoadError) as raised:
        unpack(path, tmp_path / "into", limits or Limits())
    assert not (tmp_path / "into").exists()
    return str(getattr(raised.value, "code", ""))


@pytest.mark.parametrize("mode", ["w:xz", "w:bz2"])
def test_a_bomb_is_refused_whole(tmp_path: Path, mode: str) -> None:
    info = tarfile.TarInfo("zeros.npy")
    info.size = 200 << 20
    with tarfile.open(tmp_path / "x.tar", mode) as archive:  # type: ignore[call-overload]
        archive.addfile(info, io.BytesIO(bytes(info.size)))
    assert _refused(tmp_path / "x.tar", tmp_path) == "ratio"


def test_a_bomb_in_a_zip_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros.npy", bytes(200 << 20))
        for n in range(3):
            archive.writestr(f"{n}.npy", bytes(30 << 20))
    assert _refused(tmp_path / "x.zip", tmp_path, Limits(ratio=100)) == "ratio"


def test_too_many_members_are_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for n in range(20):
            archive.addfile(_member(f"{n}.npy"), io.BytesIO(GOOD.getvalue()))
    assert _refused(tmp_path / "x.tar", tmp_path, Limits(files=10)) == "objects"
    with tarfile.open(tmp_path / "y.tar", "w") as archive:
        for n in range(50):
            archive.addfile(_member(f"d{n}", tarfile.DIRTYPE))
    assert _refused(tmp_path / "y.tar", tmp_path, Limits(files=10)) == "objects"


def test_a_header_as_large_as_memory_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 100 << 20
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as archive:
        archive.addfile(info, io.BytesIO(bytes(info.size)))
    assert _refused(tmp_path / "x.tar.gz", tmp_path, Limits(document=1 << 20)) == "objects"


@pytest.mark.parametrize("name", PACKED)
def test_a_truncated_archive_is_named(tmp_path: Path, name: str) -> None:
    path = PACKED[name](_dump(tmp_path), tmp_path / name)
    whole = path.read_bytes()
    for share in (10, 30):
        path.write_bytes(whole[: len(whole) * share // 100])
        with pytest.raises(LoadError, match=r"ends|cannot|end of|without its directory|no tensor"):
            open_run(path)


def test_an_archive_inside_an_archive_stays_packed(tmp_path: Path) -> None:
    inner = _zip(_dump(tmp_path), tmp_path / "inner.zip")
    with zipfile.ZipFile(tmp_path / "outer.zip", "w") as archive:
        archive.write(inner, "inner.zip")
        archive.writestr("good.npy", GOOD.getvalue())
    run = open_run(tmp_path / "outer.zip")
    assert list(run.tensors) == ["good"]
    assert run.provenance["files.ignored"] == "1"
