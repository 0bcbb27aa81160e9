"""The shipped samples are what their README says, read with nothing but h5py and NumPy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from recorder_reading import Read, decoded, read, root

from sample_dumps import make

SAMPLES = Path(make.__file__).parent
INDEX = json.loads((SAMPLES / "index.json").read_text(encoding="utf-8"))
RECORDED = [entry for entry in INDEX if entry["id"] != "xray-renamed"]
BF16_FLOOR = 1.7e-3
FP16_FLOOR = 2.1e-4
TEXTS = {"module", "module_class", "op", "pass", "slot", "argument", "dtype", "attrs_json"}


def by_id(sample_id: str) -> dict:
    return next(entry for entry in INDEX if entry["id"] == sample_id)


def sides(entry: dict) -> tuple[dict[str, Read], dict[str, Read]]:
    reference, candidate = (
        read(SAMPLES / entry[side] / "step0_rank0.h5") for side in ("reference", "candidate")
    )
    return reference, candidate


def relative_l2(reference: np.ndarray, candidate: np.ndarray) -> float:
    """Over elements finite on both sides; both sides must agree where they are not finite."""
    a, b = reference.astype(np.float64), candidate.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    assert np.array_equal(a[~finite], b[~finite], equal_nan=True)
    error = np.linalg.norm(b[finite] - a[finite])
    return float(error / np.linalg.norm(a[finite])) if error else 0.0


def profile(entry: dict) -> Iterator[tuple[str, float]]:
    """(path, error) in execution order."""
    reference, candidate = sides(entry)
    assert reference.keys() == candidate.keys()
    for path, item in reference.items():
        yield path, relative_l2(decoded(item), decoded(candidate[path]))


def test_the_index_names_folders_that_exist_and_says_what_to_expect():
    assert [entry["id"] for entry in INDEX] == list(make.MAKERS)
    for entry in INDEX:
        assert {"id", "title", "story", "reference", "candidate", "expect"} == entry.keys()
        assert entry["expect"]["verdict"] in ("fault", "rounding")
        for side in ("reference", "candidate"):
            assert list((SAMPLES / entry[side]).glob("*.h5"))


def test_each_sample_has_its_line_in_the_readme():
    text = (SAMPLES / "README.md").read_text(encoding="utf-8")
    for entry in INDEX:
        assert f"`{entry['id']}`" in text
        if "module" in entry["expect"]:
            assert f"`{entry['expect']['module']}`" in text


def test_the_samples_stay_below_12_mb_together():
    assert sum(path.stat().st_size for path in SAMPLES.rglob("*.h5")) < 12_000_000


def test_no_file_of_a_sample_names_a_place_on_the_machine_that_made_it():
    for path in SAMPLES.rglob("*.h5"):
        assert not re.search(rb"/(tmp|home|root|work|Users)/", path.read_bytes()), path


@pytest.mark.parametrize("entry", RECORDED, ids=lambda entry: entry["id"])
def test_every_dataset_has_the_attributes_that_the_format_asks_for(entry):
    for tensors in sides(entry):
        assert [item.attrs["order"] for item in tensors.values()] == list(range(len(tensors)))
        for item in tensors.values():
            assert item.attrs.keys() >= TEXTS | {"call", "order", "contiguous"}
            assert all(isinstance(item.attrs[name], str) for name in TEXTS)
            assert isinstance(item.scalars, dict)
            assert decoded(item).dtype.name == item.attrs["dtype"]
    attrs = root(SAMPLES / entry["candidate"] / "step0_rank0.h5")
    assert attrs["format"] == "precision-dump"
    assert attrs["complete"]


def test_the_encoder_shows_rounding_and_nothing_else():
    errors = [error for path, error in profile(by_id("minilm-fp32-bf16")) if "output" in path]
    assert min(errors) > 0.5 * BF16_FLOOR
    assert max(errors) < 10 * BF16_FLOOR


@pytest.mark.parametrize("sample_id", ["decoder-fault", "decoder-training"])
def test_the_planted_fault_is_the_first_tensor_far_above_the_floor(sample_id):
    entry = by_id(sample_id)
    errors = list(profile(entry))
    expect = entry["expect"]
    planted = f"/{expect['module']}@0/{expect['slot']}"
    first = next(path for path, error in errors if error > 20 * BF16_FLOOR)
    assert first == planted
    before = [error for path, error in errors[: errors.index((planted, dict(errors)[planted]))]]
    assert max(before) < 8 * BF16_FLOOR
    assert dict(errors)[planted] > 100 * BF16_FLOOR


def test_the_training_sample_has_every_pass():
    reference, _ = sides(by_id("decoder-training"))
    passes = {item.attrs["pass"] for item in reference.values()}
    assert passes == {"forward", "backward", "parameter", "gradient", "update"}


def test_the_torch_xray_pair_agrees_in_every_value_and_no_name():
    entry = by_id("xray-renamed")
    files = [
        h5py.File(next((SAMPLES / entry[side]).glob("*.h5"))) for side in ("reference", "candidate")
    ]
    with files[0] as left, files[1] as right:
        reference, candidate = left["1"], right["1"]
        assert len(reference) == len(candidate) == 105
        assert not set(reference) & set(candidate)
        for name, other in zip(reference, candidate, strict=True):
            assert name.rsplit(".", 2)[1:] == other.rsplit(".", 2)[1:]
            assert relative_l2(reference[name][()], candidate[other][()]) < 8 * FP16_FLOOR


def test_some_samples_can_be_mapped_and_some_are_compressed():
    with h5py.File(SAMPLES / "decoder-fault/reference/step0_rank0.h5") as file:
        assert file["@0/forward_output.0"].chunks is None
    with h5py.File(SAMPLES / "minilm-fp32-bf16/reference/step0_rank0.h5") as file:
        assert file["embeddings.LayerNorm@0/forward_output.0"].chunks is None
        wide = file["encoder.layer.0.intermediate.dense@0/forward_output.0"]
        assert wide.compression == "gzip"


@pytest.mark.slow
def test_making_the_samples_anew_gives_the_same_tensors(tmp_path, monkeypatch):
    threads = torch.get_num_threads()
    ids = ["decoder-fault", "decoder-training", "xray-renamed"]
    monkeypatch.setattr("sys.argv", ["make", *ids, "--into", str(tmp_path)])
    try:
        make.main()
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(False)
    assert (tmp_path / "index.json").read_text(encoding="utf-8") == (
        SAMPLES / "index.json"
    ).read_text(encoding="utf-8")
    for entry in RECORDED[1:]:
        made = read(tmp_path / entry["reference"] / "step0_rank0.h5")
        kept = read(SAMPLES / entry["reference"] / "step0_rank0.h5")
        assert made.keys() == kept.keys()
        for path, item in made.items():  # another processor may round differently
            assert relative_l2(decoded(kept[path]), decoded(item)) < 20 * BF16_FLOOR


def test_the_example_of_the_format_document_reads_a_sample(monkeypatch, capsys):
    text = (SAMPLES.parent / "docs/dump-format.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert example is not None
    monkeypatch.chdir(SAMPLES / "decoder-fault/reference")
    exec(compile(example[1], "docs/dump-format.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 257
    assert lines[0].startswith("/@0/forward_input.0 int64 (1, 32)")
    assert any("bfloat16 (1, 4, 32, 16)" in line for line in lines)


def test_the_format_document_names_every_attribute_that_is_written():
    text = (SAMPLES.parent / "docs/dump-format.md").read_text(encoding="utf-8")
    reference, _ = sides(by_id("decoder-training"))
    written = {name for item in reference.values() for name in item.attrs}
    written |= root(SAMPLES / "decoder-training/reference/step0_rank0.h5").keys()
    assert {name for name in written if f"`{name}`" not in text} == set()
