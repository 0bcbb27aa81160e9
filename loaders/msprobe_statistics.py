"""Tensors of msprobe that are only described: statistics, or a checksum, in dump.json itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.tensors import TensorSummary
from language import say
from loaders.absent import Told, lengths, rounding_of, told
from loaders.dtypes import canonical
from loaders.names import shown
from loaders.part import RefusedError

_LONGEST_CHECKSUM = 64


def described_only(said: Mapping[str, Any], where: str) -> Told:
    """What dump.json says of a tensor, from its leaf.

    msprobe computes statistics in the tensor's own format unless told otherwise, so those of a
    bf16 tensor are rounded to 8 bits. What it calls md5 is a CRC-32, or with `xor` a sum of bits.
    """
    dtype = said.get("dtype")
    logical = canonical(dtype) if isinstance(dtype, str) else None
    if logical is None:
        raise RefusedError("dtype", where, say("dump.json says no dtype known here."))
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
        raise RefusedError("statistics-only", where, say("dump.json says nothing of its values."))
    return Told(lengths(said.get("shape"), where), logical, summary)
