"""The casebook of files that hurt readers: every case LO01 to LO28 has a test."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import zlib
from pathlib import Path

import h5py
import ml_dtypes
import numpy as np
import pytest

from analysis.compare import compare
from analysis.matching import match
from analysis.verdict import judge
from loaders import open_run
from metrics import METRICS

HERE = Path(__file__).parent
CASES = {
    "LO01": ("dialects", "test_opaque_bytes_count_with_a_declared_dtype"),
    "LO02": ("cases", "test_bits_of_bf16_in_integers_need_to_be_declared"),
    "LO03": ("dialects", "test_float_types_numpy_lacks_are_read_bit_for_bit"),
    "LO04": ("numpy", "test_bf16_is_inferred_from_two_opaque_bytes_and_fp8_is_refused"),
    "LO05": ("cases", "test_a_float32_container_of_bf16_is_compared_as_bf16"),
    "LO06": ("cases", "test_complex_and_bool_compare_as_what_they_are"),
    "LO07": ("cases", "test_nothing_at_all_and_scalars_are_told_apart"),
    "LO08": ("hostile", "test_a_crafted_file_has_its_problem_named_and_the_rest_loads"),
    "LO09": ("cases", "test_any_name_is_kept_and_dots_and_slashes_pair"),
    "LO10": ("cases", "test_a_step_loop_that_added_suffixes_pairs_by_occurrence"),
    "LO11": ("hostile", "test_a_crafted_file_has_its_problem_named_and_the_rest_loads"),
    "LO12": ("hostile", "test_nothing_outside_the_dump_is_read"),
    "LO13": ("hostile", "test_nothing_outside_the_dump_is_read"),
    "LO14": ("hostile", "test_one_broken_file_never_loses_the_rest"),
    "LO15": ("cases", "test_a_corrupt_chunk_costs_its_tensor_alone"),
    "LO16": ("cases", "test_a_file_its_writer_holds_open_is_read_without_blocking_it"),
    "LO17": ("hostile", "test_a_file_its_writer_left_open_is_read_if_it_can_be"),
    "LO18": ("dialects", "test_a_missing_filter_is_named"),
    "LO19": ("cases", "test_more_than_2_to_the_31_elements_are_read_where_they_are_asked_for"),
    "LO20": ("cases", "test_every_bit_survives_the_other_byte_order"),
    "LO21": ("cases", "test_tensors_without_a_finite_value_are_judged_by_where_they_agree"),
    "LO22": ("hostile", "test_a_crafted_file_has_its_problem_named_and_the_rest_loads"),
    "LO23": ("hostile", "test_a_crafted_file_has_its_problem_named_and_the_rest_loads"),
    "LO24": ("cases", "test_layer_10_stands_after_layer_2_unless_written_before"),
    "LO25": ("cases", "test_other_shapes_are_named_and_never_reshaped"),
    "LO26": ("cases", "test_a_step_offset_and_a_tensor_on_one_side_alone_are_told"),
    "LO27": ("cases", "test_a_wrong_suffix_or_a_gzip_hides_nothing"),
    "LO28": ("hostile", "test_nothing_outside_the_dump_is_read"),
}


@pytest.mark.parametrize("case", CASES)
def test_every_case_of_the_casebook_has_its_test(case: str) -> None:
    file, name = CASES[case]
    assert f"def {name}(" in (HERE / f"test_loaders_{file}.py").read_text()
    assert len(CASES) == 28


def _file(path: Path, **arrays: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array
    return path


def test_bits_of_bf16_in_integers_need_to_be_declared(tmp_path: Path) -> None:
    bits = np.array([1.1640625, -2, 3]).astype(ml_dtypes.bfloat16).view(np.uint16)
    with h5py.File(_file(tmp_path / "x.h5", plain=bits, told=bits), "a") as file:
        file["told"].attrs["dtype"] = "bfloat16"
    run = open_run(tmp_path)
    assert run["plain"].dtype == "uint16"
    assert run.read("told").astype(float).tolist() == [1.1640625, -2, 3]


def test_a_float32_container_of_bf16_is_compared_as_bf16(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal(1000)
    ours = open_run(_file(tmp_path / "a.h5", x=values.astype(np.float32)))
    narrow = values.astype(ml_dtypes.bfloat16).astype(np.float32)
    comparison = compare(ours, open_run(_file(tmp_path / "b.h5", x=narrow)))
    assert comparison.pairs[0].candidate.dtype == "bfloat16"
    assert judge(comparison).verdict == "rounding"


def test_complex_and_bool_compare_as_what_they_are(tmp_path: Path) -> None:
    flags, numbers = np.array([True, False, True]), np.ones(3, np.complex64)
    ours = open_run(_file(tmp_path / "a.h5", b=flags, c=numbers))
    theirs = open_run(_file(tmp_path / "b.h5", b=~flags, c=numbers + 1j))
    found = {pair.reference.name: pair for pair in compare(ours, theirs).pairs}
    assert found["b"].stats is not None
    assert found["b"].stats.equal == 0
    assert found["c"].stats is not None
    assert found["c"].stats.count == 6  # real and imaginary parts
    assert found["c"].stats.equal == 3


def test_nothing_at_all_and_scalars_are_told_apart(tmp_path: Path) -> None:
    path = _file(tmp_path / "x.h5", zero=np.zeros((0, 4)), scalar=np.float32(3).reshape(()))
    with h5py.File(path, "a") as file:
        file["null"] = h5py.Empty("f4")
    run = open_run(path)
    shapes = {name: tensor.shape for name, tensor in run.tensors.items()}
    assert (shapes["zero"], shapes["scalar"]) == ((0, 4), ())
    comparison = compare(run, run)
    problems = {pair.reference.name: pair.problem for pair in comparison.pairs}
    assert problems["zero"] == "both sides are empty"
    assert problems["scalar"] is None
    assert judge(comparison).times_floor[list(problems).index("scalar")] == 0


def test_any_name_is_kept_and_dots_and_slashes_pair(tmp_path: Path) -> None:
    ours = open_run(_file(tmp_path / "a.h5", **{"层.0 输出/β": np.ones(3)}))
    theirs = open_run(_file(tmp_path / "b.h5", **{"层/0 输出.β": np.ones(3)}))
    assert list(ours.tensors) == ["层.0 输出/β"]
    assert len(match(ours, theirs).pairs) == 1


def test_a_step_loop_that_added_suffixes_pairs_by_occurrence(tmp_path: Path) -> None:
    for side in "ab":
        _file(tmp_path / f"{side}.h5", x=np.ones(2), x_1=np.ones(2), x_2=np.ones(2))
    matching = match(open_run(tmp_path / "a.h5"), open_run(tmp_path / "b.h5"))
    assert [(a.name, b.name) for a, b, _ in matching.pairs] == [
        ("x", "x"),
        ("x_1", "x_1"),
        ("x_2", "x_2"),
    ]


def test_a_corrupt_chunk_costs_its_tensor_alone(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["good"] = np.ones(8)
        bad = file.create_dataset("bad", (8,), "f8", chunks=(8,), compression="gzip")
        bad.id.write_direct_chunk((0,), zlib.compress(bytes(64))[:-5])
    run = open_run(tmp_path)
    comparison = compare(run, run)
    problems = {pair.reference.name: pair.problem for pair in comparison.pairs}
    assert problems["good"] is None
    assert "cannot be read" in str(problems["bad"])


HOLDING = """
import h5py, sys
file = h5py.File("x.h5", "w")
file["x"] = [1.0, 2.0]
file.flush()
print("held", flush=True)
sys.stdin.readline()
file["y"] = [3.0]
file.close()
"""


def test_a_file_its_writer_holds_open_is_read_without_blocking_it(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "HDF5_USE_FILE_LOCKING"}
    command = [sys.executable, "-c", HOLDING]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, **pipes) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "held\n"
        assert open_run(tmp_path).read("x").tolist() == [1, 2]
        writer.communicate("\n", timeout=60)
        assert writer.returncode == 0
    assert set(open_run(tmp_path).tensors) == {"x", "y"}


def test_more_than_2_to_the_31_elements_are_read_where_they_are_asked_for(tmp_path: Path) -> None:
    size = 2**31 + 8
    with (tmp_path / "x.npy").open("wb") as stream:
        header = {"descr": "|u1", "fortran_order": False, "shape": (size,)}
        np.lib.format.write_array_header_1_0(stream, header)
        start = stream.tell()
        stream.truncate(start + size)  # sparse
        stream.seek(start + size - 1)
        stream.write(b"\7")
    run = open_run(tmp_path)
    assert run["x"].size == size
    assert run.read("x", (slice(-3, None),)).tolist() == [0, 0, 7]
    last = next(iter(run.values.chunks(run["x"], 16, size - 4)))
    assert last.tolist() == [0, 0, 0, 7]


def test_every_bit_survives_the_other_byte_order(tmp_path: Path) -> None:
    tiny = np.array([6e-8, 5.96e-8], np.float16)
    signed = np.array([-0.0, np.nan, 1.5])
    run = open_run(_file(tmp_path / "x.h5", be=np.array([1.5, -2], ">f4"), t=tiny, s=signed))
    assert run.read("be").tobytes() == np.array([1.5, -2], "<f4").tobytes()
    assert run.read("t").tobytes() == tiny.tobytes()
    assert run.read("s").tobytes() == signed.tobytes()
    positive = open_run(_file(tmp_path / "y.h5", s=np.array([0.0, np.nan, 1.5])))
    [pair] = [p for p in compare(run, positive).pairs if p.reference.name == "s"]
    assert pair.stats is not None
    assert pair.stats.equal == 3  # -0 equals 0, NaN equals NaN


def test_tensors_without_a_finite_value_are_judged_by_where_they_agree(tmp_path: Path) -> None:
    nan, inf = np.full(4, np.nan), np.full(4, np.inf)
    ours = open_run(_file(tmp_path / "a.h5", same=nan, other=inf))
    theirs = open_run(_file(tmp_path / "b.h5", same=nan, other=-inf))
    comparison = compare(ours, theirs)
    verdicts = dict(
        zip([p.reference.name for p in comparison.pairs], judge(comparison).verdicts, strict=True)
    )
    assert verdicts == {"same": "rounding", "other": "fault"}
    [pair] = [p for p in comparison.pairs if p.reference.name == "same"]
    assert pair.stats is not None
    assert np.isnan(METRICS["relative_l2"](pair.stats)) or METRICS["relative_l2"](pair.stats) == 0


def test_layer_10_stands_after_layer_2_unless_written_before(tmp_path: Path) -> None:
    names = [f"layer.{n}" for n in (0, 10, 2, 1)]
    _file(tmp_path / "a.h5", **{name: np.ones(1) for name in names})
    with h5py.File(tmp_path / "b.h5", "w", track_order=True) as file:
        for name in names:
            file[name] = np.ones(1)
    assert list(open_run(tmp_path / "a.h5").tensors) == [f"layer.{n}" for n in (0, 1, 2, 10)]
    assert list(open_run(tmp_path / "b.h5").tensors) == names


def test_other_shapes_are_named_and_never_reshaped(tmp_path: Path) -> None:
    grid = np.arange(80.0).reshape(2, 5, 8)
    ours = open_run(_file(tmp_path / "a.h5", x=grid))
    theirs = open_run(_file(tmp_path / "b.h5", x=np.sin(grid).reshape(10, 8)))
    comparison = compare(ours, theirs)
    assert comparison.pairs[0].problem == "shapes differ: 2 × 5 × 8 against 10 × 8"
    assert judge(comparison).verdict == "uncompared"


def test_a_step_offset_and_a_tensor_on_one_side_alone_are_told(tmp_path: Path) -> None:
    for step in (0, 1):
        _file(tmp_path / "a" / f"step{step}.h5", x=np.ones(2) * step)
        _file(tmp_path / "b" / f"step{step + 1}.h5", x=np.ones(2) * step, extra=np.ones(1))
    matching = match(open_run(tmp_path / "a"), open_run(tmp_path / "b"))
    assert len(matching.pairs) >= 1
    assert "extra" in {tensor.name for tensor in matching.unmatched_candidate}
    listed = 2 * len(matching.pairs) + len(matching.unmatched_reference)
    assert listed + len(matching.unmatched_candidate) == 2 + 4


def test_a_wrong_suffix_or_a_gzip_hides_nothing(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(3))
    (tmp_path / "x.npy").rename(tmp_path / "x.h5")
    inner = _file(tmp_path / "made" / "y.h5", y=np.ones(2))
    (tmp_path / "y.h5.gz").write_bytes(gzip.compress(inner.read_bytes()))
    inner.unlink()
    run = open_run(tmp_path)
    assert run.problems == ()
    assert {name: run.read(name).size for name in run.tensors} == {"x.h5": 3, "y": 2}
