"""Tensors of msprobe that are only described: statistics, or a checksum, in dump.json itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.tensors import TensorInfo, TensorSummary
from loaders.absent import Absent, rounding_of, told
from loaders.dtypes import canonical
from loaders.names import shown
from loaders.part import RefusedError, Source

_LONGEST_SHAPE = 64
_LONGEST_CHECKSUM = 64


def described_only(
    placed: TensorInfo, said: Mapping[str, Any], where: str
) -> tuple[TensorInfo, Source]:
    """A tensor with what dump.json says of it, from its place and its leaf.

    msprobe computes statistics in the tensor's own format unless told otherwise, so those of a
    bf16 tensor are rounded to 8 bits. What it calls md5 is a CRC-32, or with `xor` a sum of bits.
    """
    dtype = said.get("dtype")
    logical = canonical(dtype) if isinstance(dtype, str) else None
    if logical is None:
        raise RefusedError("dtype", where, "dump.json says no dtype known here.")
    checksum = said.get("md5")
    summary = TensorSummary(
        minimum=told(said.get("Min")),
        maximum=told(said.get("Max")),
        mean=told(said.get("Mean")),
        norm=told(said.get("Norm")),
        resolution=rounding_of(logical),
        checksum=f"md5:{shown(checksum[:_LONGEST_CHECKSUM])}" if isinstance(checksum, str) else "",
    )
    if not (summary.has_statistics or summary.checksum):
        raise RefusedError("statistics-only", where, "dump.json says nothing of its values.")
    shape = _shape(said.get("shape"), where)
    described = replace(placed, shape=shape, storage_dtype=logical, dtype=logical, summary=summary)
    return described, Absent(placed.name)


def _shape(shape: Any, where: str) -> tuple[int, ...]:
    lengths = shape if isinstance(shape, list) else [None]
    if len(lengths) > _LONGEST_SHAPE or not all(
        type(n) is int and 0 <= n < 1 << 48 for n in lengths
    ):
        raise RefusedError("damaged", where, "dump.json declares an impossible shape.")
    return tuple(lengths)
