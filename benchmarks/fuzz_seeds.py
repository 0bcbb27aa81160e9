"""A small sound dump of every format, for the fuzz to spoil."""

from __future__ import annotations

import base64
import io
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch

Write = Callable[[Path], None]
SEEDS: dict[str, Write] = {}
GRID = np.arange(96, dtype=np.float32).reshape(8, 12) / 7
TENSOR = torch.from_numpy(GRID.copy())
PADDLE = (
    "[PRECISION] [ERROR] in [device=gpu:0, op=divide, tensor=x, dtype=fp32], numel=40, "
    "num_nan=0, num_inf=4, num_zero=0, max=inf, min=1.048930e+00, mean=-nan\n"
)
TITAN = (
    "Total captured activations: 1\n\n[layers.0.wq/op_0_mm]\n"
    "  Shape: torch.Size([2, 8]), Dtype: torch.bfloat16\n  L2 norm: 1.0e+02\n  Min: -3.0e+00\n"
    "  Max: 4.0e+00\n  Mean: 1.0e-03\n  Phase: backward\n"
)


def seed(write: Write) -> Write:
    """Enrol a writer under its name."""
    SEEDS[write.__name__] = write
    return write


def _torch(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(content, path)


def _json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1))


def _npy(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, GRID)
    return path


@seed
def hdf5(folder: Path) -> None:
    """Contiguous, chunked, compressed and linked datasets, attributes, all in the older layout."""
    with h5py.File(folder / "any.h5", "w", track_order=True) as file:
        _datasets(file)


@seed
def hdf5_latest(folder: Path) -> None:
    """The same in the newest layout, behind a user block."""
    with h5py.File(folder / "any.h5", "w", libver="latest", userblock_size=512) as file:
        _datasets(file)


def _datasets(file: h5py.File) -> None:
    file["layers/0/attn"] = GRID
    file["layers/0/attn"].attrs.update({"dtype": "float32", "step": 3, "note": "n" * 40})
    packed = {"compression": "gzip", "shuffle": True, "fletcher32": True}
    file.create_dataset("layers/0/mlp", data=GRID, chunks=(3, 12), **packed)
    file.create_dataset("layers/1/mlp", data=GRID, chunks=(3, 5), maxshape=(None, 12))
    file["bits"] = np.arange(10, dtype="u2")
    file["bits"].attrs["dtype"] = "bfloat16"
    file["link"] = h5py.SoftLink("/bits")
    file["names"] = np.array([b"a", b"bb"])


@seed
def precision_dump(folder: Path) -> None:
    """Our own format."""
    with h5py.File(folder / "step0_rank0.h5", "w", track_order=True) as file:
        root = {"format": "precision-dump", "format_version": 1, "step": 0, "rank": 0}
        file.attrs.update({**root, "complete": True, "provenance": '{"device": "cpu"}'})
        for n in range(3):
            dataset = file.create_dataset(f"fc{n}@0/forward_output.0", data=GRID)
            said = {"pass": "forward", "slot": "output", "argument": "0", "call": 0}
            dataset.attrs.update({"module": f"fc{n}", "order": n, **said})


@seed
def torch_xray(folder: Path) -> None:
    """torch_xray's HDF5."""
    with h5py.File(folder / "globalrank-0_localrank-0.h5", "w") as file:
        step = file.create_group("1", track_order=True)
        for n in range(3):
            step[f"blocks.{n}.norm.LayerNorm.{n}.forward_output.0"] = GRID


@seed
def rank_flat(folder: Path) -> None:
    """The flat HDF5."""
    with h5py.File(folder / "rank_0.hf5", "w") as file:
        for n in range(3):
            file[f"step_0_fc{n}_forward_output_0"] = GRID


@seed
def numpy_tree(folder: Path) -> None:
    """`.npy`, `.npz`, and an array of Python objects."""
    _npy(folder / "step0" / "fc.npy")
    np.savez(folder / "step0" / "a.npz", **{"layers.0": GRID, "layers.1": GRID})
    np.savez_compressed(folder / "step0" / "b.npz", **{"layers.2": GRID})
    np.save(folder / "log.npy", {"logits": GRID, "loss": GRID[0]})  # type: ignore[arg-type]


@seed
def safetensors(folder: Path) -> None:
    """One file of parameters."""
    said = {"dtype": "F32", "shape": list(GRID.shape)}
    header = {
        "__metadata__": {"format": "pt"},
        **{
            f"layers.{n}.weight": {**said, "data_offsets": [n * GRID.nbytes, (n + 1) * GRID.nbytes]}
            for n in range(3)
        },
    }
    text = json.dumps(header).encode()
    content = len(text).to_bytes(8, "little") + text + GRID.tobytes() * 3
    (folder / "model.safetensors").write_bytes(content)


@seed
def pt(folder: Path) -> None:
    """A state of parameters, and a permuted tensor."""
    state = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)).state_dict()
    _torch(folder / "state.pt", state)
    _torch(folder / "turned.pt", TENSOR.T)


