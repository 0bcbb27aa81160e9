"""Formats led by a document, or that are one: the contract, the grammar of each, broken ones."""

from __future__ import annotations

import base64
import io
import json
import math
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loader_contract import SAMPLES, Array, OwnLayout, Put
from test_loaders_safetensors import header_of
from test_loaders_safetensors import write as write_safetensors

from core.errors import LoadError
from core.tensors import TensorInfo
from loaders import open_run

DUMPS = Path(__file__).parent / "dumps"
PLAIN = {key: array for key, array in SAMPLES.items() if array.dtype.isbuiltin == 1}
ONES = np.ones((2, 3), np.float32)


def facts(tensor: TensorInfo) -> tuple[Any, ...]:
    """Where a tensor stands."""
    return (tensor.operator, tensor.slot_label, tensor.call)


# --- PaDiff


class Padiff:
    """A dump being written, with the absolute paths of another machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "MyModel" / "step_3" / "rank_1"
        self.folder.mkdir(parents=True)
        self._count = 0

    def array(self, array: Array, kind: str = "tensor") -> str:
        place = self.folder / f"{kind}s"
        place.mkdir(exist_ok=True)
        name = f"{kind}_{self._count}.npy"
        self._count += 1
        np.save(place / name, array)
        return f"/home/elsewhere/padiff_dump/{kind}s/{name}"

    def said(self, array: Array, dtype: str = "") -> dict[str, str]:
        what = f"torch.{dtype or array.dtype.name}"
        return {"path": self.array(array), "shape": str(array.shape), "dtype": what}

    def node(self, kind: str, name: str, route: str, **more: Any) -> dict[str, Any]:
        metas = {"fwd_step": 0, "bwd_step": 0, "net_id": 0}
        known = {"name": name, "route": route, "type": kind, "fwd_outputs": [], "bwd_grads": []}
        return {**known, "metas": metas, "children": [], "stack": "", **more}

    def close(self, name: str, tree: Any) -> None:
        top = {"model_name": "MyModel", "framework": "torch", "file_path": "/x", "tree": tree}
        (self.folder / name).write_text(json.dumps(top, indent=4))


class TestPadiff(OwnLayout):
    samples = PLAIN

    def write(self, folder: Path, arrays: Mapping[str, Array], _: Put) -> None:
        dump = Padiff(folder)
        layers = [
            dump.node("net", "Linear", key, fwd_outputs=[dump.said(array)])
            for key, array in arrays.items()
        ]
        dump.close("report.json", [dump.node("net", "MyModel", "", children=layers)])

    def file(self, folder: Path, key: str) -> Path:
        return next(folder.rglob(f"tensor_{list(self.samples).index(key)}.npy"))

    def name(self, key: str) -> str:
        return f"step3/rank1/{key}/forward_output.0"


def test_a_report_of_padiff_is_walked_as_it_ran(tmp_path: Path) -> None:
    dump = Padiff(tmp_path)
    relu = [dump.node("api", "torch.nn.functional.relu", "", fwd_outputs=[dump.said(ONES * n)])
            for n in (1, 2)]  # fmt: skip
    again = {"fwd_outputs": [dump.said(ONES, "bfloat16")], "bwd_grads": [dump.said(ONES * 5)]}
    block = dump.node("net", "Block", "m.block", children=relu, **again)
    twice = dump.node("net", "Block", "m.block", fwd_outputs=[dump.said(ONES * 3)])
    dump.close("report.json", [dump.node("net", "M", "m", children=[block, twice])])
    run = open_run(tmp_path)
    assert run.problems == ()
    assert [facts(tensor) for tensor in run.tensors.values()] == [
        ("m.block.relu", "forward_output.0", 0),
        ("m.block.relu_1", "forward_output.0", 0),
        ("m.block", "forward_output.0", 0),
        ("m.block", "forward_output.0", 1),
        ("m.block", "backward_output.0", 0),
    ]
    bf16 = run["step3/rank1/m.block/forward_output.0"]
    assert (bf16.dtype, bf16.storage_dtype, bf16.module_class) == ("bfloat16", "float32", "Block")
    assert run.read("step3/rank1/m.block@1/forward_output.0")[0, 0] == 3


def test_parameters_of_padiff_have_gradients_beside_them(tmp_path: Path) -> None:
    dump = Padiff(tmp_path)
    weights = {"weight": dump.array(ONES, "weight"), "bias": dump.array(ONES * 2, "weight")}
    grads = {"weight": dump.array(ONES * 3, "grad"), "bias": None}
    leaf = {"name": "Linear", "route": "m.fc", "weights": weights, "grads": grads, "children": []}
    dump.close("params.json", {"name": "M", "route": "m", "weights": {}, "children": [leaf]})
    run = open_run(tmp_path)
    assert [facts(tensor) for tensor in run.tensors.values()] == [
        ("m.fc", "forward_params.weight", 0),
        ("m.fc", "forward_params.bias", 0),
        ("m.fc", "backward_params.weight", 0),
    ]
    assert run.provenance["framework"] == "torch"


def test_paths_inside_a_report_are_never_followed(tmp_path: Path) -> None:
    np.save(tmp_path / "secret.npy", ONES)
    dump = Padiff(tmp_path / "dump")
    paths = [str(tmp_path / "secret.npy"), "tensors/../../secret.npy", "../secret.npy", 7]
    outputs = [{"path": path} for path in paths]
    tree = dump.node("net", "M", "m", fwd_outputs=[*outputs, dump.said(ONES)])
    dump.close("report.json", [tree])
    run = open_run(tmp_path / "dump")
    assert list(run.tensors) == ["step3/rank1/m/forward_output.4"]
    assert [problem.code for problem in run.problems] == ["gone"] * 4


def test_modules_nested_without_end_are_refused(tmp_path: Path) -> None:
    dump = Padiff(tmp_path)
    tree = dump.node("net", "M", "m", fwd_outputs=[dump.said(ONES)])
    for _ in range(80):
        tree = dump.node("net", "M", "m", children=[tree])
    dump.close("report.json", [tree])
    with pytest.raises(LoadError, match="nested too deep"):
        open_run(tmp_path)


# --- reprod_log


class TestReprodLog(OwnLayout):
    samples = PLAIN

    def write(self, folder: Path, arrays: Mapping[str, Array], _: Put) -> None:
        np.save(folder / "step3.npy", dict(arrays))  # type: ignore[arg-type]

    def name(self, key: str) -> str:
        return f"step3/{key}"


@pytest.mark.parametrize("protocol", [3, 4])
def test_arrays_of_any_order_are_found_in_a_pickle(tmp_path: Path, protocol: int) -> None:
    grid = np.arange(24, dtype=">f4").reshape(2, 3, 4)
    logged = {"a": np.asfortranarray(grid), "b": grid[::2, 1], "c": grid}
    with (tmp_path / "log.npy").open("wb") as stream:
        holder = np.array(logged, object)
        header = np.lib.format.header_data_from_array_1_0(holder)
        np.lib.format.write_array_header_1_0(stream, header)
        pickle.dump(holder, stream, protocol=protocol)
    run = open_run(tmp_path)
    assert run.problems == ()
    for name, array in logged.items():
        assert np.array_equal(run.read(name), array)


def test_objects_in_a_numpy_file_are_named_not_made(tmp_path: Path) -> None:
    values = {"good": ONES, "odd": {1, 2}, "text": "x", "many": np.array([{}, None])}
    np.save(tmp_path / "log.npy", values)  # type: ignore[arg-type]
    run = open_run(tmp_path)
    assert list(run.tensors) == ["good"]
    assert {problem.code for problem in run.problems} == {"dtype"}


def test_a_pickle_that_declares_more_than_is_there_allocates_nothing(tmp_path: Path) -> None:
    np.save(tmp_path / "log.npy", {"x": ONES})  # type: ignore[arg-type]
    content = (tmp_path / "log.npy").read_bytes()
    size = ONES.nbytes
    short = b"C" + bytes([size])
    assert content.count(short) == 1
    huge = b"\x8e" + (1 << 50).to_bytes(8, "little")
    (tmp_path / "log.npy").write_bytes(content.replace(short, huge))
    with pytest.raises(LoadError, match="damaged"):
        open_run(tmp_path)


# --- Apple


def intermediates(folder: Path, arrays: Mapping[str, Array], **said: Any) -> Path:
    """A folder as `save_intermediates` leaves it."""
    place = folder / "main.aimodelintermediates"
    (place / "data").mkdir(parents=True)
    nodes = {}
    for n, (key, array) in enumerate(arrays.items()):
        path = f"data/{key.replace('.', '_')}_{n:04}.npy"
        np.save(place / path, array)
        dtype = f"torch.{array.dtype.name}"
        told = {"node_name": key, "node_op": "call_function", "node_target": "aten.mm.default"}
        nodes[key] = {**told, "data_file": path, "shape": list(array.shape), "torch_dtype": dtype}
    document = {"inputs": {}, "outputs": {}, "intermediates": nodes, **said}
    (place / "metadata.json").write_text(json.dumps(document, indent=2))
    return place


class TestAppleIntermediates(OwnLayout):
    samples = PLAIN

    def write(self, folder: Path, arrays: Mapping[str, Array], _: Put) -> None:
        intermediates(folder, arrays)

    def file(self, folder: Path, key: str) -> Path:
        return next(folder.rglob(f"{key.replace('.', '_')}_0*.npy"))

    def name(self, key: str) -> str:
        return f"intermediates/{key}"


def test_nodes_are_operators_between_inputs_and_outputs(tmp_path: Path) -> None:
    place = intermediates(tmp_path, {"mm": ONES, "relu": ONES, "add": ONES, "x": ONES})
    document = json.loads((place / "metadata.json").read_text())
    nodes = document["intermediates"]
    document["inputs"], document["outputs"] = {"x": nodes.pop("x")}, {"add": nodes.pop("add")}
    nodes["gone"] = {"data_file": "data/../../secret.npy"}
    (place / "metadata.json").write_text(json.dumps(document))
    run = open_run(tmp_path)
    assert [facts(tensor)[:2] for tensor in run.tensors.values()] == [
        ("", "forward_input.x"),
        ("mm", "forward_output.0"),
        ("relu", "forward_output.0"),
        ("", "forward_output.add"),
    ]
    assert [problem.code for problem in run.problems] == ["gone"]


# --- Hugging Face


def debug_tree(folder: Path, children: list[Any], name: str = "FULL_TENSORS") -> Path:
    path = folder / f"Llama_debug_tree_{name}.json"
    tree = {"module_path": "Llama", "inputs": {"args": []}, "children": children}
    path.write_text(json.dumps(tree, indent=2))
    return path


def leaf(array: Array, path: str = "", folder: Path | None = None) -> dict[str, Any]:
    """What the debugger says of a tensor; with its values beside it if a path is given."""
    size = f"torch.Size([{', '.join(map(str, array.shape))}])"
    said: dict[str, Any] = {"shape": size, "dtype": f"torch.{array.dtype.name}"}
    if folder is None:
        wide = array.astype(np.float64)
        stats = {"mean": wide.mean(), "min": wide.min(), "max": wide.max()}
        printed = {
            key: f"tensor({value:.4e}, dtype=torch.bfloat16)" for key, value in stats.items()
        }
        return {**said, "value": ["tensor([[...]])"], **printed}
    write_safetensors(folder / path, *header_of({"data": array}))
    return {**said, "value": f"./{path}"}


class TestDebugTree(OwnLayout):
    def write(self, folder: Path, arrays: Mapping[str, Array], _: Put) -> None:
        children = []
        for key, array in arrays.items():
            path = f"Llama.{key}_outputs.safetensors"
            node = {"module_path": f"Llama.{key}", "inputs": None}
            children.append({**node, "outputs": leaf(array, path, folder)})
        debug_tree(folder, children)

    def file(self, folder: Path, key: str) -> Path:
        return folder / f"Llama.{key}_outputs.safetensors"

    def name(self, key: str) -> str:
        return f"{key}/output.0"


def test_printed_tensors_have_statistics_only(tmp_path: Path) -> None:
    array = np.array([[0.5, -2.0, 3.25]])
    inner = {"module_path": "Llama.layers.0.mlp", "inputs": {"args": [leaf(array)]},
             "outputs": [leaf(array), "None"]}  # fmt: skip
    again = {**inner, "inputs": {"args": [], "kwargs": {"mask": leaf(array), "n": "3"}}}
    children = [{"module_path": "Llama.layers.0", "children": [inner, again]}]
    debug_tree(tmp_path, children)
    debug_tree(tmp_path, children, "SUMMARY")  # says nothing that the other does not
    run = open_run(tmp_path)
    assert [facts(tensor) for tensor in run.tensors.values()] == [
        ("layers.0.mlp", "forward_input.0", 0),
        ("layers.0.mlp", "forward_output.0", 0),
        ("layers.0.mlp", "forward_input.mask", 1),
        ("layers.0.mlp", "forward_output.0", 1),
    ]
    summary = run["layers.0.mlp/input.0"].summary
    assert summary is not None
    assert (summary.minimum, summary.maximum, summary.norm) == (-2.0, 3.25, None)
    assert summary.mean == pytest.approx(0.5833, abs=5e-5)


# --- Polygraphy


def results(arrays: Mapping[str, Array], runner: str = "trt-runner-N0-1") -> list[Any]:
    """One runner of RunResults."""
    outputs = {}
    for key, array in arrays.items():
        stream = io.BytesIO()
        np.save(stream, array, allow_pickle=False)
        text = base64.b64encode(stream.getvalue()).decode()
        values = {"array": text, "polygraphy_class": "ndarray"}
        outputs[key] = {"values": values, "polygraphy_class": "LazyArray"}
    kind = "IterationResult"
    result = {"outputs": outputs, "runtime": 0.1, "runner_name": runner, "polygraphy_class": kind}
    return [runner, [result]]


class TestPolygraphy(OwnLayout):
    samples = PLAIN
    one_more_byte = b" "

    def write(self, folder: Path, arrays: Mapping[str, Array], _: Put) -> None:
        document = {"lst": [results(arrays)], "polygraphy_class": "RunResults"}
        (folder / "outputs.json").write_text(json.dumps(document))

    def name(self, key: str) -> str:
        return f"step0/{key}"


def test_several_runners_are_told_apart(tmp_path: Path) -> None:
    both = [results({"out": ONES * n}, runner) for n, runner in enumerate(("trt", "onnx"))]
    (tmp_path / "x.json").write_text(json.dumps({"lst": both, "polygraphy_class": "RunResults"}))
    run = open_run(tmp_path)
    assert list(run.tensors) == ["step0/trt/out", "step0/onnx/out"]
    assert run.read("step0/onnx/out")[0, 0] == 1


def test_a_list_of_inputs_loads_and_pickles_are_refused(tmp_path: Path) -> None:
    [_, [result]] = results({"x": ONES, "y": ONES})
    feeds = {name: value["values"] for name, value in result["outputs"].items()}
    feeds["y"] = {"tensor": "gASVCg==", "polygraphy_class": "tensor"}
    feeds["z"] = {"array": "AAA", "polygraphy_class": "ndarray"}
    feeds["forged"] = {"px_array": 999}
    (tmp_path / "inputs.json").write_text(json.dumps([feeds]))
    run = open_run(tmp_path)
    assert list(run.tensors) == ["step0/x"]
    assert [problem.code for problem in run.problems] == ["pickle", "damaged"]


# --- logs without values

CHECKED = (
    "[PRECISION] [ERROR] in [device=gpu:0, op={op}, tensor={tensor}, dtype={dtype}], numel=40, "
    "num_nan=0, num_inf=4, num_zero=0, max=inf, min=1.048930e+00, mean=-nan"
)


def test_lines_of_paddles_checker_are_operators_with_statistics(tmp_path: Path) -> None:
    ops = [("divide", "", "fp32"), ("matmul", "out", "bf16"), ("divide", "", "fp32")]
    lines = [CHECKED.format(op=op, tensor=t, dtype=d) for op, t, d in ops]
    lines += ["Traceback (most recent call last):", CHECKED.format(op="divide_grad", tensor="",
              dtype="fp32"), CHECKED.format(op="odd", tensor="", dtype="fp99")]  # fmt: skip
    (tmp_path / "worker_gpu.1").write_text("\n".join(lines))
    run = open_run(tmp_path)
    assert [facts(tensor) for tensor in run.tensors.values()] == [
        ("divide", "forward_output.0", 0),
        ("matmul", "forward_output.out", 0),
        ("divide_1", "forward_output.0", 0),
        ("divide", "backward_output.0", 0),
    ]
    first = next(iter(run.tensors.values()))
    assert (first.shape, first.dtype, first.rank, first.attrs["inf"]) == ((40,), "float32", 1, 4)
    assert first.summary is not None
    assert (first.summary.maximum, first.summary.minimum) == (np.inf, 1.04893)
    assert np.isnan(first.summary.mean or 0)
    assert [problem.code for problem in run.problems] == ["dtype"]


def test_checksums_of_paddle_are_tensors_without_statistics(tmp_path: Path) -> None:
    lines = ["linear_0.tmp_1: " + "0a" * 16, "relu_0：" + "1b" * 16, "relu_0:" + "2c" * 16]
    (tmp_path / "md5.log").write_text("\n".join(lines) + "\n")
    run = open_run(tmp_path)
    assert list(run.tensors) == ["linear_0.tmp_1", "relu_0", "relu_0@1"]
    summary = run["relu_0@1"].summary
    assert summary is not None
    assert summary.checksum == "paddle-md5:" + "2c" * 16


TITAN = """Total captured activations: 3
Excluded ops dispatched: view
================================================================================

