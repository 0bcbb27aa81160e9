"""What each dialect reads out of names, attributes and order."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import ml_dtypes
import numpy as np
import pytest
from h5py import h5d, h5s, h5t
from loader_contract import same_bits

from core.tensors import TensorInfo
from loaders import LOADERS, Loader, open_run
from loaders.registry import Registry

ONE = np.ones(3, np.float32)
CASEBOOK = Path(__file__).parent.parent.parent / "shared" / "casebook"


def facts(tensor: TensorInfo) -> tuple[Any, ...]:
    return tensor.operator, tensor.module_class, tensor.slot_label, tensor.call


def test_torch_xray_names_say_module_class_slot_and_call(tmp_path: Path) -> None:
    names = {
        "blocks.0.norm2.LayerNorm.1.forward_output.0": (
            "blocks.0.norm2",
            "LayerNorm",
            "forward_output.0",
            0,
        ),
        "a.ColumnParalleLinear.forward_params.bias": (
            "a",
            "ColumnParalleLinear",
            "forward_params.bias",
            0,
        ),
        "act.GELU.0.forward_input.0": ("act", "GELU", "forward_input.0", 0),
        "act.GELU.3.forward_input.0": ("act", "GELU", "forward_input.0", 1),
        "act.GELU.3.forward_output.0": ("act", "GELU", "forward_output.0", 1),
        "act.GELU.0.backward_output.0": ("act", "GELU", "backward_output.0", 0),
        "fc.Linear.0.backward_params.weight": ("fc", "Linear", "backward_params.weight", 0),
        "Net.0.forward_input.0": ("", "Net", "forward_input.0", 0),
    }
    with h5py.File(tmp_path / "globalrank-3_localrank-1.h5", "w") as file:
        for step in ("10", "2"):
            group = file.create_group(step, track_order=True)
            for name in names:
                group[name] = ONE
    run = open_run(tmp_path)
    assert [run[f"step2/rank3/{name}"].order for name in names] == list(range(len(names)))
    assert {name: facts(run[f"step10/rank3/{name}"]) for name in names} == names
    assert run["step2/rank3/act.GELU.3.forward_input.0"].attrs["counter"] == 3
    assert run["step2/rank3/act.GELU.3.forward_input.0"].order_recorded


def test_torch_xray_is_known_by_its_names_when_the_file_is_renamed(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "renamed", "w") as file:
        file["7/model.norm.RMSNorm.0.forward_output.0"] = ONE
    run = open_run(tmp_path)
    assert run.provenance["format"] == "torch_xray HDF5"
    assert run["step7/model.norm.RMSNorm.0.forward_output.0"].module == "model.norm"


def test_flat_names_say_step_module_and_slot_with_and_without_the_typo(tmp_path: Path) -> None:
    names = {
        "step_0_layers.0.fc_forward_input_1": ("layers.0.fc", "", "forward_input.1", 0),
        "step_0_layers.0.fcforward_output_0": ("layers.0.fc", "", "forward_output.0", 0),
        "step_0_fc_backward_output_0": ("fc", "", "backward_output.0", 0),
        "step_0__forward_input_0": ("", "", "forward_input.0", 0),
        "step_0_weight_fc.weight": ("fc", "", "forward_params.weight", 0),
        "step_0_weight_grad_fc.weight": ("fc", "", "backward_params.weight", 0),
        "step_0_weight_updated_fc.weight": ("fc", "", "update_params.weight", 0),
        "step_0_my.loss": ("my", "", "value.loss", 0),
    }
    with h5py.File(tmp_path / "rank_5.hf5", "w") as file:
        for name in names:
            file[name] = ONE
    run = open_run(tmp_path)
    found = {name: facts(run[f"step0/rank5/{name.removeprefix('step_0_')}"]) for name in names}
    assert found == names


def test_a_plain_file_is_named_by_its_paths_steps_and_ranks(tmp_path: Path) -> None:
    (tmp_path / "rank1").mkdir()
    with h5py.File(tmp_path / "rank1" / "dump.h5", "w") as file:
        for layer in (10, 2):
            file[f"step3/layers.{layer}/attn/out"] = ONE
        file["flat.name"] = ONE
        file["flat.name"].attrs.update({"step": 4, "rank": 0, "dims": "hidden", "note": "mine"})
        file["nchw"] = np.zeros((1, 2, 3, 4))
        file["nchw"].attrs["layout"] = "NCHW"
    run = open_run(tmp_path)
    assert list(run.tensors) == [
        "rank1/nchw",
        "step3/rank1/layers.2/attn/out",
        "step3/rank1/layers.10/attn/out",
        "step4/rank0/flat.name",
    ]
    assert facts(run["step3/rank1/layers.2/attn/out"]) == ("layers.2.attn.out", "", "value", 0)
    assert run["step4/rank0/flat.name"].attrs["note"] == "mine"
    assert run["step4/rank0/flat.name"].dims == ("hidden",)
    assert run["rank1/nchw"].dims == ("N", "C", "H", "W")
    assert not run["rank1/nchw"].order_recorded


def test_files_that_share_names_are_told_apart_by_their_path(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["x/y"] = ONE
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["z"] = ONE
    run = open_run(tmp_path)
    assert list(run.tensors) == ["a/x/y", "b/x/y", "z"]
    assert run["b/x/y"].module == "b.x"


def test_our_own_attributes_count_whatever_the_path_says(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "any.h5", "w") as file:
        file.attrs.update({"format": "precision-dump", "format_version": 1, "step": 2, "rank": 1})
        file.attrs["provenance"] = json.dumps({"framework": "torch", "math": {"allow_tf32": False}})
        file.attrs["complete"] = False
        file.attrs["error"] = "ValueError: boom"
        file.attrs["skipped"] = json.dumps({"/a@0/x": "sparse"})
        for order, path in ((1, "z"), (0, "a")):
            said = {"module": "layers.3.attn", "module_class": "Attention", "op": "softmax"}
            said |= {"pass": "forward", "slot": "output", "argument": "0", "call": 2}
            said |= {"order": order, "dtype": "bfloat16", "dims": '["b", "s"]'}
            said |= {"attrs_json": '{"eps": 1e-5, "is_causal": true}', "same_as": "/other"}
            file[path] = np.ones((2, 3), np.uint16)
            file[path].attrs.update({**said, "stride": np.array([3, 1])})
        file["nameless"] = ONE
    run = open_run(tmp_path)
    tensor = run["step2/rank1/a"]
    assert (*facts(tensor), tensor.op, tensor.order, tensor.dims) == (
        *("layers.3.attn.softmax", "Attention", "forward_output.0", 2),
        *("softmax", 0, ("b", "s")),
    )
    assert tensor.attrs == {"eps": 1e-5, "is_causal": True, "same_as": "/other", "stride": [3, 1]}
    assert run.read(tensor.id).dtype == ml_dtypes.bfloat16
    assert run.provenance["math.allow_tf32"] == "false"
    assert {problem.code for problem in run.problems} == {"incomplete", "skipped", "attributes"}
    assert any("ValueError: boom" in problem.message for problem in run.problems)


def custom_float(size: int, fields: tuple[int, ...], bias: int) -> Any:
    kind = h5t.IEEE_F32LE.copy()
    kind.set_fields(*fields)
    kind.set_precision(8 * size)
    kind.set_size(size)
    kind.set_ebias(bias)
    return kind


@pytest.mark.parametrize(
    ("dtype", "fields", "bias"),
    [
        (ml_dtypes.bfloat16, (15, 7, 8, 0, 7), 127),
        (ml_dtypes.float8_e4m3fn, (7, 3, 4, 0, 3), 7),
        (ml_dtypes.float8_e5m2, (7, 2, 5, 0, 2), 15),
    ],
)
def test_float_types_numpy_lacks_are_read_bit_for_bit(
    tmp_path: Path, dtype: Any, fields: tuple[int, ...], bias: int
) -> None:
    values = np.array([1.1640625, -2, 256, 448, 0.001]).astype(dtype)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        kind = custom_float(values.itemsize, fields, bias)
        dataset = h5d.create(file.id, b"x", kind, h5s.create_simple(values.shape))
        dataset.write(h5s.ALL, h5s.ALL, values.view(f"u{values.itemsize}"), kind)
    run = open_run(tmp_path)
    assert run["x"].storage_dtype == run["x"].dtype == np.dtype(dtype).name
    assert same_bits(run.read("x"), values)
    assert same_bits(next(run.chunks("x")), values)


def test_opaque_bytes_count_with_a_declared_dtype(tmp_path: Path) -> None:
    values = np.arange(6).astype(ml_dtypes.bfloat16)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = values  # h5py loses the type here
        file["x"].attrs["dtype"] = "torch.bfloat16"
    run = open_run(tmp_path)
    assert same_bits(run.read("x"), values)


def test_a_container_may_be_wider_than_what_it_holds(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = ONE
        file["x"].attrs["orig_dtype"] = "bf16"
        file["odd"] = ONE
        file["odd"].attrs["dtype"] = "posit16"
    run = open_run(tmp_path)
    assert (run["x"].storage_dtype, run["x"].dtype) == ("float32", "bfloat16")
    assert run.read("x").dtype == np.float32
    assert run["odd"].dtype == "float32"
    assert [problem.code for problem in run.problems] == ["dtype"]


def test_what_was_never_written_is_the_fill_value(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("flat", (5,), "f4", fillvalue=7)
        file.create_dataset("tiled", (5, 5), "i2", chunks=(2, 2), fillvalue=-3)[0:2, 0:2] = 1
        file["null"] = h5py.Empty("f4")
    run = open_run(tmp_path)
    expected = np.full((5, 5), -3, np.int16)
    expected[:2, :2] = 1
    assert same_bits(run.read("tiled"), expected)
    assert np.concatenate(list(run.chunks("flat", 2))).tolist() == [7] * 5
    assert run.read("flat", (slice(1, 3),)).tolist() == [7, 7]
    assert run["null"].shape == (0,)
    assert list(run.chunks("null")) == []


@pytest.mark.parametrize(
    "storage", [hdf5plugin.BZip2(), hdf5plugin.Blosc2(), hdf5plugin.Blosc2("zstd")]
)
def test_foreign_filters_are_read_through_the_library(tmp_path: Path, storage: Any) -> None:
    values = np.random.default_rng(0).standard_normal((50, 40)).astype(np.float32)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(7, 40), fletcher32=True, **storage)
    run = open_run(tmp_path)
    assert same_bits(np.concatenate(list(run.chunks("x", 77))), values.ravel())
    assert same_bits(run.read("x", (slice(None, None, -3), 5)), values[::-3, 5])


def test_a_missing_filter_is_named(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=ONE, chunks=(3,), **hdf5plugin.Zstd())
        file["y"] = ONE
    code = (
        "import sys; sys.modules['hdf5plugin'] = None\n"
        "from pathlib import Path; from loaders import open_run\n"
        f"run = open_run(Path({str(tmp_path)!r}))\n"
        "print(list(run.tensors), [(p.code, p.message) for p in run.problems])"
    )
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert "['y'] [('filter', 'the Zstandard filter (32015) is missing." in done.stdout


def test_large_tiles_across_the_rows_are_still_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from loaders.hdf5 import tiles

    monkeypatch.setattr(tiles, "_MOST", 4096)
    monkeypatch.setattr(tiles, "_USUAL", 1024)
    for shape, tile in [
        ((64, 64), (64, 4)),
        ((9, 9, 9), (3, 9, 2)),
        ((5000,), (4000,)),
        ((1, 3), (2, 2)),
    ]:
        flat = np.arange(np.prod(shape)).reshape(shape)
        boxes = list(tiles.bands(shape, tile, 8, wanted=0))
        seen = np.concatenate([flat[np.ix_(*box)].ravel() for box in boxes])
        assert np.array_equal(seen, flat.ravel())
        assert max(flat[np.ix_(*box)].nbytes for box in boxes) <= 4096


def test_written_order_survives_the_gaps_a_growing_file_leaves(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    names = [f"step_0_m{rng.integers(10**9)}_forward_output_0" for _ in range(1000)]
    with h5py.File(tmp_path / "rank_0.hf5", "w") as file:
        for name in names:
            file[name] = np.zeros(rng.integers(1, 800), np.float32)
    found = [tensor.name for tensor in open_run(tmp_path).tensors.values()]
    position = {name.removeprefix("step_0_"): i for i, name in enumerate(names)}
    places = [position[name] for name in found]
    astray = sum(abs(place - i) > 5 for i, place in enumerate(places))
    assert astray <= 5  # by headers alone: hundreds


def test_two_loaders_of_one_name_are_a_mistake() -> None:
    registry = Registry()
    loader = Loader("x", "X", lambda *_: False, lambda _: pytest.fail("not asked"))
    assert registry.register(loader) is loader
    with pytest.raises(ValueError, match="two loaders are called 'x'"):
        registry.register(loader)


def test_every_loader_is_found_and_documented() -> None:
    LOADERS.discover()
    text = (Path(__file__).parent.parent / "docs" / "adding-a-loader.md").read_text()
    assert len(LOADERS) == 22
    assert all(f"`{name}`" in text for name in LOADERS)


@pytest.mark.skipif(not CASEBOOK.is_dir(), reason="the casebook is not beside this checkout")
def test_a_casebook_dump_loads_whole_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(CASEBOOK))
    spec = importlib.util.spec_from_file_location("dumpio", CASEBOOK / "dumpio.py")
    assert spec is not None
    assert spec.loader is not None
    dumpio = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(dumpio)
    recorder = dumpio.Recorder()
    rng = np.random.default_rng(1)
    recorder.begin(1)
    for _ in range(2):
        values = [rng.standard_normal((3, 200)).astype(np.float32) for _ in range(3)]
        recorder.op(
            "model.fc",
            "Linear",
            "forward",
            {"weight": values[0]},
            [values[1]],
            [values[2]],
            "bfloat16",
        )
    for style in ("attr", "native"):
        folder = tmp_path / style
        dumpio.write(folder, recorder.steps, style)
        run, written = open_run(folder), dumpio.read(folder)["1"]
        assert [tensor.name for tensor in run.tensors.values()] == [name for name, *_ in written]
        assert [tensor.call for tensor in run.tensors.values()] == [0, 0, 0, 1, 1, 1]
        for tensor, (_, values, dtype) in zip(run.tensors.values(), written, strict=True):
            assert tensor.dtype == dtype
            assert np.array_equal(run.read(tensor.id).astype(np.float32), values)
