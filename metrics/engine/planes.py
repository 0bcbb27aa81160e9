"""Counting one bit in each of many words: carry-save adders over sixteen lanes of words.

Counter c of bit k is spread over planes: plane p holds, for each lane, the binary digit p of how
many words of the lane have bit k. Sixteen words take fifteen full adders, two instructions each,
whatever the data; a table would take an instruction that reads and writes for every word.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numpy.typing import NDArray

from metrics.engine.jit import inlined, intrinsic, pointer_of
from metrics.engine.lanes import I32, LANES, Lanes, Memory, index
from metrics.engine.layout import BLOCK

PLANES = 48
GROUP = 16 * LANES  # words that are added up before a carry is written
GROUPS = BLOCK // GROUP
ROOM = GROUPS * LANES  # of the carries of a block
_DIGITS = 4  # log2 of the vectors of a group
_RIPPLE = _DIGITS + GROUPS.bit_length() - 1  # plane of a block's last carry

Words = NDArray[np.uint32]


def _added(a: Lanes, b: Lanes, c: Lanes) -> tuple[Lanes, Lanes]:
    """Sum and carry."""
    apart = a ^ b
    return apart ^ c, (a & b) | (apart & c)


def _folded(words: list[Lanes], planes: Memory, first: int) -> Lanes:
    """Add words to planes from `first` on, one plane for each halving; the last carry."""
    plane = first
    while len(words) > 1:
        held, carries = planes.load(index(plane * LANES)), []
        for one, other in zip(words[::2], words[1::2], strict=True):
            held, carry = _added(held, one, other)
            carries.append(carry)
        planes.store(index(plane * LANES), held)
        words, plane = carries, plane + 1
    return words[0]


def count_group(words: list[Lanes], planes: Memory, carries: Memory, group: Any) -> None:
    """Generate code that counts sixteen vectors, group number `group` of a block."""
    at = words[0].builder.mul(group, index(LANES))
    carries.store(at, _folded(words, planes, 0))


@intrinsic
def _fold_carries(typing_context: Any, carries: Any, planes: Any) -> Any:  # noqa: ARG001
    """Add the carries of a block to the planes after those of its groups; the last in front."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        taken, held = (
            Memory(builder, pointer_of(context, builder, kind, array), I32)
            for kind, array in zip(signature.args, arguments, strict=True)
        )
        words = [taken.load(index(g * LANES)) for g in range(GROUPS)]
        taken.store(index(0), _folded(words, held, _DIGITS))
        return context.get_dummy_value()

    return types.void(carries, planes), generate


@inlined
def close_block(carries: Words, groups: int, planes: Words) -> None:
    """Take what the `groups` of a block carried over; `planes` is flat."""
    for i in range(groups * LANES, ROOM):
        carries[i] = np.uint32(0)
    _fold_carries(carries, planes)
    for start in range(_RIPPLE * LANES, PLANES * LANES, LANES):
        left = np.uint32(0)
        for j in range(LANES):
            both = np.uint32(planes[start + j] & carries[j])
            planes[start + j] = np.uint32(planes[start + j] ^ carries[j])
            carries[j] = both
            left = np.uint32(left | both)
        if left == 0:
            return


@inlined
def read_marks(planes: Words, totals: NDArray[np.int64]) -> None:
    """Totals of all 32 bits; the planes are cleared."""
    totals[:] = 0
    for p in range(PLANES):
        plane = planes[p * LANES : (p + 1) * LANES]
        held = np.uint32(0)
        for j in range(LANES):
            held = np.uint32(held | plane[j])
        if held == 0:
            continue
        for j in range(LANES):
            word = plane[j]
            for k in range(32):
                totals[k] += np.int64(np.uint32(word >> np.uint32(k)) & np.uint32(1)) << p
        plane[:] = 0
