"""Facts about number formats: what one rounding costs, where subnormals begin, where range ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from core.errors import CompareError
from language import say

Kind = Literal["float", "int", "bool", "complex"]

_RMS_ROUNDING = 0.4247  # rms relative error of one rounding, in unit roundoffs: sqrt(0.1803)


@dataclass(frozen=True, slots=True)
class Format:
    """A number format by its logical name; a complex format has the facts of its real parts.

    `precision` counts significand bits with the hidden one; for integers the bits of a magnitude.
    `min_exponent` is log2 of the smallest normal. `lowest` and `largest` bound the finite values.
    """

    name: str
    kind: Kind
    precision: int
    min_exponent: int
    lowest: int | float
    largest: int | float
    storage_floor: float

    @property
    def unit_roundoff(self) -> float:
        """Largest relative error of one rounding to nearest, 2^-p; 0 for exact formats."""
        return 2.0**-self.precision if self.kind in ("float", "complex") else 0.0

    @property
    def smallest_normal(self) -> float:
        """Smallest positive value with full precision; 0 for integers, which have no subnormals."""
        return 2.0**self.min_exponent if self.kind in ("float", "complex") else 0.0


def _float(name: str, precision: int, min_exponent: int, largest: float) -> Format:
    """Storage floor: relative L2 error of rounding any smooth distribution to the format.

    A significand spread evenly in log2 gives 0.4247 u; measured on Gaussian, Student-t and outlier
    data: fp16 and tf32 2.07e-4, bf16 1.66e-3, e4m3 2.64e-2, e5m2 5.27e-2.
    """
    floor = _RMS_ROUNDING * 2.0**-precision
    return Format(name, "float", precision, min_exponent, -largest, largest, floor)


def _integer(name: str, bits: int, *, signed: bool, storage_floor: float = 0.0) -> Format:
    magnitude = bits - signed
    lowest = -(1 << magnitude) if signed else 0
    return Format(name, "int", magnitude, 0, lowest, (1 << magnitude) - 1, storage_floor)


def _complex(name: str, part: Format) -> Format:
    return Format(
        name,
        "complex",
        part.precision,
        part.min_exponent,
        part.lowest,
        part.largest,
        part.storage_floor,
    )


_FLOAT32 = _float("float32", 24, -126, (2 - 2.0**-23) * 2.0**127)
_FLOAT64 = _float("float64", 53, -1022, (2 - 2.0**-52) * 2.0**1023)

_ALL = (
    _FLOAT64,
    _FLOAT32,
    _float("tf32", 11, -126, (2 - 2.0**-10) * 2.0**127),
    _float("float16", 11, -14, 65504.0),
    _float("bfloat16", 8, -126, (2 - 2.0**-7) * 2.0**127),
    _float("float8_e4m3fn", 4, -6, 448.0),
    _float("float8_e4m3fnuz", 4, -7, 240.0),
    _float("float8_e5m2", 3, -14, 57344.0),
    _float("float8_e5m2fnuz", 3, -15, 57344.0),
    _float("float4_e2m1fn", 2, 0, 6.0),
    _integer("int8", 8, signed=True, storage_floor=1.08e-2),  # measured: Gaussian, one scale
    *(_integer(f"int{bits}", bits, signed=True) for bits in (16, 32, 64)),
    *(_integer(f"uint{bits}", bits, signed=False) for bits in (8, 16, 32, 64)),
    Format("bool", "bool", 1, 0, 0, 1, 0.0),
    _complex("complex64", _FLOAT32),
    _complex("complex128", _FLOAT64),
)

FORMATS: Mapping[str, Format] = {each.name: each for each in _ALL}

_KIND_RANK: Mapping[Kind, int] = {"complex": 0, "float": 0, "int": 1, "bool": 2}


def format_of(dtype: str) -> Format:
    """The format of a logical dtype such as `bfloat16`; CompareError for a name not known."""
    try:
        return FORMATS[dtype]
    except KeyError:
        known = ", ".join(FORMATS)
        raise CompareError(
            say("{dtype!r} is no number format we know.", dtype=dtype),
            say("Known: {known}.", known=known),
        ) from None


def kind(dtype: str) -> Kind:
    """Whether a logical dtype is `float`, `int`, `bool` or `complex`."""
    return format_of(dtype).kind


def real_of(dtype: str) -> str:
    """The logical dtype of the real and imaginary parts of a complex one; any other unchanged."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def coarser_of(a: str, b: str) -> str:
    """The one of two logical dtypes in whose units an error between them is counted.

    Floats count before integers and integers before bool; of one kind, the one with fewer
    significand bits, and of equally precise ones the narrower range.
    """

    def coarseness(dtype: str) -> tuple[int, int, float]:
        known = format_of(dtype)
        return _KIND_RANK[known.kind], known.precision, known.largest

    return min(a, b, key=coarseness)
