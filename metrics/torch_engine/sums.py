"""Moments of a stretch on a device: two passes, corrected, at any scale float64 can hold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from core.moments import Moments, PairMoments
from core.wide import Wide

_SAFE_EXPONENT = 400  # squares of values within 2^±400 sum up and stay normal for any length


class Scaled(NamedTuple):
    """Values times 2^-exponent; exponent 0 unless squares could overflow or vanish."""

    values: torch.Tensor
    exponent: int


class _Centred(NamedTuple):
    moments: Moments
    deviations: torch.Tensor  # from a first estimate of the mean
    rest: float  # mean of the deviations: what the estimate missed
    exponent: int


def largest(values: torch.Tensor) -> float:
    """Largest magnitude, 0 when there is none."""
    return float(values.abs().max()) if values.numel() else 0.0


def scaled(values: torch.Tensor) -> Scaled:
    """Values brought near 1 when the largest magnitude asks for it."""
    top = largest(values)
    exponent = int(np.frexp(top)[1])
    if top == 0 or abs(exponent) <= _SAFE_EXPONENT:
        return Scaled(values, 0)
    half = exponent // 2  # 2^-1074 has no inverse
    return Scaled(values * 2.0**-half * 2.0 ** (half - exponent), exponent)


def moments(values: Scaled) -> Moments:
    """Count, mean and sum of squared deviations."""
    return _centred(values).moments


def pair_moments(reference: Scaled, candidate: Scaled, error: Scaled) -> PairMoments:
    """Moments and co-moments of values finite on both sides."""
    if not reference.values.numel():
        return PairMoments()
    a, b, e = _centred(reference), _centred(candidate), _centred(error)
    return PairMoments(
        a.moments,
        b.moments,
        e.moments,
        _co_moment(a, b),
        _co_moment(a, e),
        _dot(reference, candidate),
        _dot(reference, error),
        _abs_sum(reference),
        _abs_sum(error),
    )


def _dot(a: Scaled, b: Scaled) -> Wide:
    return Wide.of(float((a.values * b.values).sum()), a.exponent + b.exponent)


def _abs_sum(values: Scaled) -> Wide:
    return Wide.of(float(values.values.abs().sum()), values.exponent)


def _centred(scaled_values: Scaled) -> _Centred:
    """The second pass corrects the mean; a constant comes out exact, with no deviation at all."""
    values, exponent = scaled_values
    count = values.numel()
    if not count:
        return _Centred(Moments(), values, 0.0, exponent)
    is_constant = bool((values == values[0]).all())
    estimate = float(values[0]) if is_constant else float(values.sum()) / count
    deviations = values - estimate
    rest = float(deviations.sum()) / count
    squares = float((deviations * deviations).sum()) - count * rest * rest
    mean, m2 = Wide.of(estimate + rest, exponent), Wide.of(max(squares, 0.0), 2 * exponent)
    return _Centred(Moments(count, mean, m2), deviations, rest, exponent)


def _co_moment(a: _Centred, b: _Centred) -> Wide:
    total = float((a.deviations * b.deviations).sum())
    return Wide.of(total - a.deviations.numel() * a.rest * b.rest, a.exponent + b.exponent)
