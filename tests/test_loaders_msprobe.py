"""msprobe: the contract, its naming, hostile dumps, and real dumps against its own tables."""

from __future__ import annotations

import csv
import io
import pickle
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import h5py
import ml_dtypes
import msprobe_dumps
import numpy as np
import pytest
import torch
from loader_contract import Array, OwnLayout, Put, probed
from msprobe_dumps import Dump

from analysis.compare import compare
from analysis.matching import match
from analysis.verdict import judge
from core.comparison import Comparison
from core.errors import LoadError
from core.runs import Run
from core.tensors import TensorInfo
from loaders import open_run
from metrics import METRICS

ONES = np.ones((2, 3), np.float32)
REAL = Path(__file__).parents[2] / "shared" / "foreign_dumps" / "msprobe"


class TestMsprobePt(OwnLayout):
    def write(self, folder: Path, arrays: Mapping[str, Array], _: Put) -> None:
        msprobe_dumps.write(folder, arrays)

    def file(self, folder: Path, key: str) -> Path:
        return next(folder.rglob(f"Module.{key}.*"))

    def name(self, key: str) -> str:
        return f"step3/rank1/Module.{key}.Linear.forward.0.output.0"


class TestMsprobeNpy(OwnLayout):
    def write(self, folder: Path, arrays: Mapping[str, Array], _: Put) -> None:
        kept = {k: a.view("V2") if a.dtype == ml_dtypes.bfloat16 else a for k, a in arrays.items()}
        dump = Dump(folder / "step3" / "rank1", suffix=".npy")
        for key, array in kept.items():
            raw = array.view("V1") if array.dtype.name.startswith("float8") else array
            dump.add(f"Module.{key}.Linear.forward.0", "output", raw)
            entry = dump.data[f"Module.{key}.Linear.forward.0"]
            entry["output"][0]["dtype"] = arrays[key].dtype.name
        dump.close()

    def file(self, folder: Path, key: str) -> Path:
        return next(folder.rglob(f"Module.{key}.*"))

    def name(self, key: str) -> str:
        return f"step3/rank1/Module.{key}.Linear.forward.0.output.0"


def _model(folder: Path, *, extra: bool = False) -> Run:
    """Two blocks that multiply; with one more multiplication in the first if asked."""
    dump, n = Dump(folder / "step0" / "proc7"), 0
    for block in range(2):
        module = f"Module.layers.{block}.Block.forward.0"
        for _ in range(2 + (extra and block == 0)):
            call = f"Tensor.__mul__.{n}"
            dump.add(f"{call}.forward", "input_args", ONES * n, parent=module)
            dump.add(f"{call}.forward", "output", ONES * block, parent=module)
            dump.add(f"{call}.backward", "input", ONES, parent="Module.layers.1.Block.backward.0")
            n += 1
        dump.add(module, "output", ONES)
    dump.close()
    return open_run(folder)


def test_an_extra_call_does_not_shift_the_pairs_of_later_modules(tmp_path: Path) -> None:
    matching = match(_model(tmp_path / "a"), _model(tmp_path / "b", extra=True))
    assert len(matching.pairs) == 14
    assert matching.unmatched_reference == ()
    assert [t.operator for t in matching.unmatched_candidate] == ["layers.0.mul_2"] * 3
    assert all(a.operator == b.operator for a, b, _ in matching.pairs)
    told = {(a.attrs.get("dump_name"), b.attrs.get("dump_name")) for a, b, _ in matching.pairs}
    assert ("Tensor.__mul__.2.forward.input.0", "Tensor.__mul__.3.forward.input.0") in told


def test_a_backward_call_belongs_where_its_forward_call_was_made(tmp_path: Path) -> None:
    backward = [t for t in _model(tmp_path).tensors.values() if t.pass_ == "backward"]
    operators = [t.operator for t in backward]
    assert operators == ["layers.0.mul", "layers.0.mul_1", "layers.1.mul", "layers.1.mul_1"]
    assert {t.slot_label for t in backward} == {"backward_input.0"}


