"""Bytes as they are stored to float32 or float64, a block at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.engine.halves import load_brain, load_half
from metrics.engine.jit import inlined

Bytes = NDArray[np.uint8]
Floats32 = NDArray[np.float32]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

F64, F32, F16, BF16, TABLE, I8, I16, I32, I64, U8, U16, U32, U64, BOOL = range(14)  # plan.KINDS


@inlined
def _copy32(source: Floats32, target: Floats32, count: int) -> None:
    for i in range(count):
        target[i] = source[i]


@inlined
def _looked_up(source: Bytes, table: Floats32, target: Floats32, count: int) -> None:
    for i in range(count):
        target[i] = table[source[i]]


@inlined
def load_narrow(
    raw: Bytes, kind: int, table: Floats32, at: int, count: int, target: Floats32
) -> None:
    """`count` elements from element `at` on as float32: exact for the kinds that come here."""
    if kind == F32:
        _copy32(raw[4 * at : 4 * (at + count)].view(np.float32), target, count)
    elif kind == BF16:
        load_brain(raw[2 * at : 2 * (at + count)], target, count)
    elif kind == F16:
        load_half(raw[2 * at : 2 * (at + count)], target, count)
    else:
        _looked_up(raw[at : at + count], table, target, count)


@inlined
def _numbers(source: Any, ints: Ints, target: Floats, count: int) -> None:
    for i in range(count):
        ints[i] = np.int64(source[i])
        target[i] = np.float64(source[i])


@inlined
def _flags(source: Bytes, ints: Ints, target: Floats, count: int) -> None:
    for i in range(count):
        ints[i] = np.int64(source[i] != 0)
        target[i] = np.float64(ints[i])


@inlined
def _integers(raw: Bytes, kind: int, at: int, count: int, target: Floats, ints: Ints) -> None:
    end = at + count
    if kind == I64:
        _numbers(raw[8 * at : 8 * end].view(np.int64), ints, target, count)
    elif kind == U64:
        _numbers(raw[8 * at : 8 * end].view(np.uint64), ints, target, count)
    elif kind == I32:
        _numbers(raw[4 * at : 4 * end].view(np.int32), ints, target, count)
    elif kind == U32:
        _numbers(raw[4 * at : 4 * end].view(np.uint32), ints, target, count)
    elif kind == I16:
        _numbers(raw[2 * at : 2 * end].view(np.int16), ints, target, count)
    elif kind == U16:
        _numbers(raw[2 * at : 2 * end].view(np.uint16), ints, target, count)
    elif kind == I8:
        _numbers(raw[at:end].view(np.int8), ints, target, count)
    elif kind == U8:
        _numbers(raw[at:end], ints, target, count)
    else:
        _flags(raw[at:end], ints, target, count)


@inlined
def load_wide(
    raw: Bytes,
    kind: int,
    table: Floats32,
    at: int,
    count: int,
    target: Floats,
    ints: Ints,
    narrow: Floats32,
) -> None:
    """`count` elements as float64, integers also as 64 bits."""
    if kind == F64:
        source = raw[8 * at : 8 * (at + count)].view(np.float64)
        for i in range(count):
            target[i] = source[i]
    elif kind >= I8:
        _integers(raw, kind, at, count, target, ints)
    else:
        load_narrow(raw, kind, table, at, count, narrow)
        for i in range(count):
            target[i] = np.float64(narrow[i])
