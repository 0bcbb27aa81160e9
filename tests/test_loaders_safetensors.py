"""safetensors: the contract, names, and headers that lie."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loader_contract import Array, OwnLayout, Put

from core.errors import LoadError
from loaders import open_run

FORMATS = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "complex64": "C64",
    "int64": "I64",
    "uint8": "U8",
    "bool": "BOOL",
}
ONES = np.ones((2, 3), np.float32)


def header_of(arrays: Mapping[str, Array]) -> tuple[dict[str, Any], bytes]:
    """The header and the values of a file as the format's own library lays it out."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for key, array in sorted(arrays.items()):
        said = {"dtype": FORMATS[array.dtype.name], "shape": list(array.shape)}
        header[key] = {**said, "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    return header, data


def write(path: Path, header: Mapping[str, Any] | str, data: bytes) -> None:
    text = header if isinstance(header, str) else json.dumps(header)
    content = text.encode()
    path.write_bytes(len(content).to_bytes(8, "little") + content + data)


class TestSafetensors(OwnLayout):
    def write(self, folder: Path, arrays: Mapping[str, Array], _: Put) -> None:
        write(folder / "model.safetensors", *header_of(arrays))

    def in_order(self, _: list[str]) -> None:
        return None

    def name(self, key: str) -> str:
        return key


def test_a_state_is_parameters_of_modules(tmp_path: Path) -> None:
    arrays = {f"layers.{n}.mlp.weight": ONES * n for n in (0, 2, 10)} | {"scale": ONES}
    folder = tmp_path / "step4" / "rank1"
    folder.mkdir(parents=True)
    write(folder / "model-00001-of-00002.safetensors", *header_of(arrays))
    run = open_run(tmp_path)
    assert run.provenance["safetensors.format"] == "pt"
    assert [(t.module, t.slot_label, t.step, t.rank) for t in run.tensors.values()] == [
        ("layers.0.mlp", "forward_params.weight", 4, 1),
        ("layers.2.mlp", "forward_params.weight", 4, 1),
        ("layers.10.mlp", "forward_params.weight", 4, 1),
        ("", "forward_params.scale", 4, 1),
    ]
    assert run.read("step4/rank1/layers.10.mlp.weight")[0, 0] == 10


LIES: dict[str, tuple[dict[str, Any], str]] = {
    "beyond the end": ({"data_offsets": [48, 1072], "shape": [256]}, "truncated"),
    "on top of another": ({"data_offsets": [0, 24]}, "overlap"),
    "shape larger than its bytes": ({"shape": [1 << 40]}, "damaged"),
    "backwards": ({"data_offsets": [72, 48]}, "damaged"),
    "negative shape": ({"shape": [-2, -3]}, "damaged"),
    "boolean shape": ({"shape": [True, 6]}, "damaged"),
    "no offsets": ({"data_offsets": None}, "damaged"),
    "unknown dtype": ({"dtype": "F4"}, "dtype"),
    "dtype of another kind": ({"dtype": ["F32"]}, "dtype"),
}


@pytest.mark.parametrize("lie", LIES)
def test_an_entry_that_lies_is_named_and_the_rest_loads(tmp_path: Path, lie: str) -> None:
    header, data = header_of({"a": ONES, "b": ONES, "x": ONES})
    changed, code = LIES[lie]
    header["x"] = {**header["x"], **changed}
    write(tmp_path / "m.safetensors", header, data)
    run = open_run(tmp_path)
    assert code in [problem.code for problem in run.problems]
    assert "b" in run.tensors
    assert run.read("b").tolist() == ONES.tolist()
    if code != "overlap":
        assert list(run.tensors) == ["a", "b"]
    else:
        assert len(run.tensors) == 2


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ('{"a": 1, "a": 2}', "twice"),
        ('{"a": ' + "[" * 100_000, "too deep"),
        ('{"a": }', "its header"),
        ('{"a": {"dtype": "F32", "shape": [1]}}', "where its values lie"),
    ],
)
def test_a_header_that_cannot_be_read_is_named(tmp_path: Path, header: str, reason: str) -> None:
    write(tmp_path / "m.safetensors", header, b"")
    with pytest.raises(LoadError, match=reason):
        open_run(tmp_path)


def test_a_header_longer_than_the_file_is_not_allocated(tmp_path: Path) -> None:
    (tmp_path / "m.safetensors").write_bytes((1 << 46).to_bytes(8, "little") + b'{"a"')
    with pytest.raises(LoadError, match="ends within its header"):
        open_run(tmp_path)


def test_bytes_of_no_tensor_are_named(tmp_path: Path) -> None:
    header, data = header_of({"a": ONES})
    write(tmp_path / "m.safetensors", header, data + b"hidden")
    assert [p.message for p in open_run(tmp_path).problems] == ["6 bytes belong to no tensor."]


def test_names_are_shown_escaped(tmp_path: Path) -> None:
    write(tmp_path / "m.safetensors", *header_of({"../../etc/x\x1b\0": ONES}))
    assert list(open_run(tmp_path).tensors) == [r"\x2e\x2e/\x2e\x2e/etc/x\x1b\x00"]
