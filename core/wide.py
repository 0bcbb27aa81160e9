"""A float with an exponent of its own, so that sums of squares neither overflow nor vanish."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.records import maker_of

_LARGEST_EXPONENT = 1024  # of a float64, for a significand in [0.5, 1)


@dataclass(frozen=True, slots=True)
class Wide:
    """significand · 2^exponent with a significand in ±[0.5, 1), or zero; made by `Wide.of`.

    Carries float64's 53 bits and any exponent. `float(x)` is infinite or zero where float64 ends.
    """

    significand: float = 0.0
    exponent: int = 0

    @staticmethod
    def of(value: float, exponent: int = 0) -> Wide:
        """Value times 2^exponent."""
        significand, own = math.frexp(value)
        return _made(significand, own + exponent) if significand else _ZERO

    def __float__(self) -> float:
        if self.exponent > _LARGEST_EXPONENT:
            return math.copysign(math.inf, self.significand)
        return math.ldexp(self.significand, self.exponent)

    def __bool__(self) -> bool:
        return self.significand != 0

    def __neg__(self) -> Wide:
        return Wide(-self.significand, self.exponent)

    def __add__(self, other: Wide) -> Wide:
        if not self or not other:
            return other if other else self
        top = max(self.exponent, other.exponent)
        return Wide.of(
            math.ldexp(self.significand, self.exponent - top)
            + math.ldexp(other.significand, other.exponent - top),
            top,
        )

    def __sub__(self, other: Wide) -> Wide:
        return self + -other

    def __mul__(self, other: Wide | float) -> Wide:
        factor = other if isinstance(other, Wide) else Wide.of(other)
        return Wide.of(self.significand * factor.significand, self.exponent + factor.exponent)

    def __truediv__(self, other: Wide | float) -> Wide:
        divisor = other if isinstance(other, Wide) else Wide.of(other)
        return Wide.of(self.significand / divisor.significand, self.exponent - divisor.exponent)

    def __lt__(self, other: Wide) -> bool:
        return (self - other).significand < 0

    def sqrt(self) -> Wide:
        """Square root of a value that is not negative."""
        odd = self.exponent % 2
        return Wide.of(math.sqrt(math.ldexp(self.significand, odd)), (self.exponent - odd) // 2)


_made = maker_of(Wide)
_ZERO = Wide()
