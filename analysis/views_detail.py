"""Curves of a pair beyond the plain histogram: cumulative, quantile, error, error by magnitude."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.stats import FloatArray, Histogram, PairStats
from metrics.histograms import (
    BINS_PER_OCTAVE,
    coarse_value_bins,
    joint_exponents,
    quantile,
    value_edges,
)

BIN_WIDTH = 1 / BINS_PER_OCTAVE  # of a value, at most: how exactly the histogram knows it
_TAIL = 0.001
_POINTS = 400
_SHARES = np.concatenate([
    [1e-4, 3e-4, 1e-3, 3e-3], np.linspace(0.01, 0.99, 99), [0.997, 0.999, 0.9997, 0.9999]
])  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Octaves:
    """Elements by floor log2 of a magnitude: `exponent` (n,) ascending, shares of each side (n,).

    `zero` are the shares that are zero and so have no exponent.
    """

    exponent: NDArray[np.int64]
    reference: FloatArray
    candidate: FloatArray
    zero: tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Cumulative:
    """Share of the finite elements at or below a value: (value, share) of each side."""

    reference: tuple[FloatArray, FloatArray]
    candidate: tuple[FloatArray, FloatArray]
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Quantiles:
    """Value of each side below which a share of its elements lies, (n,)."""

    share: FloatArray
    reference: FloatArray
    candidate: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class ErrorOctaves:
    """Elements by floor log2 |error|: `exponent` (n,) with none left out, counts (n,)."""

    exponent: NDArray[np.int64]
    counts: NDArray[np.int64]
    zero: int
    total: int


@dataclass(frozen=True, slots=True, eq=False)
class Density:
    """Elements by floor log2 of |reference| (columns) and of |error| (rows), (rows, columns).

    Elements where either is zero are counted apart.
    """

    size: NDArray[np.int64]
    error: NDArray[np.int64]
    counts: NDArray[np.int64]
    no_error: int
    no_size: int


def octaves(stats: PairStats) -> Octaves | None:
    """Both sides by exponent; None when no value is finite."""
    sides = stats.reference.values, stats.candidate.values
    if not any(side.total for side in sides):
        return None
    found = [_by_exponent(side) for side in sides]
    held = np.concatenate([exponent for exponent, _ in found])
    if not held.size:
        return Octaves(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), (1.0, 1.0))
    exponent = np.arange(held.min(), held.max() + 1)
    shares = []
    for side, (at, counts) in zip(sides, found, strict=True):
        share = np.zeros(exponent.size)
        share[at - exponent[0]] = counts / max(1, side.total)
        shares.append(share)
    zero = [1.0 - float(s.sum()) if side.total else 0.0 for s, side in zip(shares, sides,
                                                                          strict=True)]  # fmt: skip
    return Octaves(exponent, shares[0], shares[1], (max(0.0, zero[0]), max(0.0, zero[1])))


def cumulative(stats: PairStats) -> Cumulative | None:
    """Both cumulative distributions over the middle 99.8 % of the values; None without any."""
    sides = stats.reference, stats.candidate
    held = [side for side in sides if side.finite]
    if not held:
        return None
    low = min(quantile(side, _TAIL) for side in held)
    high = max(quantile(side, 1 - _TAIL) for side in held)
    curves = [_rising(side.values) for side in sides]
    return Cumulative(curves[0], curves[1], low, high)


def quantiles(stats: PairStats) -> Quantiles | None:
    """Quantiles of both sides; None when one has no finite value."""
    if not stats.reference.finite or not stats.candidate.finite:
        return None
    a, b = (
        np.array([quantile(side, float(share)) for share in _SHARES])
        for side in (stats.reference, stats.candidate)
    )
    return Quantiles(_SHARES, a, b)


def error_octaves(stats: PairStats) -> ErrorOctaves | None:
    """The error's distribution by exponent; None when no element is finite on both sides."""
    if not stats.joint.total:
        return None
    _, error = joint_exponents(stats.joint.bins)
    none = np.isneginf(error)
    zero = int(stats.joint.counts[none].sum())
    at = error[~none].astype(np.int64)
    if not at.size:
        return ErrorOctaves(np.zeros(0, np.int64), np.zeros(0, np.int64), zero, zero)
    exponent = np.arange(at.min(), at.max() + 1)
    counts = np.zeros(exponent.size, np.int64)
    np.add.at(counts, at - exponent[0], stats.joint.counts[~none])
    return ErrorOctaves(exponent, counts, zero, stats.joint.total)


def density(stats: PairStats) -> Density | None:
    """Error against magnitude; None when no element has both."""
    size, error = joint_exponents(stats.joint.bins)
    no_size, no_error = np.isneginf(size), np.isneginf(error)
    both = ~no_size & ~no_error
    if not both.any():
        return None
    columns, rows = size[both].astype(np.int64), error[both].astype(np.int64)
    across = np.arange(columns.min(), columns.max() + 1)
    down = np.arange(rows.min(), rows.max() + 1)
    counts = np.zeros((down.size, across.size), np.int64)
    counts[rows - down[0], columns - across[0]] = stats.joint.counts[both]
    none = int(stats.joint.counts[no_error].sum())
    return Density(across, down, counts, none, int(stats.joint.counts[no_size & ~no_error].sum()))


def _by_exponent(values: Histogram) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Exponents ascending and how many values have each, whatever their sign."""
    kept = values.bins != 0
    octave = np.abs(coarse_value_bins(values.bins[kept], per_octave=1))
    code, place = np.unique(octave, return_inverse=True)
    counts = np.zeros(code.size, np.int64)
    np.add.at(counts, place, values.counts[kept])
    low, _ = value_edges((code - 1) * BINS_PER_OCTAVE + 1)
    return np.floor(np.log2(low)).astype(np.int64), counts


def _rising(values: Histogram) -> tuple[FloatArray, FloatArray]:
    if not values.total:
        return np.zeros(0), np.zeros(0)
    _, high = value_edges(values.bins)
    share = np.cumsum(values.counts) / values.total
    every = -(-high.size // _POINTS)
    kept = np.unique(np.append(np.arange(0, high.size, every), high.size - 1))
    return high[kept], share[kept]