@seed
def sglang(folder: Path) -> None:
    """The dumper's files, and a pass of the older kind."""
    for n in range(2):
        name = f"step=0___rank=0___dump_index={n}___name=non_intrusive__fc{n}.output.pt"
        _torch(folder / name, {"value": TENSOR, "meta": {"dims": "t h", "world_size": 1}})
    _torch(folder / "TP0_PP0_Rank0_pid1" / "Pass00000.pt", {"fc": [TENSOR, TENSOR]})


@seed
def captures(folder: Path) -> None:
    """VLLM on Neuron, and TransformerEngine."""
    _torch(folder / "dp0" / "prefill_s128_0" / "model.norm" / "rank0.pt", TENSOR)
    inside = folder / "tensor_dumps" / "rank_0" / "iter_000001"
    _torch(inside / "fc1_activation.pt", {"high_precision": TENSOR})


@seed
def msprobe(folder: Path) -> None:
    """A dump with values and one with statistics."""
    values, entries = folder / "step0" / "proc1", {}
    for n in range(2):
        name = f"Module.fc{n}.Linear.forward.0"
        _torch(values / "dump_tensor_data" / f"{name}.output.0.pt", TENSOR)
        leaf = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [8, 12], "Max": 1.5}
        entries[name] = {"output": [{**leaf, "data_name": f"{name}.output.0.pt"}, {**leaf}, None]}
    top = {"task": "tensor", "level": "mix", "framework": "pytorch", "dump_data_dir": "/x"}
    _json(values / "dump.json", {**top, "data": entries})
    _json(values / "construct.json", dict.fromkeys(entries))


@seed
def padiff(folder: Path) -> None:
    """A report and parameters."""
    place = folder / "step_0" / "rank_0"
    output = {"path": "/x/tensors/tensor_0.npy", "shape": "x", "dtype": "torch.float32"}
    _npy(place / "tensors" / "tensor_0.npy")
    _npy(place / "weights" / "weights_0.npy")
    node = {"name": "Linear", "route": "m.fc", "type": "net", "fwd_outputs": [output]}
    root = {"name": "M", "route": "m", "type": "net", "children": [node]}
    _json(place / "report.json", {"model_name": "M", "framework": "torch", "tree": [root]})
    leaf = {"name": "Linear", "route": "m.fc", "weights": {"weight": "/x/weights/weights_0.npy"}}
    _json(place / "params.json", {"model_name": "M", "framework": "torch", "tree": leaf})


@seed
def documents(folder: Path) -> None:
    """Apple's intermediates, Hugging Face's tree, Polygraphy's results."""
    apple = folder / "main.aimodelintermediates"
    _npy(apple / "data" / "mm_0001.npy")
    node = {"node_name": "mm", "data_file": "data/mm_0001.npy", "torch_dtype": "torch.float32"}
    _json(apple / "metadata.json", {"inputs": {}, "outputs": {}, "intermediates": {"mm": node}})
    printed = {"shape": "torch.Size([8, 12])", "dtype": "torch.float32", "value": ["tensor(…)"]}
    printed |= {"mean": "tensor(1.0e-01)", "min": "tensor(0.)", "max": "tensor(1.)"}
    tree = {"module_path": "M", "children": [{"module_path": "M.fc", "outputs": printed}]}
    _json(folder / "M_debug_tree_FULL_TENSORS.json", tree)
    stream = io.BytesIO()
    np.save(stream, GRID)
    array = {"array": base64.b64encode(stream.getvalue()).decode(), "polygraphy_class": "ndarray"}
    result = {"outputs": {"out": {"values": array}}, "polygraphy_class": "IterationResult"}
    _json(folder / "results.json", {"lst": [["trt", [result]]], "polygraphy_class": "RunResults"})


@seed
def logs(folder: Path) -> None:
    """Logs of Paddle, torchtitan and DebugMode."""
    (folder / "worker_gpu.0").write_text(PADDLE * 3)
    (folder / "md5.log").write_text("".join(f"relu_{n}: {'0a' * 16}\n" for n in range(4)))
    (folder / "rank_0_activations.log").write_text(TITAN * 2)
    number = {"type": "tuple", "items": [{"type": "scalar", "value": 1.5}]}
    log = {"type": "dict", "items": [["hash", number]]}
    call = {"type": "op", "op_name": "aten::relu", "args_str": "t: f32[2]", "call_depth": 2}
    module = {"type": "annotate", "header": "nn.Mod", "tag": "M.fc", "call_depth": 1}
    calls = [module, {**call, "log": log, "output_str": "  ->  t: f32[2]"}]
    known = {"format": "torch.utils._debug_mode.DebugMode.logs", "version": 1}
    _json(folder / "debug.json", {**known, "logs": calls})


@seed
def archives(folder: Path) -> None:
    """Dumps in archives."""
    packed = folder.parent / f"{folder.name}-packed"
    _npy(packed / "step0" / "fc.npy")
    _torch(packed / "step0" / "t.pt", TENSOR)
    for kind in ("zip", "tar", "gztar", "xztar"):
        shutil.make_archive(str(folder / kind), kind, packed)
    shutil.rmtree(packed)


def written(place: Path) -> Mapping[str, dict[str, bytes]]:
    """Every seed as the bytes of its files by path."""
    found = {}
    for name, write in SEEDS.items():
        folder = place / name
        folder.mkdir(parents=True)
        write(folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        found[name] = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    return found