def test_every_kind_of_leaf_finds_its_slot(tmp_path: Path) -> None:
    dump = Dump(tmp_path / "step2" / "rank5")
    name = "Module.a.b.Linear.forward.1"
    dump.data[name] = {
        "input_args": [None, {"type": "int", "value": 3}, [dump.leaf(ONES, "i")]],
        "input_kwargs": {"mask": dump.leaf(ONES, "k"), "pair": [None, dump.leaf(ONES, "p")]},
        "output": [{"hidden": dump.leaf(ONES, "o"), "cache": None}],
        "parameters": {"weight": dump.leaf(ONES, "w")},
    }
    dump.data["Module.a.b.Linear.parameters_grad.0"] = {"weight": [dump.leaf(ONES, "g")]}
    dump.data["mine.0.debug"] = dump.leaf(ONES, "d")
    dump.close()
    run = open_run(tmp_path)
    assert [(t.module, t.slot_label, t.call, t.step, t.rank) for t in run.tensors.values()] == [
        ("a.b", "forward_input.2.0", 1, 2, 5),
        ("a.b", "forward_input.mask", 1, 2, 5),
        ("a.b", "forward_input.pair.1", 1, 2, 5),
        ("a.b", "forward_params.weight", 1, 2, 5),
        ("a.b", "forward_output.0.hidden", 1, 2, 5),
        ("a.b", "backward_params.weight", 0, 2, 5),
        ("", "value", 0, 2, 5),
    ]
    assert next(iter(run.tensors.values())).module_class == "Linear"
    assert all(run.read(name).tolist() == ONES.tolist() for name in run.tensors)


def test_permuted_and_expanded_tensors_read_as_they_are(tmp_path: Path) -> None:
    dump = Dump(tmp_path)
    base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    views = {"turned": base.permute(2, 0, 1), "wide": base[:1].expand(5, 3, 4), "cut": base[:, 1:]}
    for name, view in views.items():
        path = dump.add(f"Module.{name}.Op.forward.0", "output", view.numpy())
        torch.save(view, path)
    dump.close()
    run = open_run(tmp_path)
    assert run.problems == ()
    for name, view in views.items():
        tensor = f"Module.{name}.Op.forward.0.output.0"
        assert np.array_equal(run.read(tensor), view.numpy())
        assert np.array_equal(run.read(tensor, (slice(None, None, -1), 1)), view.numpy()[::-1, 1])
        assert np.array_equal(np.concatenate(list(run.chunks(tensor, 5))), view.numpy().ravel())


def test_other_files_of_the_folder_still_load(tmp_path: Path) -> None:
    dump = Dump(tmp_path / "step0" / "proc1")
    dump.add("Module.a.Op.forward.0", "output", ONES)
    dump.close()
    with h5py.File(tmp_path / "step0" / "proc1" / "more.h5", "w") as file:
        file["x"] = ONES
    other = tmp_path / "b"
    other.mkdir()
    (other / "dump.json").write_text('{"somebody": "else"}')
    run = open_run(tmp_path)
    assert set(run.tensors) == {"step0/Module.a.Op.forward.0.output.0", "step0/x"}
    assert run.problems == ()
    assert run.provenance["files.ignored"] == "1"


def _process(folder: Path, value: float) -> None:
    dump = Dump(folder)
    dump.add("Module.a.Op.forward.0", "output", ONES * value)
    dump.close()


def test_processes_of_one_step_are_ranks_whatever_their_numbers(tmp_path: Path) -> None:
    for name, pids in (("a", (1000, 999)), ("b", (7, 23))):
        for step in (0, 1):
            for n, pid in enumerate(sorted(pids)):
                _process(tmp_path / name / f"step{step}" / f"proc{pid}", 10 * step + n)
    ours, theirs = (open_run(tmp_path / name) for name in "ab")
    ids = [f"step{s}/rank{r}/Module.a.Op.forward.0.output.0" for s in (0, 1) for r in (0, 1)]
    assert list(ours.tensors) == list(theirs.tensors) == ids
    assert [ours.read(name)[0, 0] for name in ids] == [0, 1, 10, 11]
    assert "processes" in ours.provenance["ranks"]


def test_ranks_of_every_step_are_kept_apart(tmp_path: Path) -> None:
    for step in (0, 10, 2):
        for rank in (0, 1):
            _process(tmp_path / f"step{step}" / f"rank{rank}", step + rank / 10)
    run = open_run(tmp_path)
    assert [(t.step, t.rank) for t in run.tensors.values()] == [
        (s, r) for s in (0, 2, 10) for r in (0, 1)
    ]


def test_one_missing_or_foreign_file_never_loses_the_rest(tmp_path: Path) -> None:
    dump = Dump(tmp_path)
    gone, old, other = (
        dump.add(f"Module.{name}.Op.forward.0", "output", ONES) for name in ("gone", "old", "other")
    )
    dump.add("Module.good.Op.forward.0", "output", ONES)
    dump.add("Module.cut.Op.forward.0", "output", ONES)
    dump.data["Module.cut.Op.forward.0"]["output"][0]["shape"] = [20, 3]
    gone.unlink()
    torch.save(torch.ones(3), old, _use_new_zipfile_serialization=False)
    torch.save(torch.ones(2, 3, dtype=torch.int64), other)
    dump.close()
    run = open_run(tmp_path)
    assert [t.module for t in run.tensors.values()] == ["good", "cut"]
    assert [p.code for p in run.problems] == ["gone", "unknown-format", "dtype", "shape"]


