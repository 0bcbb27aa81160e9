"""Chunks as they were stored, moved to a device and turned into float64 there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from metrics.decoding import Chunk, decoded
from metrics.torch_engine.wholes import Wholes, floats


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a stretch on the device; `wholes` where the chunk holds integers."""

    chunk: Chunk
    values: torch.Tensor  # float64
    wholes: Wholes | None


def side_of(chunk: Chunk, device: Any) -> Side:
    """A flat chunk of real numbers; what travels are its bytes as stored."""
    kind, width = chunk.dtype.kind, chunk.dtype.itemsize
    if kind in "biu":
        wholes = _wholes(chunk, device)
        return Side(chunk, floats(wholes.patterns, unsigned=wholes.unsigned), wholes)
    if chunk.dtype.name in ("float16", "float32", "float64"):
        return Side(chunk, _moved(chunk, device).to(torch.float64), None)
    if width == 1:
        every = torch.from_numpy(decoded(np.arange(256, dtype=np.uint8).view(chunk.dtype)))
        return Side(chunk, every.to(device)[_moved(chunk.view(np.uint8), device).long()], None)
    bits = _moved(chunk.view(np.int16), device).to(torch.int32) << 16
    return Side(chunk, bits.view(torch.float32).to(torch.float64), None)


def _wholes(chunk: Chunk, device: Any) -> Wholes:
    width = chunk.dtype.itemsize
    signed = _moved(chunk.view(f"i{width}"), device).to(torch.int64)
    if chunk.dtype.kind == "i" or width == 8:
        return Wholes(signed, chunk.dtype.kind != "i")
    return Wholes(signed & ((1 << (8 * width)) - 1), unsigned=False)


def _moved(chunk: Chunk, device: Any) -> torch.Tensor:
    """Copied first: PyTorch warns of memory that cannot be written, such as a mapped file."""
    return torch.from_numpy(np.array(chunk)).to(device)
