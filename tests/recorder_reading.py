"""Reads dumps with plain h5py, as docs/dump-format.md describes it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import ml_dtypes
import numpy as np
import torch


@dataclass(frozen=True)
class Read:
    path: str
    values: np.ndarray
    attrs: dict[str, Any]

    @property
    def scalars(self) -> dict[str, Any]:
        return json.loads(self.attrs["attrs_json"])

    @property
    def torch(self) -> torch.Tensor:
        """The values as a tensor of their logical format."""
        dtype = getattr(torch, self.attrs["dtype"])
        bits = torch.from_numpy(self.values.copy())
        return bits if bits.dtype == dtype else bits.view(dtype)


def read(file: Path) -> dict[str, Read]:
    """Everything in a file, in execution order."""
    found: list[Read] = []

    def visit(_: str, item: h5py.Group | h5py.Dataset) -> None:
        if isinstance(item, h5py.Dataset):
            found.append(Read(item.name, np.asarray(item[()]), dict(item.attrs)))

    with h5py.File(file) as opened:
        opened.visititems(visit)
    found.sort(key=lambda item: item.attrs["order"])
    return {item.path: item for item in found}


def root(file: Path) -> dict[str, Any]:
    with h5py.File(file) as opened:
        return dict(opened.attrs)


def decoded(item: Read) -> np.ndarray:
    """Values through ml_dtypes, the way a reader without torch decodes them."""
    name = item.attrs["dtype"]
    special = getattr(ml_dtypes, name, None) if name.startswith(("bfloat", "float8")) else None
    return item.values if special is None else item.values.view(special)
