"""Rounding to narrow formats, and recognising which format values have been through."""

from __future__ import annotations

import math

import numpy as np

from core.runs import Array
from loaders.dtypes import numpy_type
from metrics.formats import format_of

# The formats that can be rounded to, besides tf32.
FORMATS = frozenset({"float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"})

# tf32 and float16 share 11 significand bits; only the range tells them apart.
NARROW = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
SIXTEEN_BIT = ("bfloat16", "float16")

_ONE_ROUNDING = 0.4247  # rms relative error of one rounding in unit roundoffs


def round_to(values: Array, dtype: str) -> Array:
    """Nearest values of a format, ties to even; beyond its range infinite (e4m3: NaN).

    `tf32` keeps float32's range with 11 significand bits; `tf32:rz` truncates to them.
    """
    if dtype == "float64":
        return values
    if dtype.startswith("tf32"):
        return _tf32(values, truncate=dtype.endswith(":rz"))
    with np.errstate(over="ignore", invalid="ignore"):
        single = np.asarray(values, np.float32)
        return single.astype(numpy_type(dtype)).astype(np.float64)


def _tf32(values: Array, *, truncate: bool) -> Array:
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.int64)
    if not truncate:
        bits = bits + 0xFFF + ((bits >> 13) & 1)
    kept = (bits & 0xFFFFE000).astype(np.uint32)
    return np.asarray(kept.view(np.float32).astype(np.float64))


def significand_bits(values: Array) -> int:
    """Significand bits, hidden one included, that 99.9 % of the non-zero values get by with.

    53 minus the trailing zero bits of the float64 pattern; 0 when no value is finite and non-zero.
    Values of a format with p bits have at most p; subnormals fewer.
    """
    flat = np.ravel(np.asarray(values, np.float64))
    flat = flat[np.isfinite(flat) & (flat != 0)]
    if flat.size == 0:
        return 0
    fraction, _ = np.frexp(np.abs(flat))
    pattern = np.ldexp(fraction, 53).astype(np.uint64)
    lowest = pattern ^ (pattern & (pattern - np.uint64(1)))
    used = 53 - np.log2(lowest.astype(np.float64))
    return int(np.ceil(np.quantile(used, 0.999, method="higher")))


def narrowest_format(values: Array, *, least: int = 24) -> str | None:
    """The narrowest of the 8- and 16-bit formats that holds all values exactly, None if none does.

    A false positive has probability 2^-(24 - p) per value, so fewer than `least` values that are
    not zero decide nothing. float16 wins over bfloat16 only where the latter does not hold them.
    """
    flat = np.ravel(values)
    flat = flat[np.isfinite(flat) & (flat != 0)]
    if flat.size < least:
        return None
    for dtype in sorted(NARROW, key=lambda name: format_of(name).precision):
        if np.array_equal(round_to(flat, dtype), flat):
            return dtype
    return None


def output_bits(error: Array, expected: Array) -> float:
    """Significand bits p of the output format that would leave this error: -log2(rel / 0.4247)."""
    return _bits(_rms(error), _ONE_ROUNDING * _rms(expected))


def operand_bits(error: Array, energy: Array) -> float:
    """Bits of two rounded operands; `energy` = sum over K of x²w², elementwise like `error`."""
    return _bits(_rms(error), _ONE_ROUNDING * math.sqrt(2) * _rms(np.sqrt(energy)))


def accumulator_bits(error: Array, energy: Array, length: int, block: int = 1) -> float:
    """Bits of an accumulator over `length` terms rounded every `block` terms.

    Measured for K from 256 to 4096: bfloat16 gives 7.9 to 8.0, fp32 23.8 to 24.7; operand rounding
    read this way grows with K instead of standing still.
    """
    size = _ONE_ROUNDING * math.sqrt(length / (2 * block)) * _rms(np.sqrt(energy))
    return _bits(_rms(error), size)


def _bits(error: float, unit: float) -> float:
    return -math.log2(error / unit) if error > 0 and unit > 0 else math.inf


def _rms(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
