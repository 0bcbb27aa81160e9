"""What a constant factor between two runs may mean: the ratio table."""

from __future__ import annotations

import math
from collections.abc import Iterator

# Half-widths within which a fitted slope counts as a table entry, when its error is smaller still.
_TOLERANCE = 2e-3


def meanings(slope: float, *, error: float = 0.0) -> tuple[str, ...]:
    """Names of the ratios that a slope equals, most telling first; empty when none.

    `error` is the slope's own standard error; entries within the wider of 3 of it and 0.2 % count,
    at most 2 %. Sources: published threads on attention scales, FNUZ formats, parallel sizes, loss
    scales, dropout and YaRN.
    """
    if not math.isfinite(slope) or slope == 0:
        return ()
    width = min(0.02, max(_TOLERANCE, 3 * error))
    near = sorted(
        (abs(math.log(abs(slope) / value)), name)
        for name, value in _table()
        if abs(math.log(abs(slope) / value)) < width
    )
    sign = "−" if slope < 0 else ""
    return tuple(dict.fromkeys(sign + name for _, name in near))


def whole(slope: float, *, tolerance: float = 0.02) -> int | None:
    """The integer that a slope is, None when it is none."""
    nearest = round(slope)
    return nearest if abs(slope - nearest) <= tolerance else None


def _table() -> Iterator[tuple[str, float]]:
    yield "2", 2.0
    yield "1/2", 0.5
    for size in (64, 80, 96, 128, 192, 256):
        yield f"√{size}", math.sqrt(size)
        yield f"1/√{size}", 1 / math.sqrt(size)
    yield "448/240", 448 / 240
    yield "240/448", 240 / 448
    for stretch in (4, 8, 16, 32, 64):
        yield f"0.1 ln {stretch} + 1", 0.1 * math.log(stretch) + 1
    for size in range(3, 65):
        yield f"{size}", float(size)
        yield f"1/{size}", 1 / size
    for power in range(8, 25):
        yield f"2^{power}", 2.0**power
        yield f"2^−{power}", 2.0**-power
    for percent in (1, 5, 10, 15, 20, 25, 30):
        yield f"1/(1 − {percent / 100:g})", 100 / (100 - percent)
