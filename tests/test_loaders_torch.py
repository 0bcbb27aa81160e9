"""Formats of `.pt` files: the contract, the grammar of each, and what must not be unpickled."""

from __future__ import annotations

import collections
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from loader_contract import Array, OwnLayout, Put
from msprobe_dumps import tensor_of

from core.errors import LoadError
from core.tensors import TensorInfo
from loaders import open_run

ONES = torch.ones(2, 3)


def facts(tensor: TensorInfo) -> tuple[Any, ...]:
    """Where a tensor stands."""
    return (tensor.operator, tensor.slot_label, tensor.call, tensor.step, tensor.rank)


class TestPlainPt(OwnLayout):
    def write(self, folder: Path, arrays: Mapping[str, Array], _: Put) -> None:
        torch.save({key: tensor_of(array) for key, array in arrays.items()}, folder / "state.pt")

    def in_order(self, _: list[str]) -> None:
        return None

    def name(self, key: str) -> str:
        return key


class TestPtTree(OwnLayout):
    def write(self, folder: Path, arrays: Mapping[str, Array], _: Put) -> None:
        for key, array in arrays.items():
            path = folder / "step3" / f"{key.replace('.', '/')}.pt"
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.save(tensor_of(array), path)

    def in_order(self, _: list[str]) -> None:
        return None

    def file(self, folder: Path, key: str) -> Path:
        return folder / "step3" / f"{key.replace('.', '/')}.pt"

    def name(self, key: str) -> str:
        return f"step3/{key.replace('.', '/')}"


class TestSglang(OwnLayout):
    def write(self, folder: Path, arrays: Mapping[str, Array], _: Put) -> None:
        for n, (key, array) in enumerate(arrays.items()):
            _dumped(folder, n, f"non_intrusive__{key}.output", tensor_of(array))

    def file(self, folder: Path, key: str) -> Path:
        return next(folder.rglob(f"*__{key}.output*"))

    def name(self, key: str) -> str:
        return f"step1/rank0/non_intrusive__{key}.output"


class TestSglangPasses(OwnLayout):
    def write(self, folder: Path, arrays: Mapping[str, Array], _: Put) -> None:
        path = folder / "TP0_PP0_Rank2_pid77" / "Pass00004.pt"
        path.parent.mkdir()
        torch.save({key: tensor_of(array) for key, array in arrays.items()}, path)

    def name(self, key: str) -> str:
        return f"step4/rank2/{key}"


class TestVllmNeuron(OwnLayout):
    def write(self, folder: Path, arrays: Mapping[str, Array], _: Put) -> None:
        for key, array in arrays.items():
            path = folder / "dp0" / "prefill_s128_0" / key / "rank1.pt"
            path.parent.mkdir(parents=True)
            torch.save(tensor_of(array), path)

    def in_order(self, _: list[str]) -> None:
        return None

    def file(self, folder: Path, key: str) -> Path:
        return folder / "dp0" / "prefill_s128_0" / key / "rank1.pt"

    def name(self, key: str) -> str:
        return f"rank1/prefill/{key}"


class TestTransformerEngine(OwnLayout):
    def write(self, folder: Path, arrays: Mapping[str, Array], _: Put) -> None:
        inside = folder / "tensor_dumps" / "rank_3" / "iter_000012"
        inside.mkdir(parents=True)
        for key, array in arrays.items():
            torch.save({"high_precision": tensor_of(array)}, inside / f"{key}_activation.pt")

    def in_order(self, _: list[str]) -> None:
        return None

    def file(self, folder: Path, key: str) -> Path:
        return next(folder.rglob(f"{key}_activation.pt"))

    def name(self, key: str) -> str:
        return f"step12/rank3/{key}_activation"


# --- grammars


def _dumped(folder: Path, index: int, name: str, value: Any, **tags: Any) -> None:
    """One file as SGLang's dumper writes it; tags in capitals stand in the metadata alone."""
    named = {k: v for k, v in tags.items() if k.islower()}
    kept = {"step": 1, "rank": 0, "dump_index": index, "name": name}
    kept |= {"recompute_status": "disabled", **named}
    path = folder / "dump_1" / ("___".join(f"{k}={v}" for k, v in kept.items()) + ".pt")
    path.parent.mkdir(exist_ok=True)
    told = {k.lower(): v for k, v in tags.items() if k.isupper()}
    meta = {**kept, **told, "world_size": 8, "sglang_parallel_info": {"tp_rank": 3, "tp_size": 8}}
    torch.save({"value": value, "meta": meta}, path)


