"""The floor of one output, elementwise: what honest arithmetic may put between it and float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.replay.registry import Answer
from core.runs import Array
from metrics import formats

# Mean squared relative error of a matrix engine's accumulators where operands are 16-bit or
# narrower: uniform within 2^-12. Hopper's FP8 path keeps about 14 bits, tensor cores truncate
# while aligning (Fasi et al. 2021; DeepSeek-V3 2024).
_ACCUMULATOR = 2.0**-24 / 3
_NARROW = frozenset({"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """Formats of one call: of the output as stored, of the widest input, of matrix operands.

    `operands` is the format that both factors of a matrix product are declared or found to be
    rounded to, `""` for none; `narrow` says whether operands are 16-bit or less.
    """

    storage: str
    narrow: bool = False
    operands: str = ""


def is_narrow(dtype: str) -> bool:
    """Whether a format is a float of 16 bits or less."""
    return dtype in _NARROW


def ulp(x: Array, dtype: str) -> Array:
    """Distance of neighbouring values of a format at |x|; that of the subnormals near 0."""
    fmt = formats.format_of(dtype)
    _, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    exponent = np.where(x == 0, fmt.min_exponent, np.maximum(exponent - 1, fmt.min_exponent))
    return np.asarray(np.ldexp(1.0, exponent - fmt.precision + 1))


def variance(answer: Answer, arithmetic: Arithmetic) -> Array:
    """Variance of an honest error at each element, in squared units of the tensor.

    ulp² / 12 for the rounding of the result, plus the function's own terms, each times the squared
    unit roundoff of its format. Zero for exact and integer outputs without steps.
    """
    shape = np.shape(answer.value)
    total = np.zeros(shape) + answer.steps
    real = formats.real_of(arithmetic.storage)
    if answer.exact or formats.kind(real) != "float":
        return total
    with np.errstate(all="ignore"):
        total = total + ulp(answer.value, real) ** 2 / 12
        wide = "float64" if real == "float64" else "float32"
        total = total + formats.format_of(wide).unit_roundoff ** 2 * answer.compute
        total = total + formats.format_of(real).unit_roundoff ** 2 * answer.storage
        if arithmetic.operands:
            total = total + formats.format_of(arithmetic.operands).unit_roundoff ** 2 * (
                answer.operands
            )
        if arithmetic.narrow:
            total = total + _ACCUMULATOR * answer.accumulators
    return total


def unit_of_arithmetic(dtype: str) -> float:
    """Unit roundoff of the arithmetic behind an output: float32, or float64 for such an output."""
    real = formats.real_of(dtype)
    return formats.format_of("float64" if real == "float64" else "float32").unit_roundoff


def common_variance(answer: Answer, dtype: str) -> float:
    """Relative variance of the error that all elements of one row may share."""
    storage = formats.format_of(formats.real_of(dtype)).unit_roundoff
    compute = unit_of_arithmetic(dtype)
    return compute**2 * answer.common_compute + storage**2 * answer.common_storage
