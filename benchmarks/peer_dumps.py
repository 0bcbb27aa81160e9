"""The same two dumps as each tool reads them. Run by the interpreter that has the tool installed.

`python peer_dumps.py msprobe|polygraphy|ours FOLDER TENSORS ELEMENTS` makes `reference` and
`candidate` in the folder. Tensors are float32 of 4096 columns; the candidate differs in the last
bit of its values.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = 4096
SIDES = {"reference": np.float32(1), "candidate": np.float32(1 + 2**-23)}


def tensors(count: int, elements: int, scale: Any) -> Iterator[Any]:
    """The tensors of one side, one after the other."""
    generator = np.random.default_rng(0)
    for _ in range(count):
        values = generator.standard_normal(elements, dtype=np.float32)
        yield (values * scale).reshape(-1, COLUMNS)


def ours(folder: Path, count: int, elements: int) -> None:
    """Contiguous HDF5."""
    import h5py

    for side, scale in SIDES.items():
        (folder / side).mkdir()
        with h5py.File(folder / side / "dump.h5", "w", track_order=True) as file:
            for n, values in enumerate(tensors(count, elements, scale)):
                file[f"layers.{n}.mlp/forward_output.0"] = values


def msprobe(folder: Path, count: int, elements: int) -> None:
    """A `dump.json` with statistics and a `.pt` a tensor, as its PrecisionDebugger leaves them."""
    import torch

    for side, scale in SIDES.items():
        data = folder / side / "dump_tensor_data"
        data.mkdir(parents=True)
        calls = {}
        for n, values in enumerate(tensors(count, elements, scale)):
            tensor, call = torch.from_numpy(values), f"Functional.linear.{n}.forward"
            torch.save(tensor, data / f"{call}.output.0.pt")
            output = _described(tensor, f"{call}.output.0.pt")
            calls[call] = {"input_args": [], "input_kwargs": {}, "output": [output]}
        head = {"task": "tensor", "level": "L1", "framework": "pytorch"}
        dump = {**head, "dump_data_dir": str(data), "data": calls}
        (folder / side / "dump.json").write_text(json.dumps(dump))
        (folder / side / "construct.json").write_text("{}")
        (folder / side / "stack.json").write_text("{}")


def _described(tensor: Any, name: str) -> dict[str, Any]:
    return {
        "type": "torch.Tensor",
        "dtype": str(tensor.dtype),
        "shape": list(tensor.shape),
        "Max": tensor.max().item(),
        "Min": tensor.min().item(),
        "Mean": tensor.mean().item(),
        "Norm": tensor.norm().item(),
        "requires_grad": False,
        "data_name": name,
    }


def polygraphy(folder: Path, count: int, elements: int) -> None:
    """The JSON that `polygraphy run --save-outputs` writes."""
    from polygraphy.comparator import IterationResult, RunResults

    for side, scale in SIDES.items():
        named = {f"t{n}": values for n, values in enumerate(tensors(count, elements, scale))}
        results = RunResults([(side, [IterationResult(named, runner_name=side)])])
        results.save(str(folder / f"{side}.json"))


if __name__ == "__main__":
    writer = {"ours": ours, "msprobe": msprobe, "polygraphy": polygraphy}[sys.argv[1]]
    writer(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