# --- hostile dumps: one good tensor, one spoilt

Spoil = Callable[[Dump, Path], None]


def _archive(path: Path, program: bytes, data: bytes = bytes(24), method: int = 0) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", program)
        archive.writestr("x/data/0", data, compress_type=method)


def _program(path: Path, old: bytes = b"", new: bytes = b"") -> bytes:
    with zipfile.ZipFile(path) as archive:
        name = next(each for each in archive.namelist() if each.endswith("data.pkl"))
        program = archive.read(name)
    assert old in program
    return program.replace(old, new)


class _Evil:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        import os

        return os.system, (f"touch '{self.marker}'",)


def _runs_a_command(dump: Dump, path: Path) -> None:
    _archive(path, pickle.dumps(_Evil(dump.folder.parent / "executed"), protocol=2))


def _runs_a_command_in_new_words(dump: Dump, path: Path) -> None:
    _archive(path, pickle.dumps({"x": _Evil(dump.folder.parent / "executed")}, protocol=4))


def _builds_an_object(_: Dump, path: Path) -> None:
    _archive(path, _program(path)[:-1] + b"}b.")


def _declares_a_terabyte(_: Dump, path: Path) -> None:
    torch.save(torch.ones(1).expand(1 << 20, 1 << 20), path)


def _declares_more_than_is_there(_: Dump, path: Path) -> None:
    _archive(path, _program(path), bytes(8))


def _shape_beyond_the_storage(_: Dump, path: Path) -> None:
    _archive(path, _program(path, b"K\x02K\x03\x86", b"K\x7fK\x7f\x86"))


def _is_compressed(_: Dump, path: Path) -> None:
    _archive(path, _program(path), bytes(24), zipfile.ZIP_DEFLATED)


