"""What a tensor's error would be if the candidate had only been rounded to a format: no new pass.

From the reference's histograms alone: how many values lie in each sixteenth of an octave, and how
many significant bits the values need. A value that needs no more bits than a format has loses
nothing there, so a bf16 tensor is not said to lose what it never had. Within a bin values count as
spread evenly, and the bits needed as independent of the size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analysis.lab.schemes import SCHEMES, Scheme
from core.stats import FloatArray, PairStats, SideStats
from metrics.histograms import BINS_PER_OCTAVE, value_edges

SHOWN = ("float16", "bfloat16", "e4m3_tensor", "e5m2_tensor", "int8_tensor")
# Values tried in each bin: multiples of the golden ratio, which no format's steps line up with.
_POINTS = np.sort((np.arange(32) * 0.6180339887498949 + 0.5) % 1)
_OWN_BITS = 1 + int(math.log2(BINS_PER_OCTAVE))  # significant bits that a bin itself fixes
_FINE = 16  # values that need more bits than this count as spread evenly


@dataclass(frozen=True, slots=True)
class Lens:
    """What one format alone would cost: relative L2 error, and shares of the nonzero elements.

    `saturated`: beyond the format's range; `underflow`: rounded to zero. NaN for a tensor of zeros.
    """

    scheme: Scheme
    relative_l2: float
    saturated: float
    underflow: float


def lenses(stats: PairStats) -> tuple[Lens, ...]:
    """The reference's values seen through each format; empty when no value is finite."""
    side = stats.reference
    if not side.finite:
        return ()
    groups = [(values, weights) for values, weights in _samples(side) if values.size]
    return tuple(_lens(SCHEMES[name], groups, side.max_abs) for name in SHOWN)


def _lens(scheme: Scheme, groups: list[tuple[FloatArray, FloatArray]], peak: float) -> Lens:
    signal = noise = number = beyond = lost = 0.0
    for values, weights in groups:
        held = scheme.quantise(values[None], peak)[0]
        outside = ~np.isfinite(held) | (np.abs(values) > scheme.largest)
        error = np.where(outside, values, held - values)
        signal += float((weights * values**2).sum())
        noise += float((weights * error**2).sum())
        number += float(weights[values != 0].sum())
        beyond += float(weights[outside].sum())
        lost += float(weights[(values != 0) & (held == 0)].sum())
    if not number or not signal:
        return Lens(scheme, math.nan, math.nan, math.nan)
    return Lens(scheme, math.sqrt(noise / signal), beyond / number, lost / number)


def _samples(side: SideStats) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Values that stand for the tensor's, and how many elements each stands for.

    One group for each number of significant bits that values need.
    """
    kept = side.values.bins != 0
    low, high = value_edges(side.values.bins[kept])
    near, far = np.where(low >= 0, low, high), np.where(low >= 0, high, low)
    counts = side.values.counts[kept].astype(np.float64)
    bits = {int(b): int(n) for b, n in zip(side.significand.bins, side.significand.counts,
                                           strict=True) if b}  # fmt: skip
    total = sum(bits.values()) or 1
    fine = sum(n for b, n in bits.items() if b > _FINE)
    for need in range(1, _FINE + 1):
        share = bits.get(need, 0) / total
        if share:
            yield _needing(near, far, counts * share, need)
    if fine:
        yield _spread(near, far, counts * (fine / total), _POINTS)


def _needing(
    near: FloatArray, far: FloatArray, counts: FloatArray, need: int
) -> tuple[FloatArray, FloatArray]:
    """Values of each bin that need exactly so many bits: odd multiples of their last one."""
    if need <= _OWN_BITS:
        return near, counts
    places = 2 ** (need - _OWN_BITS - 1)  # such values in a bin
    chosen = np.unique(np.floor(places * _POINTS))
    return _spread(near, far, counts, (2 * chosen + 1) / (2 * places))


def _spread(
    near: FloatArray, far: FloatArray, counts: FloatArray, at: FloatArray
) -> tuple[FloatArray, FloatArray]:
    values = near[:, None] + (far - near)[:, None] * at
    return values.ravel(), np.repeat(counts / at.size, at.size)
