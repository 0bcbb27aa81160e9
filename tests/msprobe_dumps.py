"""Dumps as msprobe writes them: entries of dump.json, construct.json and one `.pt` a tensor."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, Any]
_SIGNED = {1: np.uint8, 2: np.int16}


def tensor_of(array: Array) -> torch.Tensor:
    """The same bits as a tensor of PyTorch."""
    if array.dtype.isbuiltin != 1:
        bits = torch.from_numpy(np.array(array.view(_SIGNED[array.dtype.itemsize])))
        return bits.view(getattr(torch, array.dtype.name))
    return torch.from_numpy(np.array(array))


class Dump:
    """A dump being written: `add` an argument of an entry, then `close`."""

    def __init__(self, folder: Path, *, suffix: str = ".pt") -> None:
        self.folder, self.suffix = folder, suffix
        self.values = folder / "dump_tensor_data"
        self.values.mkdir(parents=True)
        self.data: dict[str, dict[str, Any]] = {}
        self.construct: dict[str, str | None] = {}

    def add(self, entry: str, key: str, array: Array, *, parent: str | None = None) -> Path:
        """One more positional argument or result of an entry, with its file."""
        members = self.data.setdefault(entry, {}).setdefault(key, [])
        word = "input" if key == "input_args" else key
        said = self.leaf(array, f"{entry}.{word}.{len(members)}")
        members.append(said)
        self.construct[entry] = parent
        return self.values / said["data_name"]

    def leaf(self, array: Array, name: str) -> dict[str, Any]:
        """Write values, and give what dump.json says of them."""
        data_name = f"{name}{self.suffix}"
        if self.suffix == ".npy":
            np.save(self.values / data_name, array)
        else:
            torch.save(tensor_of(array), self.values / data_name)
        what = {"type": "torch.Tensor", "dtype": f"torch.{array.dtype.name}"}
        stats = {"Max": float("inf"), "Min": float("-inf"), "Mean": float("nan"), "Norm": None}
        return {**what, "shape": list(array.shape), **stats, "data_name": data_name}

    def close(self, **said: Any) -> Path:
        """Write the JSON files; gives the dump.json."""
        elsewhere = "/nowhere/step0/proc1/dump_tensor_data"
        top = {"task": "tensor", "level": "mix", "framework": "pytorch", "dump_data_dir": elsewhere}
        path = self.folder / "dump.json"
        path.write_text(json.dumps({**top, **said, "data": self.data}, indent=1))
        (self.folder / "construct.json").write_text(json.dumps(self.construct, indent=1))
        return path


def write(folder: Path, arrays: Mapping[str, Array], *, suffix: str = ".pt") -> None:
    """Every tensor as the output of a linear layer of its own."""
    dump = Dump(folder / "step3" / "rank1", suffix=suffix)
    for key, array in arrays.items():
        dump.add(f"Module.{key}.Linear.forward.0", "output", array)
    dump.close()
