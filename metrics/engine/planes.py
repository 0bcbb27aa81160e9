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

from metrics.engine.jit import inlined, intrinsic
from metrics.engine.lanes import I32, I64, LANES, Lanes, index
from metrics.engine.layout import BLOCK
from metrics.engine.steps import Memory, Variable, memories, repeated

PLANES = 48
GROUP = 16 * LANES  # words that are added up before a carry is written
GROUPS = BLOCK // GROUP
_DIGITS = 4  # log2 of the vectors of a group
ROOM = GROUPS * LANES  # of the carries of a block
CARRIES = ROOM + _DIGITS * LANES  # and of its first planes
_RIPPLE = _DIGITS + GROUPS.bit_length() - 1  # plane of a block's last carry

Words = NDArray[np.uint32]


def _added(a: Lanes, b: Lanes, c: Lanes) -> tuple[Lanes, Lanes]:
    """Sum and carry."""
    apart = a ^ b
    return apart ^ c, (a & b) | (apart & c)


def _plus(held: Lanes, words: list[Lanes]) -> tuple[Lanes, list[Lanes]]:
    """Words added to one plane, and half as many to carry."""
    carries = []
    for one, other in zip(words[::2], words[1::2], strict=True):
        held, carry = _added(held, one, other)
        carries.append(carry)
    return held, carries


class Counter:
    """Generates the loop of a block: counts sixteen vectors at a time.

    What it finds lies in `carries` until `close_block` adds it to the planes or nobody does.
    """

    def __init__(self, builder: Any, planes: Memory, carries: Memory) -> None:
        self._carries = carries
        self._digits = [
            Variable(builder, planes.load(index(p * LANES)).value) for p in range(_DIGITS)
        ]

    def add(self, words: list[Lanes], group: Any) -> None:
        """The marks of one group."""
        for digit in self._digits:
            held, words = _plus(digit.lanes(), words)
            digit.set(held)
        self._carries.store(words[0].builder.mul(group, index(LANES)), words[0])

    def finish(self) -> None:
        """After the loop: leave the first planes beside the carries."""
        for p, digit in enumerate(self._digits):
            self._carries.store(index(ROOM + p * LANES), digit.lanes())


@intrinsic
def _fold_carries(typing_context: Any, carries: Any, planes: Any) -> Any:  # noqa: ARG001
    """Add a block to the planes up to its last carry, which is left in front."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        taken, held = memories(context, builder, signature, arguments, (I32, I32))
        for p in range(_DIGITS):
            held.store(index(p * LANES), taken.load(index(ROOM + p * LANES)))
        words = [taken.load(index(g * LANES)) for g in range(GROUPS)]
        for p in range(_DIGITS, _RIPPLE):
            plane, words = _plus(held.load(index(p * LANES)), words)
            held.store(index(p * LANES), plane)
        taken.store(index(0), words[0])
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


@intrinsic
def _plane_totals(typing_context: Any, planes: Any, totals: Any, plane: Any) -> Any:  # noqa: ARG001
    """Add what one plane says of each bit; whether it says anything."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held, out = memories(context, builder, signature, arguments, (I32, I64))
        plane = arguments[-1]
        words = held.load(builder.mul(plane, index(LANES)))
        one = Lanes.of(builder, I32, 1)
        some = builder.icmp_unsigned("!=", words.reduced("umax"), ir.Constant(I32, 0))
        with builder.if_then(some), repeated(builder, index(32)) as bit:
            shift = Lanes.spread(builder, builder.trunc(bit, I32))
            found = (words & (one << shift)).is_not(0).how_many()
            cell = out.cell(bit)
            builder.store(builder.add(builder.load(cell), builder.shl(found, plane)), cell)
        return some

    return types.boolean(planes, totals, plane), generate


@inlined
def read_marks(planes: Words, totals: NDArray[np.int64]) -> None:
    """Totals of all 32 bits; the planes are cleared."""
    totals[:] = 0
    for p in range(PLANES):
        if _plane_totals(planes, totals, p):
            planes[p * LANES : (p + 1) * LANES] = 0