def test_names_of_the_sglang_dumper_say_what_they_are(tmp_path: Path) -> None:
    names = [
        "non_intrusive__model.layers.0.mlp.inputs.0",
        "non_intrusive__inputs.input_ids",
        "non_intrusive__model.layers.0.output.1",
        "grad__non_intrusive__model.layers.0.mlp.output",
        "param__model.layers.0.mlp.weight",
        "grad__param__model.layers.0.mlp.weight",
        "layer_start__hidden",
        "grad__layer_start__hidden",
        "odd___name",
    ]
    for n, name in enumerate(names):
        _dumped(tmp_path, n, name, ONES, **({"layer_id": 3} if "__hidden" in name else {}))
    run = open_run(tmp_path)
    assert run.problems == ()
    assert [facts(tensor) for tensor in run.tensors.values()] == [
        ("model.layers.0.mlp", "forward_input.0", 0, 1, 0),
        ("", "forward_input.input_ids", 0, 1, 0),
        ("model.layers.0", "forward_output.1", 0, 1, 0),
        ("model.layers.0.mlp", "backward_input.0", 0, 1, 0),
        ("model.layers.0.mlp", "forward_params.weight", 0, 1, 0),
        ("model.layers.0.mlp", "backward_params.weight", 0, 1, 0),
        ("layers.3.layer_start__hidden", "value", 0, 1, 0),
        ("layers.3.layer_start__hidden", "backward_value", 0, 1, 0),
        ("odd___name", "value", 0, 1, 0),
    ]
    assert "step1/rank0/layer_id=3/layer_start__hidden" in run.tensors
    assert run["step1/rank0/odd___name"].attrs["sglang_parallel_info.tp_rank"] == 3


def test_a_name_dumped_again_in_one_step_is_another_call(tmp_path: Path) -> None:
    for n in range(12):
        _dumped(tmp_path, n, "hidden", ONES * n, DIMS="t h[tp] # ep:replicated")
    run = open_run(tmp_path)
    assert [tensor.call for tensor in run.tensors.values()] == list(range(12))
    assert list(run.tensors)[:2] == ["step1/rank0/hidden", "step1/rank0/hidden@1"]
    assert run.read("step1/rank0/hidden@11")[0, 0] == 11
    assert run["step1/rank0/hidden"].dims == ("t", "h")


def test_a_dumped_object_that_is_no_tensor_is_named_not_made(tmp_path: Path) -> None:
    _dumped(tmp_path, 0, "good", ONES)
    _dumped(tmp_path, 1, "cache", collections.Counter("abc"))
    _dumped(tmp_path, 2, "several", [ONES, {"k": ONES * 2}, None, 3])
    run = open_run(tmp_path)
    names = ["good", "several/0", "several/1.k"]
    assert list(run.tensors) == [f"step1/rank0/{name}" for name in names]
    assert [problem.code for problem in run.problems] == ["pickle"]


def test_passes_of_sglang_have_modules_and_a_batch(tmp_path: Path) -> None:
    for number in (0, 10, 2):
        path = tmp_path / "TP1_PP0_Rank1_pid5" / f"Pass{number:05}.pt"
        path.parent.mkdir(exist_ok=True)
        outputs = {"model.layers.0": [ONES, ONES * number], "lm_head": ONES}
        batch = {"model.forward_batch_info.input_ids": torch.arange(3)}
        torch.save({**batch, **outputs}, path)
    run = open_run(tmp_path)
    assert [tensor.step for tensor in run.tensors.values()] == [0] * 4 + [2] * 4 + [10] * 4
    assert [facts(tensor)[:2] for tensor in list(run.tensors.values())[:4]] == [
        ("model.forward_batch_info", "forward_input.input_ids"),
        ("model.layers.0", "forward_output.0"),
        ("model.layers.0", "forward_output.1"),
        ("lm_head", "forward_output.0"),
    ]
    assert run["step0/rank1/lm_head"].attrs == {"tp": 1, "pp": 0}