def _is_a_bomb(_: Dump, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", b"\x80\x02" + bytes(1 << 26))


def _lies_on_itself(_: Dump, path: Path) -> None:
    _archive(path, _program(path))
    content = bytearray(path.read_bytes())
    entries = [i for i in range(len(content)) if content.startswith(b"PK\x01\x02", i)]
    content[entries[1] + 42 : entries[1] + 46] = content[entries[0] + 42 : entries[0] + 46]
    path.write_bytes(content)


def _nests_without_end(_: Dump, path: Path) -> None:
    _archive(path, b"\x80\x02}(" + b"X\1\0\0\0aq\0" + b"h\0h\0\x86q\0" * 200 + b"K\1u.")


def _escapes(dump: Dump, path: Path) -> None:
    secret = dump.folder.parent / "secret.pt"
    path.rename(secret)
    said = dump.data["Module.x.Op.forward.0"]["output"]
    said[0]["data_name"] = "../../secret.pt"
    said.append({**said[0], "data_name": str(secret)})


def _links_out(dump: Dump, path: Path) -> None:
    secret = dump.folder.parent / "secret.pt"
    path.rename(secret)
    path.symlink_to(secret)


SPOILT: dict[Spoil, str] = {
    _runs_a_command: "pickle",
    _runs_a_command_in_new_words: "pickle",
    _builds_an_object: "pickle",
    _declares_a_terabyte: "tensor-size",
    _declares_more_than_is_there: "truncated",
    _shape_beyond_the_storage: "truncated",
    _is_compressed: "layout",
    _is_a_bomb: "ratio",
    _lies_on_itself: "overlap",
    _nests_without_end: "damaged",
    _escapes: "gone",
    _links_out: "gone",
}


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Every spoilt dump, opened and read whole in another process under a bound on memory."""
    paths = []
    for spoil in SPOILT:
        folder = tmp_path_factory.mktemp("x") / "dump"
        dump = Dump(folder)
        dump.add("Module.a.Op.forward.0", "output", ONES)
        spoil(dump, dump.add("Module.x.Op.forward.0", "output", ONES))
        dump.add("Module.z.Op.forward.0", "output", ONES)
        dump.close()
        paths.append(folder)
    return dict(zip((s.__name__ for s in SPOILT), probed(paths), strict=True))


@pytest.mark.parametrize("spoil", SPOILT, ids=lambda spoil: spoil.__name__)
def test_a_spoilt_tensor_is_named_and_the_rest_loads(
    spoil: Spoil, spoilt: dict[str, dict[str, Any]]
) -> None:
    found = spoilt[spoil.__name__]
    assert found["error"] is None
    assert list(found["tensors"]) == [f"Module.{m}.Op.forward.0.output.0" for m in "az"]
    assert SPOILT[spoil] in [code for code, *_ in found["problems"]]
    assert not (Path(found["file"]).parent / "executed").exists()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ('{"task": ' + "[" * 100_000, "too deep"),
        ('{"task": "tensor", "data": [1]}', "no entries"),
        ('{"task": "tensor", "data": {}', "ends too early|delimiter"),
        ('{"task": "tensor", "data": {"a.0.debug": {"type": 3, "shape": ["x"]}}}', "no tensor"),
    ],
)
def test_a_broken_dump_json_is_named(tmp_path: Path, content: str, code: str) -> None:
    (tmp_path / "dump.json").write_text(content)
    with pytest.raises(LoadError, match=code):
        open_run(tmp_path)


def test_a_construct_that_runs_in_circles_ends(tmp_path: Path) -> None:
    dump = Dump(tmp_path)
    dump.add("Torch.a.0.forward", "output", ONES, parent="Torch.b.0.forward")
    dump.add("Torch.b.0.forward", "output", ONES, parent="Torch.a.0.forward")
    dump.close()
    assert [t.operator for t in open_run(tmp_path).tensors.values()] == ["a", "b"]


# --- real dumps

needs_real = pytest.mark.skipif(not REAL.is_dir(), reason="real dumps are not beside this checkout")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("msprobe")
    for name in ("fp32", "bf16", "bf16_fault"):
        with tarfile.open(REAL / f"{name}.tar.xz") as archive:
            archive.extractall(folder, filter="data")
    return {name: open_run(folder / name) for name in ("fp32", "bf16", "bf16_fault")}


def _told(tensor: TensorInfo) -> str:
    return str(tensor.attrs.get("dump_name", tensor.name))


def _table(name: str) -> dict[str, dict[str, str]]:
    text = (REAL / f"msprobe_{name}_vs_fp32.csv").read_text()
    return {row["NPU Name"]: row for row in csv.DictReader(io.StringIO(text))}


def _agrees(comparison: Comparison, table: Mapping[str, Mapping[str, str]]) -> tuple[int, int]:
    """How many cosines and largest errors of their table are ours too, to its digits."""
    cosines = errors = 0
    for pair in comparison.pairs:
        row = table[_told(pair.reference)]
        assert _told(pair.candidate) == _told(pair.reference)
        assert pair.stats is not None
        if row["Cosine"] != "unsupported":
            ours = 1 - METRICS["cosine_distance"](pair.stats)
            assert ours == pytest.approx(float(row["Cosine"]), rel=0, abs=6e-7)
            cosines += 1
        assert pair.stats.max_abs_error.value == pytest.approx(
            float(row["MaxAbsErr"]), rel=0, abs=6e-13
        )
        errors += 1
    return cosines, errors


@needs_real
@pytest.mark.parametrize("name", ["bf16", "bf16_fault"])
def test_all_that_msprobe_pairs_is_paired_and_measured_alike(
    real: dict[str, Run], name: str
) -> None:
    table = _table(name)
    comparison = compare(real["fp32"], real[name])
    assert real["fp32"].problems == real[name].problems == ()
    assert comparison.unmatched_reference == comparison.unmatched_candidate == ()
    tensors = {key for key, row in table.items() if row["NPU Dtype"].startswith("torch")}
    assert len(table) == 702
    assert {_told(pair.reference) for pair in comparison.pairs} == tensors  # the rest: scalars
    assert _agrees(comparison, table) == (591, 601)


@needs_real
def test_fp32_against_bf16_is_rounding(real: dict[str, Run]) -> None:
    judgement = judge(compare(real["fp32"], real["bf16"]))
    assert judgement.verdict == "rounding"
    assert judgement.first_divergence is None


@needs_real
def test_the_planted_fault_is_where_most_error_is_first_added(real: dict[str, Run]) -> None:
    for reference in ("bf16", "fp32"):
        comparison = compare(real[reference], real["bf16_fault"])
        added = np.nan_to_num(judge(comparison).added, nan=0.0)
        first = int(np.argmax(added > added.max() / 2))  # modules around it add as much
        tensor = comparison.pairs[first].reference
        assert tensor.operator == "model.layers.1.mlp.gate_proj"
        assert tensor.slot_label == "forward_output.0"


@needs_real
@pytest.mark.parametrize("reference", ["bf16", "fp32"])
def test_the_planted_fault_is_the_first_divergence(real: dict[str, Run], reference: str) -> None:
    comparison = compare(real[reference], real["bf16_fault"])
    first = judge(comparison).first_divergence
    assert first is not None
    assert comparison.pairs[first].reference.operator == "model.layers.1.mlp.gate_proj"
