"""Statistics of one stretch of a pair on a device, as `PairStats`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from core.comparison import Tolerance
from core.moments import Moments
from core.stats import AxisProfile, Extreme, Histogram, PairStats, SideStats
from metrics.formats import Format
from metrics.histograms import value_bins
from metrics.torch_engine import bins
from metrics.torch_engine.axes import axis_profiles
from metrics.torch_engine.sides import Side
from metrics.torch_engine.sums import Scaled, largest, moments, pair_moments, scaled
from metrics.torch_engine.wholes import distance, floats, is_less, sortable

_HALF_RANGE = 2.0**1023  # from here on the difference of two float64 may overflow


@dataclass(frozen=True, slots=True)
class About:
    """What is known of a pair: tolerance, formats of the pair and of both sides, shape."""

    tolerance: Tolerance
    formats: tuple[Format, Format, Format]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Finite:
    """The elements finite on both sides, in float64."""

    where: torch.Tensor  # mask over the stretch
    reference: torch.Tensor
    candidate: torch.Tensor
    error: Scaled  # halved if it might overflow otherwise
    abs_error: torch.Tensor  # in units of the data; infinite where float64 ends
    ulps: torch.Tensor  # unsigned patterns
    equal: int


def stretch_stats(a: Side, b: Side, about: About, start: int) -> PairStats:
    """Statistics of two sides whose first element is number `start` of the tensor."""
    both = _finite(a, b, about.formats[0])
    count, finite = a.values.numel(), both.abs_error.numel()
    nan_both = _number(a.values.isnan() & b.values.isnan())
    inf_equal = _number(a.values.isinf() & (a.values == b.values))
    unmatched = count - finite - nan_both - inf_equal
    x, y, e = scaled(both.reference), scaled(both.candidate), both.error
    shared = pair_moments(x, y, e)
    extreme = partial(_extreme, both=both, start=start)
    return PairStats(
        dtype=about.formats[0].name,
        count=count,
        finite=finite,
        nan_both=nan_both,
        inf_equal=inf_equal,
        equal=both.equal + nan_both + inf_equal,
        sign_flips=_number(torch.sign(both.reference) * torch.sign(both.candidate) < 0),
        mismatches=_outside(both, about) + unmatched,
        moments=shared,
        max_abs_error=extreme(both.abs_error, values=both.abs_error),
        max_ulp=extreme(sortable(both.ulps), values=both.ulps),
        reference=_side(a, about.formats[1], shared.reference, finite),
        candidate=_side(b, about.formats[2], shared.candidate, finite),
        ulp=bins.ulp_histogram(both.ulps),
        joint=bins.joint_histogram(both.reference, both.abs_error),
        axes=_axes(both, x, about.shape, start),
    )


def _number(mask: torch.Tensor) -> int:
    return int(torch.count_nonzero(mask))


def _finite(a: Side, b: Side, number_format: Format) -> _Finite:
    where = a.values.isfinite() & b.values.isfinite()
    x, y = a.values[where], b.values[where]
    if a.wholes is not None and b.wholes is not None:
        ulps = distance(a.wholes, b.wholes)
        abs_error = floats(ulps, unsigned=True)
        error = torch.where(is_less(b.wholes, a.wholes), -abs_error, abs_error)
        return _Finite(where, x, y, scaled(error), abs_error, ulps, _number(ulps == 0))
    ulps, equal = bins.ulp_distance(x, y, number_format), _number(x == y)
    if max(largest(x), largest(y)) < _HALF_RANGE:
        return _Finite(where, x, y, scaled(y - x), (y - x).abs(), ulps, equal)
    halved = scaled(y / 2 - x / 2)
    error = Scaled(halved.values, halved.exponent + 1)
    return _Finite(where, x, y, error, (y - x).abs(), ulps, equal)


def _outside(both: _Finite, about: About) -> int:
    if about.formats[0].kind == "bool":
        return _number(both.ulps != 0)
    bound = both.reference.abs() * about.tolerance.rtol  # two roundings, as everywhere
    return _number(both.abs_error > bound + about.tolerance.atol)


def _extreme(keys: torch.Tensor, *, values: torch.Tensor, both: _Finite, start: int) -> Extreme:
    """The first of the largest."""
    if not keys.numel():
        return Extreme()
    at = int((keys == keys.max()).nonzero()[0])
    value = values[at].item()
    place = int(both.where.nonzero()[at])
    value = float(value % (1 << 64)) if isinstance(value, int) else value
    return Extreme(value, start + place, float(both.reference[at]), float(both.candidate[at]))


def _axes(
    both: _Finite, reference: Scaled, shape: tuple[int, ...], start: int
) -> tuple[AxisProfile, ...]:
    x, e, peaks = (
        torch.zeros(both.where.shape, dtype=torch.float64, device=both.where.device).masked_scatter(
            both.where, values
        )
        for values in (reference.values, both.error.values, both.abs_error)
    )
    error = Scaled(e, both.error.exponent)
    return axis_profiles(Scaled(x, reference.exponent), error, peaks, shape, start)


def _side(side: Side, number_format: Format, known: Moments, finite_on_both: int) -> SideStats:
    """One side's own statistics; its moments are known where all it has is finite on both."""
    finite = side.values[side.values.isfinite()]
    values = bins.value_histogram(finite)
    low, high = _bounds(finite)
    own = known if finite.numel() == finite_on_both else moments(scaled(finite))
    return SideStats(
        finite=finite.numel(),
        nan=_number(side.values.isnan()),
        positive_inf=_number(side.values == math.inf),
        negative_inf=_number(side.values == -math.inf),
        zero=_counted(values, 0, 0),
        subnormal=_subnormals(values, number_format),
        saturated=_saturated(side, finite, number_format, low, high),
        minimum=low,
        maximum=high,
        moments=own,
        values=values,
        significand=bins.significand_histogram(finite),
    )


def _bounds(finite: torch.Tensor) -> tuple[float, float]:
    """Minimum and maximum; a zero is +0, for which of two zeros is met depends on the device."""
    if not finite.numel():
        return math.inf, -math.inf
    low, high = torch.aminmax(finite)
    return float(low) + 0.0, float(high) + 0.0


def _counted(histogram: Histogram, low: int, high: int) -> int:
    magnitudes = np.abs(histogram.bins)
    return int(histogram.counts[(magnitudes >= low) & (magnitudes <= high)].sum())


def _subnormals(values: Histogram, number_format: Format) -> int:
    """Smallest normals are powers of two, so a bin edge: the histogram counts exactly."""
    if not number_format.smallest_normal:
        return 0
    first = int(value_bins(np.array([number_format.smallest_normal]))[0])
    return _counted(values, 1, first - 1)


def _saturated(
    side: Side, finite: torch.Tensor, number_format: Format, low: float, high: float
) -> int:
    top, bottom = number_format.largest, number_format.lowest
    if number_format.kind == "bool" or (high < top and low > bottom):
        return 0
    if side.wholes is None:
        return _number(finite >= top) + (_number(finite <= bottom) if bottom else 0)
    over, under = side.chunk >= top, side.chunk <= bottom  # rare, and not rounded to float64
    return int(np.count_nonzero(over)) + (int(np.count_nonzero(under)) if bottom else 0)