[layers.0.attention.wq/op_0_mm]
  Shape: torch.Size([2, 8, 16]), Dtype: torch.bfloat16
  L2 norm: 1.234567e+02
  Min: -3.000000e+00
  Max: 4.000000e+00
  Mean: 1.000000e-03
  Output hash: 9.123456e+02
  Input hashes: 1.000000e+00, 2.000000e+00
  Location: common/attention.py:534

[layers.0.attention.wq/op_1_mm]
  Shape: torch.Size([16]), Dtype: torch.float32
  L2 norm: nan
  Min: 0.000000e+00
  Max: inf
  Mean: nan
  Phase: backward

[<none>/op_0__fused_adam_]
  Input hashes: 1.000000e+00
"""


def test_blocks_of_torchtitan_are_operations_with_statistics(tmp_path: Path) -> None:
    (tmp_path / "rank_3_activations.log").write_text(TITAN)
    run = open_run(tmp_path)
    assert run.problems == ()
    first, second = run.tensors.values()
    assert facts(first) == ("layers.0.attention.wq.mm", "forward_output.0", 0)
    assert facts(second) == ("layers.0.attention.wq.mm", "backward_output.0", 0)
    assert (first.shape, first.dtype, first.rank) == ((2, 8, 16), "bfloat16", 3)
    assert first.attrs["location"] == "common/attention.py:534"
    assert first.summary is not None
    assert (first.summary.norm, first.summary.mean) == (123.4567, 0.001)


# --- DebugMode of PyTorch


def test_a_log_of_debug_mode_is_operators_in_their_modules_with_their_hashes() -> None:
    """The sample was written by PyTorch 2.14 with both kinds of hashes, of inputs too."""
    run = open_run(DUMPS / "debug_mode.json")
    assert run.problems == ()
    of = {tensor.name: tensor for tensor in run.tensors.values()}
    product = of["lin/addmm.output.0"]
    assert facts(product) == ("lin.addmm", "forward_output.0", 0)
    assert (product.shape, product.dtype) == ((3, 2), "float32")
    assert product.summary is not None
    assert product.summary.magnitude == pytest.approx(1.959450677037239 / 6)
    assert product.summary.checksum == f"torch-xor:{52098138520944640:016x}"
    assert facts(of["max.output.1"]) == ("max", "forward_output.1", 0)
    assert of["max.output.1"].dtype == "int64"
    assert facts(of["lin/addmm.input.2"]) == ("lin.addmm", "forward_input.2", 0)
    assert facts(of["mm.backward_output.0"]) == ("mm", "backward_output.0", 0)
    assert [t.order for t in run.tensors.values()] == list(range(len(run.tensors)))


def _debug_log(*calls: Mapping[str, Any], version: int = 1) -> str:
    log = {"format": "torch.utils._debug_mode.DebugMode.logs", "version": version}
    return json.dumps({**log, "logs": list(calls)})


def _debug_call(hashed: Any, output: str = "  ->  t: f32[2]", **more: Any) -> dict[str, Any]:
    call = {"type": "op", "op_name": "aten::relu", "args_str": "", "kwargs_str": ""}
    log = {"type": "dict", "items": [["hash", hashed]]} if hashed else None
    return {**call, "call_depth": 1, "output_str": output, "log": log, **more}


def test_a_hash_of_debug_mode_that_is_not_finite_is_a_statement(tmp_path: Path) -> None:
    lost = {"type": "nonfinite_float", "value": "nan"}
    (tmp_path / "rank_2.json").write_text(_debug_log(_debug_call(lost), _debug_call(lost)))
    first, second = open_run(tmp_path).tensors.values()
    assert first.summary is not None
    assert first.summary.magnitude is not None
    assert math.isnan(first.summary.magnitude)
    assert (first.operator, second.operator, first.rank) == ("relu", "relu_1", 2)


def test_a_triton_kernel_has_the_tensors_that_it_was_given(tmp_path: Path) -> None:
    number = {"type": "scalar", "value": 6.0}
    hashes = {"type": "dict", "items": [["out_ptr0", number]]}
    kernel = {
        "type": "triton_kernel",
        "kernel_name": "triton_poi_fused_relu_0",
        "kwargs_str": "in_ptr0=t: bf16[3], out_ptr0=t: f32[3], xnumel=3",
        "pre_hashes": None,
        "post_hashes": hashes,
        "call_depth": 1,
    }
    (tmp_path / "log.json").write_text(_debug_log(kernel))
    (tensor,) = open_run(tmp_path).tensors.values()
    assert facts(tensor) == ("triton_poi_fused_relu_0", "forward_output.out_ptr0", 0)
    assert (tensor.shape, tensor.dtype) == ((3,), "float32")
    assert tensor.summary is not None
    assert tensor.summary.magnitude == 2.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_debug_log(version=2), "only version 1"),
        (_debug_log({"call_depth": None}), "has no depth"),
        (_debug_log(_debug_call(None)), "log_tensor_hashes"),
        (_debug_log().replace("[]", "7"), "no list of calls"),
    ],
)
def test_a_log_of_debug_mode_that_says_nothing_is_named(
    text: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "log.json").write_text(text)
    with pytest.raises(LoadError, match=said):
        open_run(tmp_path)
