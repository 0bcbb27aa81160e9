"""Moments of a block of values: two passes, corrected, at any scale float64 can hold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from core.moments import Moments, PairMoments
from core.stats import FloatArray
from core.wide import Wide

_SAFE_EXPONENT = 400  # squares of values within 2^±400 sum up and stay normal for any length


class Scaled(NamedTuple):
    """Values times 2^-exponent; exponent 0 unless squares could overflow or vanish."""

    values: FloatArray
    exponent: int


class _Centred(NamedTuple):
    moments: Moments
    deviations: FloatArray  # from a first estimate of the mean
    rest: float  # mean of the deviations: what the estimate missed
    exponent: int


def scaled(values: FloatArray, largest: float) -> Scaled:
    """Values brought near 1 when the largest magnitude asks for it."""
    exponent = int(np.frexp(largest)[1])
    if largest == 0 or abs(exponent) <= _SAFE_EXPONENT:
        return Scaled(values, 0)
    return Scaled(np.ldexp(values, -exponent), exponent)


def moments(values: Scaled) -> Moments:
    """Count, mean and sum of squared deviations."""
    return _centred(values).moments


def pair_moments(reference: Scaled, candidate: Scaled, error: Scaled) -> PairMoments:
    """Moments and co-moments of a block of values finite on both sides."""
    if not reference.values.size:
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


def _abs_sum(scaled_values: Scaled) -> Wide:
    return Wide.of(float(np.abs(scaled_values.values).sum()), scaled_values.exponent)


def _centred(scaled_values: Scaled) -> _Centred:
    """The second pass corrects the mean; a constant comes out exact, with no deviation at all."""
    values, exponent = scaled_values
    count = values.size
    if not count:
        return _Centred(Moments(), values, 0.0, exponent)
    estimate = float(values.sum()) / count
    if values[0] == values[-1] and (values == values[0]).all():
        estimate = float(values[0])
    deviations = values - estimate
    rest = float(deviations.sum()) / count
    squares = float((deviations * deviations).sum()) - count * rest * rest
    own = Moments(
        count, Wide.of(estimate + rest, exponent), Wide.of(max(squares, 0.0), 2 * exponent)
    )
    return _Centred(own, deviations, rest, exponent)


def _co_moment(a: _Centred, b: _Centred) -> Wide:
    total = float((a.deviations * b.deviations).sum()) - a.deviations.size * a.rest * b.rest
    return Wide.of(total, a.exponent + b.exponent)
