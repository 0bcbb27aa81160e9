"""The histograms of `metrics.histograms` and the ulps of `metrics.ulps`, computed on a device."""

from __future__ import annotations

import numpy as np
import torch

from core.stats import Histogram, IntArray
from metrics.formats import Format
from metrics.torch_engine.wholes import apart

_LOWEST_EXPONENT = -1074
_PRECISION, _BIAS = 53, 1023
_STEPS = 16  # bins to the octave
_JOINT_WIDTH = 4096
_INFINITE = 2099  # exponent code
_MAGNITUDE = (1 << 63) - 1
_DENSE = 1 << 20
_FULL = 2.0**63


def tally(keys: torch.Tensor) -> Histogram:
    """Counts of each distinct key, brought to the host."""
    if not keys.numel():
        return Histogram.empty()
    low, high = (int(end) for end in torch.aminmax(keys))
    if high - low < _DENSE:
        table = torch.bincount(keys - low)
        bins = table.nonzero().ravel()
        return Histogram(_host(bins + low), _host(table[bins]))
    bins, counts = torch.unique(keys, return_counts=True)
    return Histogram(_host(bins), _host(counts))


def _host(tensor: torch.Tensor) -> IntArray:
    return np.asarray(tensor.cpu().numpy(), np.int64)


def value_histogram(values: torch.Tensor) -> Histogram:
    """Finite values by sign, exponent and top four bits of the significand."""
    significand, exponent = torch.frexp(values.abs())
    octave = exponent.long() - 1 - _LOWEST_EXPONENT
    step = torch.floor(significand * (2 * _STEPS)).long() - _STEPS
    bins = octave * _STEPS + step + 1
    return tally(torch.where(values == 0, 0, torch.where(values < 0, -bins, bins)))


def joint_histogram(reference: torch.Tensor, error: torch.Tensor) -> Histogram:
    """Elements by floor log2 of |reference| and of |error|."""
    return tally(_exponents(reference) * _JOINT_WIDTH + _exponents(error))


def _exponents(values: torch.Tensor) -> torch.Tensor:
    codes = torch.frexp(values)[1].long() - _LOWEST_EXPONENT
    return torch.where(values == 0, 0, torch.where(values.isinf(), _INFINITE, codes))


def significand_histogram(values: torch.Tensor) -> Histogram:
    """Finite values by the number of significand bits they need."""
    whole = (torch.frexp(values.abs())[0] * 2.0**_PRECISION).long()
    lowest = torch.frexp((whole & -whole).to(torch.float64))[1].long() - 1
    return tally(torch.where(whole == 0, 0, _PRECISION - lowest))


def ulp_histogram(ulps: torch.Tensor) -> Histogram:
    """Ulp errors, unsigned patterns, in log2 bins."""
    below = ulps - 1
    spread = (below & ~(below >> 1)).to(torch.float64)  # rounds no power of two upwards
    length = torch.where(below < 0, 64, torch.frexp(spread)[1].long())
    return tally(torch.where(ulps == 0, 0, length + 1))


def ulp_distance(a: torch.Tensor, b: torch.Tensor, number_format: Format) -> torch.Tensor:
    """Ulp errors of finite values as unsigned patterns; for integer formats |b - a|, to 2^63."""
    if number_format.kind in ("int", "bool"):
        whole = torch.round((b - a).abs())
        return torch.where(whole < _FULL, whole, 0.0).long() | torch.where(
            whole < _FULL, 0, -(1 << 63)
        )
    return apart(_ordinals(a, number_format), _ordinals(b, number_format))


def _ordinals(values: torch.Tensor, number_format: Format) -> torch.Tensor:
    """Places among the format's values after rounding to nearest even, as in `metrics.ulps`."""
    drop = _PRECISION - number_format.precision
    magnitude = values.view(torch.int64) & _MAGNITUDE
    place = magnitude
    if drop:
        even = (magnitude >> drop) & 1
        place = (magnitude + (even + ((1 << (drop - 1)) - 1))) >> drop
    place = place - ((number_format.min_exponent + _BIAS - 1) << (number_format.precision - 1))
    small = values.abs() < number_format.smallest_normal
    if drop:
        step = number_format.min_exponent - number_format.precision + 1
        fixed = torch.round(torch.where(small, values.abs(), 0.0) * 2.0**-step)
        place = torch.where(small, fixed.long(), place)
    return torch.where(values < 0, -place, place)
