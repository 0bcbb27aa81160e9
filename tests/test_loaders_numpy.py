"""`.npy` and `.npz`: the contract, names, and files that lie."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from loader_contract import SAMPLES, Array, OwnLayout, Put, probed

from core.errors import LoadError
from loaders import open_run

KNOWN = {key: array for key, array in SAMPLES.items() if array.dtype.isbuiltin == 1}
ONES = np.ones((2, 3), np.float32)


class _Numpy(OwnLayout):
    samples = KNOWN

    def in_order(self, _: list[str]) -> None:
        return None

    def name(self, key: str) -> str:
        return f"step3/{key}"


class TestNpy(_Numpy):
    def write(self, folder: Path, arrays: Mapping[str, Array], _: Put) -> None:
        (folder / "step3").mkdir()
        for key, array in arrays.items():
            np.save(folder / "step3" / f"{key}.npy", array)

    def file(self, folder: Path, key: str) -> Path:
        return folder / "step3" / f"{key}.npy"


class TestNpyTurned(TestNpy):
    def write(self, folder: Path, arrays: Mapping[str, Array], _: Put) -> None:
        super().write(folder, {k: _turned(array) for k, array in arrays.items()}, _)


class TestNpz(_Numpy):
    def write(self, folder: Path, arrays: Mapping[str, Array], _: Put) -> None:
        np.savez(folder / "step3.npz", **arrays)


class TestNpzCompressed(_Numpy):
    def write(self, folder: Path, arrays: Mapping[str, Array], _: Put) -> None:
        np.savez_compressed(folder / "step3.npz", **arrays)


class TestNpzCompressedTurned(_Numpy):
    def write(self, folder: Path, arrays: Mapping[str, Array], _: Put) -> None:
        turned = {k: _turned(array) for k, array in arrays.items()}
        np.savez_compressed(folder / "step3.npz", **turned)


def _turned(array: Array) -> Array:
    """The same values, big-endian and with the first axis fastest."""
    return np.array(array.astype(array.dtype.newbyteorder(">")), order="F")


def test_the_path_is_the_name(tmp_path: Path) -> None:
    folder = tmp_path / "step1" / "rank2" / "layers.0"
    folder.mkdir(parents=True)
    np.save(folder / "softmax.npy", ONES)
    np.savez(tmp_path / "step1" / "rest.npz", **{"layers.1/mlp/out": ONES})
    run = open_run(tmp_path)
    assert {(t.id, t.module, t.op, t.step, t.rank) for t in run.tensors.values()} == {
        ("step1/rank2/layers.0/softmax", "layers.0", "softmax", 1, 2),
        ("step1/layers.1/mlp/out", "layers.1.mlp", "out", 1, None),
    }
    assert run.problems == ()


def test_bf16_is_inferred_from_two_opaque_bytes_and_fp8_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", ONES.astype(ml_dtypes.bfloat16))
    np.save(tmp_path / "b.npy", ONES.astype(ml_dtypes.float8_e4m3fn))
    run = open_run(tmp_path)
    assert [(t.name, t.dtype, t.dtype_inferred) for t in run.tensors.values()] == [
        ("a", "bfloat16", True)
    ]
    assert run.read("a").dtype == ml_dtypes.bfloat16
    assert [(p.code, p.where) for p in run.problems] == [("dtype", "b.npy")]


def _npy(shape: tuple[int, ...], data: bytes, descr: Any = "<f4") -> bytes:
    stream = io.BytesIO()
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + data


class _Evil:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        import os

        return os.system, (f"touch '{self.marker}'",)


def _lies(folder: Path) -> dict[str, tuple[bytes, str]]:
    objects = pickle.dumps(_Evil(folder / "executed"))
    deep = b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000
    return {
        "objects": (_npy((1,), objects, "|O"), "dtype"),
        "records": (_npy((1,), bytes(8), [("a", "<f4"), ("b", "<i4")]), "dtype"),
        "texts": (_npy((1,), bytes(8), "<U2"), "dtype"),
        "huge": (_npy((1 << 40,), bytes(8)), "tensor-size"),
        "large": (_npy((1 << 30,), bytes(8)), "ratio"),
        "short": (_npy((3,), bytes(8)), "truncated"),
        "negative": (_npy((-3,), bytes(8)), "damaged"),
        "nested": (deep, "damaged"),
        "version": (b"\x93NUMPY\x09\x00" + bytes(200), "damaged"),
    }


def test_headers_that_lie_are_named_and_nothing_is_executed(tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    dump.mkdir()
    lies = _lies(tmp_path)
    for name, (content, _) in lies.items():
        (dump / f"{name}.npy").write_bytes(content)
    np.save(dump / "good.npy", ONES)
    with zipfile.ZipFile(dump / "all.npz", "w") as archive:
        for name, (content, _) in lies.items():
            archive.writestr(f"z/{name}.npy", content)
        archive.writestr("z/good.npy", _npy((2,), bytes(8)))
    [found] = probed([dump])
    assert found["tensors"] == {"good": 6, "z/good": 2}
    expected = {(code, f"{name}.npy") for name, (_, code) in lies.items()}
    inside = {(code, f"all.npz: z/{name}.npy") for name, (_, code) in lies.items()}
    assert {(code, where) for code, where, _ in found["problems"]} == expected | inside
    assert not (tmp_path / "executed").exists()


def _deflated(path: Path, name: str, content: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("good.npy", _npy((2,), bytes(8)))
        archive.writestr(name, content)


def _patched(path: Path, *, size: int | None = None, crc: int | None = None) -> None:
    """Make the directory claim something else of the last member."""
    content = bytearray(path.read_bytes())
    at = content.rfind(b"PK\x01\x02")
    if size is not None:
        content[at + 24 : at + 28] = struct.pack("<I", size)
    if crc is not None:
        content[at + 16 : at + 20] = struct.pack("<I", crc)
    path.write_bytes(content)


def test_archives_that_lie_are_named_and_memory_is_bounded(tmp_path: Path) -> None:
    for name in ("bomb", "declared", "checksum", "large"):
        (tmp_path / name).mkdir()
    _deflated(tmp_path / "bomb" / "x.npz", "x.npy", _npy((1 << 26,), bytes(1 << 28)))
    _deflated(tmp_path / "declared" / "x.npz", "x.npy", _npy((1000,), bytes(1 << 24)))
    _patched(tmp_path / "declared" / "x.npz", size=len(_npy((1000,), bytes(4000))))
    _deflated(tmp_path / "checksum" / "x.npz", "x.npy", _npy((1 << 19,), bytes(1 << 21)))
    _patched(tmp_path / "checksum" / "x.npz", crc=7)
    _deflated(tmp_path / "large" / "x.npz", "x.npy", _npy((1 << 28,), bytes(8)))
    _patched(tmp_path / "large" / "x.npz", size=(1 << 30) + 128)
    found = dict(
        zip(
            ("bomb", "declared", "checksum", "large"), probed(sorted_folders(tmp_path)), strict=True
        )
    )
    assert all(each["tensors"]["good"] == 2 for each in found.values())
    assert found["bomb"]["tensors"]["x"] == 1 << 26  # honest: within what deflate can do
    assert found["checksum"]["failed"] == {"x": "checksum"}
    assert [code for code, *_ in found["declared"]["problems"]] == ["inflate"]
    assert [code for code, *_ in found["large"]["problems"]] == ["ratio"]


def sorted_folders(root: Path) -> list[Path]:
    return [root / name for name in ("bomb", "declared", "checksum", "large")]


def test_names_in_an_archive_are_shown_escaped_and_open_nothing(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("../../etc/\x1b.npy", _npy((2,), bytes(8)))
        archive.writestr("notes.txt", "no array")
    run = open_run(tmp_path)
    assert list(run.tensors) == [r"\x2e\x2e/\x2e\x2e/etc/\x1b"]
    assert [p.code for p in run.problems] == ["unknown-format"]


def test_an_archive_cut_short_says_so(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=ONES)
    whole = (tmp_path / "x.npz").read_bytes()
    (tmp_path / "x.npz").write_bytes(whole[:200])
    with pytest.raises(LoadError, match="without its directory"):
        open_run(tmp_path)
