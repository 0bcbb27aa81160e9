"""How a pair is worked off: storage kinds, formats, shape and tolerance as arrays for kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.comparison import Tolerance
from metrics.engine import layout as at
from metrics.engine.narrow import TINY_ROWS
from metrics.engine.narrow_lanes import JOINT_FIRST, JOINT_WIDTH
from metrics.engine.ulp_lanes import KNOWN
from metrics.formats import Format, format_of
from metrics.histograms import value_bins

LONGEST_AXIS = 65_536

F64, F32, F16, BF16, TABLE, I8, I16, I32, I64, U8, U16, U32, U64, BOOL = range(14)

_KINDS = {
    "float64": F64,
    "float32": F32,
    "float16": F16,
    "bfloat16": BF16,
    "bool": BOOL,
    "int8": I8,
    "int16": I16,
    "int32": I32,
    "int64": I64,
    "uint8": U8,
    "uint16": U16,
    "uint32": U32,
    "uint64": U64,
}
_NARROW_FORM = (
    4096,
    15153,
    23,
    14801,
    JOINT_WIDTH,
    925,
    TINY_ROWS,
    0,
    JOINT_FIRST,
)  # see metrics.engine.layout
_WIDE_FORM = (32768, 817, 52, 1, 2112, 0, 0, 52, 0)
NARROW = (F32, F16, BF16, TABLE)
_PARTS = {"complex64": np.dtype(np.float32), "complex128": np.dtype(np.float64)}
_NO_TABLE = np.zeros(256, np.float32)


@dataclass(frozen=True, slots=True)
class Storage:
    """How one side lies in memory: the type of its real parts, its kind, a table for 8 bits."""

    dtype: np.dtype[Any]
    kind: int
    table: NDArray[np.float32]


@lru_cache
def storage_of(dtype: np.dtype[Any]) -> Storage:
    """The storage of a chunk; complex numbers are two parts each."""
    part = _PARTS.get(dtype.name, dtype).newbyteorder("=")
    kind = _KINDS.get(part.name)
    if kind is not None:
        return Storage(part, kind, _NO_TABLE)
    if part.itemsize != 1:
        raise TypeError(f"no kernel reads {dtype}")
    with np.errstate(invalid="ignore"):
        return Storage(part, TABLE, np.arange(256, dtype=np.uint8).view(part).astype(np.float32))


@dataclass(frozen=True, slots=True)
class Plan:
    """What kernels are told about a pair."""

    dtype: str
    parts: int  # 2 for complex numbers
    sides: tuple[Storage, Storage]
    narrow: bool
    terms: NDArray[np.float64]
    orders: NDArray[np.int64]
    form: NDArray[np.int64]
    shape: NDArray[np.int64]  # with the parts of complex numbers as a last axis
    offsets: NDArray[np.int64]
    lengths: tuple[int, ...]  # of the profiles of the tensor's own axes; 0 for one not kept


@lru_cache(maxsize=256)
def plan(
    stored: tuple[np.dtype[Any], np.dtype[Any]],
    tolerance: Tolerance,
    dtype: str,
    dtypes: tuple[str, str],
    shape: tuple[int, ...],
) -> Plan:
    """The plan of a pair; kept, for dumps repeat the same few shapes."""
    complex_ = any(each.kind == "c" for each in stored)
    if complex_:
        stored = tuple(each if each.kind == "c" else np.dtype(np.complex128) for each in stored)  # type: ignore[assignment]
    sides = storage_of(stored[0]), storage_of(stored[1])
    formats = format_of(dtype), format_of(dtypes[0]), format_of(dtypes[1])
    narrow = all(side.kind in NARROW for side in sides) and _fits(formats[0])
    lengths = tuple(n if n <= LONGEST_AXIS else 0 for n in shape)
    own_shape = (*shape, 2) if complex_ else shape
    return Plan(
        dtype,
        1 + complex_,
        sides,
        narrow,
        _terms(tolerance, formats[1:]),
        _orders(sides, formats),
        _form(formats[1:], narrow),
        np.array(own_shape, np.int64),
        _offsets(shape, lengths, complex_),
        lengths,
    )


def _fits(coarser: Format) -> bool:
    grid = coarser.precision, coarser.min_exponent
    return coarser.kind in ("float", "complex") and grid in KNOWN


def _offsets(shape: tuple[int, ...], lengths: tuple[int, ...], complex_: bool) -> NDArray[np.int64]:
    ends = np.cumsum((0, *lengths))
    kept = [int(ends[i]) if lengths[i] == n else -1 for i, n in enumerate(shape)]
    return np.array([*kept, -1] if complex_ else kept, np.int64)


def _terms(tolerance: Tolerance, sides: tuple[Format, ...]) -> NDArray[np.float64]:
    bounds = [float(bound) for side in sides for bound in (side.largest, side.lowest)]
    return np.array([tolerance.atol, tolerance.rtol, *bounds])


def _orders(sides: tuple[Storage, Storage], formats: tuple[Format, ...]) -> NDArray[np.int64]:
    orders = np.zeros(at.ORDERS, np.int64)
    orders[at.KIND_A], orders[at.KIND_B] = sides[0].kind, sides[1].kind
    grid = formats[0].precision, formats[0].min_exponent
    orders[at.ULP_FORM] = KNOWN.index(grid) if grid in KNOWN else 0
    orders[at.COARSER] = {"int": at.INT, "bool": at.BOOLEAN}.get(formats[0].kind, at.FLOAT)
    orders[at.EXACT] = all(side.kind >= I8 for side in sides)
    orders[at.PRECISION], orders[at.MIN_EXPONENT] = formats[0].precision, formats[0].min_exponent
    for i, each in enumerate(formats[1:]):
        orders[at.SATURATES_A + i] = 0 if each.kind == "bool" else 2 if each.lowest else 1
        for k, bound in enumerate((each.largest, each.lowest)):
            if each.kind == "int":  # as 64 bits; of a sign that the container lacks: not used
                orders[at.INT_HIGH_A + 2 * i + k] = np.array(bound % (1 << 64), np.uint64).view(
                    np.int64
                )
        if sides[i].kind in (I64, U64) and each.kind == "int":
            reachable = sides[i].kind == U64 or each.largest < 1 << 63
            orders[at.SATURATES_A + i] += 2 if reachable else 4
    return orders


def _form(sides: tuple[Format, ...], narrow: bool) -> NDArray[np.int64]:
    form = np.zeros(at.FORM, np.int64)
    coding = _NARROW_FORM if narrow else _WIDE_FORM
    form[: len(coding)] = coding
    for i, each in enumerate(sides):
        if each.smallest_normal:
            form[at.NORMAL_A + i] = int(value_bins(np.array([each.smallest_normal]))[0])
    return form
