"""How numbers are written, everywhere: pages, charts, reports, command line.

Every function takes a value and returns text. Undefined (NaN) is an en dash, never 0 and never
blank. Minus signs are true minus signs, thousands are grouped with a comma, as both languages do;
durations, ages, dates and percentages are written as the language spoken has them.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import numpy as np

from language import _, day, say

UNDEFINED = "–"
MINUS = "−"
_DIGITS = {"bfloat16": 4, "float8_e4m3fn": 3, "float8_e5m2": 2}  # ceil(1 + precision · log10 2)


def _minus(text: str) -> str:
    return text.replace("-", MINUS)


def _odd(value: float) -> str | None:
    """Text of NaN and the infinities; None for a finite value."""
    if math.isnan(value):
        return UNDEFINED
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    return None


def scientific(value: float, digits: int = 3) -> str:
    """`2.10e−5`: mantissa with `digits` significant digits, exponent without padding."""
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return _minus(f"{mantissa}e{int(exponent)}")


def error(value: float) -> str:
    """An error or a metric: 3 significant digits, scientific below 1e-3 and from 1e5.

    `0.186`, `2.10e−5`, `−3.28`; from 1000 the whole integer part is kept: `12,346`.
    """
    odd = _odd(value)
    if odd is not None:
        return odd
    if value == 0:
        return "0"
    size = float(f"{abs(value):.2e}")
    if size < 1e-3 or size >= 1e5:
        return scientific(value)
    return _minus(f"{value:,.{max(0, 2 - math.floor(math.log10(size)))}f}")


def times_floor(value: float) -> str:
    """A multiple of the rounding floor: `0.9×`, `3.4×`, `6,874×`; the head says "× floor"."""
    odd = _odd(value)
    if odd is not None:
        return odd if odd == UNDEFINED else f"{odd}×"
    if 0 < abs(value) < 0.05:
        return "< 0.1×"
    if abs(value) >= 1e5:
        return f"{scientific(value)}×"
    small = abs(round(value, 1)) < 10
    return _minus(f"{value:.1f}×" if value and small else f"{value:,.0f}×")


def cosine(distance: float) -> str:
    """Cosine from its distance 1 - cos: `0.98272`, and from 0.99999 on `1−cos 3.1e−7`.

    Taking the distance keeps the digits that subtracting from 1 would lose.
    """
    if math.isnan(distance):
        return UNDEFINED
    if distance == 0:
        return "1"
    if distance <= 1e-5:
        return f"1{MINUS}cos {scientific(distance, 2)}"
    return _minus(f"{1 - distance:.5f}")


def element(value: float | int | bool | complex, dtype: str) -> str:
    """One value of a tensor, with as many digits as identify it in its logical format."""
    if isinstance(value, complex):
        sign = MINUS if value.imag < 0 else "+"
        part = "float32" if dtype == "complex64" else "float64"
        return f"{element(value.real, part)} {sign} {element(abs(value.imag), part)}i"
    if isinstance(value, bool | int | np.bool_ | np.integer):
        return _minus(str(value))
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else f"{MINUS}inf"
    return _minus(_shortest(float(value), dtype))


def _shortest(value: float, dtype: str) -> str:
    if dtype in _DIGITS:
        return f"{value:.{_DIGITS[dtype]}g}"
    kind = {"float16": np.float16, "float32": np.float32}.get(dtype, np.float64)
    return str(kind(value)).removesuffix(".0")


def count(number: int) -> str:
    """`3,145,728`."""
    return _minus(f"{number:,}")


def size(nbytes: float) -> str:
    """Bytes in SI units with 3 digits: `3.04 GB`, `104 MB`, `512 B`."""
    if nbytes < 1000:
        return f"{nbytes:.0f} B"
    units = iter(("kB", "MB", "GB", "TB", "PB"))
    unit = next(units)
    nbytes /= 1000
    while nbytes >= 999.5 and unit != "PB":
        unit = next(units)
        nbytes /= 1000
    digits = 2 if nbytes < 9.995 else 1 if nbytes < 99.95 else 0
    return f"{nbytes:.{digits}f} {unit}"


def rate(nbytes_per_s: float) -> str:
    """`104 MB/s`."""
    return f"{size(nbytes_per_s)}/s"


def duration(seconds: float) -> str:
    """`0.4 s`, `11 s`, `2 min 5 s`, `3 h 12 min`."""
    if math.isnan(seconds):
        return UNDEFINED
    if seconds < 9.95:
        return _("{n} s", n=f"{seconds:.1f}")
    whole = round(seconds)
    if whole < 60:
        return _("{n} s", n=whole)
    if whole < 3600:
        return _("{m} min {s} s", m=whole // 60, s=whole % 60)
    return _("{h} h {m} min", h=whole // 3600, m=whole % 3600 // 60)


def ago(then: datetime, now: datetime) -> str:
    """Relative below two days (`2 min ago`, `yesterday`), then the date (`27 Nov 2024`)."""
    passed = now - then
    if passed < timedelta(minutes=1):
        return _("just now")
    if passed < timedelta(hours=1):
        return _("{n} min ago", n=passed // timedelta(minutes=1))
    if passed < timedelta(days=1):
        return _("{n} h ago", n=passed // timedelta(hours=1))
    if passed < timedelta(days=2):
        return _("yesterday")
    return day(then, year=then.year != now.year)


def share(part: float, whole: float) -> str:
    """`47 %`, `0.2 %`, `< 0.1 %`; 0 % and 100 % only when exact, undefined of nothing."""
    if not whole or math.isnan(part):
        return UNDEFINED
    percent = 100 * part / whole
    if part in (0, whole):
        return _("{n} %", n=f"{percent:.0f}")
    if percent < 0.1:
        return _("< 0.1 %")
    if percent > 99.9:
        return _("> 99.9 %")
    return _("{n} %", n=f"{percent:.{int(percent < 1 or percent > 99)}f}")


def shape(dims: tuple[int, ...]) -> str:
    """`1 × 8 × 384`; a 0-d tensor is `scalar`."""
    return " × ".join(map(str, dims)) or say("scalar")