def test_phases_of_vllm_neuron_are_calls(tmp_path: Path) -> None:
    for phase in ("prefill_s128_0", "decode_b1_0", "decode_b1_1"):
        for replica in ("dp0", "dp1"):
            path = tmp_path / replica / phase / "model.norm" / "rank0.pt"
            path.parent.mkdir(parents=True)
            torch.save(ONES, path)
    run = open_run(tmp_path)
    assert {name: (t.module, t.call) for name, t in run.tensors.items()} == {
        "rank0/decode/model.norm": ("decode.model.norm", 0),
        "rank0/decode@1/model.norm": ("decode.model.norm", 1),
        "rank0/prefill/model.norm": ("prefill.model.norm", 0),
        "rank0/dp1/decode/model.norm": ("dp1.decode.model.norm", 0),
        "rank0/dp1/decode@1/model.norm": ("dp1.decode.model.norm", 1),
        "rank0/dp1/prefill/model.norm": ("dp1.prefill.model.norm", 0),
    }


class _Quantised:
    """Stands for a class of a library that nobody needs to have."""

    def __init__(self) -> None:
        self.data = torch.ones(4)


def test_transformer_engine_gives_what_needs_no_library(tmp_path: Path) -> None:
    inside = tmp_path / "rank_0" / "iter_000003"
    inside.mkdir(parents=True)
    both = {"high_precision": ONES, "quantized": _Quantised()}
    torch.save(both, inside / "decoder_layers_1_fc1_weight.pt")
    torch.save({"high_precision": ONES}, inside / "decoder_layers_1_fc1_wgrad.pt")
    torch.save({"high_precision": ONES}, tmp_path / "rank_0" / "fc2_dgrad_iter_000004.pt")
    run = open_run(tmp_path)
    assert [facts(tensor) for tensor in run.tensors.values()] == [
        ("decoder_layers_1_fc1", "forward_params.weight", 0, 3, 0),
        ("decoder_layers_1_fc1", "backward_params.weight", 0, 3, 0),
        ("fc2", "backward_output.0", 0, 4, 0),
    ]
    assert [problem.code for problem in run.problems] == ["pickle"]
    assert "quantized" in run.problems[0].where
    assert "_Quantised" in run.problems[0].message


# --- any `.pt`


def test_a_state_is_parameters_of_modules(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    torch.save(model.state_dict(), tmp_path / "step7_rank2.pt")
    run = open_run(tmp_path)
    assert run.problems == ()
    assert facts(run["step7/rank2/0.weight"]) == ("0", "forward_params.weight", 0, 7, 2)
    ours = {name.rpartition("/")[2]: run.read(name) for name in run.tensors}
    assert ours.keys() == model.state_dict().keys()
    for name, tensor in model.state_dict().items():
        assert np.array_equal(ours[name], tensor.numpy())


class _Evil:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.system, (f"touch '{self.marker}'",)


def test_nothing_is_executed_and_the_rest_loads(tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    torch.save({"a": ONES, "b": _Evil(marker), "c": [ONES, _Evil(marker)]}, tmp_path / "x.pt")
    run = open_run(tmp_path)
    assert list(run.tensors) == ["a", "c/0"]
    assert [problem.code for problem in run.problems] == ["pickle"] * 2
    assert "system" in run.problems[0].message
    assert not marker.exists()


def test_what_shares_itself_without_end_is_refused(tmp_path: Path) -> None:
    nested: list[Any] = [ONES]
    for _ in range(14):
        nested = [nested] * 8
    torch.save(nested, tmp_path / "x.pt")
    with pytest.raises(LoadError, match="too deep or too often"):
        open_run(tmp_path)


@pytest.mark.parametrize("content", [{"a": 1}, 3, "text", {}])
def test_a_file_without_a_tensor_says_so(tmp_path: Path, content: Any) -> None:
    torch.save(content, tmp_path / "x.pt")
    with pytest.raises(LoadError, match="holds no tensor"):
        open_run(tmp_path)


def test_a_pickle_of_older_pytorch_is_named(tmp_path: Path) -> None:
    torch.save(ONES, tmp_path / "x.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(LoadError, match="no zip archive"):
        open_run(tmp_path)
