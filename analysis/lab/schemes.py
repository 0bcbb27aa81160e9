"""Formats with their scaling: how values are laid on a coarser grid and read back.

A scheme takes a float64 array whose last axis is the reduction axis (the one a matrix product sums
over), the largest magnitude of the whole tensor (the array may be a sample of its rows), and
returns what a device would read back. Scales are chosen as real kernels do: by the largest
magnitude of the group that shares one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from language import say

Array = NDArray[Any]
Grid = Callable[[Array], Array]
Quantiser = Callable[[Array, float], Array]

_E4M3_MAX, _E5M2_MAX, _E2M1_MAX = 448.0, 57344.0, 6.0
_MX_BLOCK, _NVFP4_BLOCK, _GROUP = 32, 16, 128


@dataclass(frozen=True, slots=True)
class Scheme:
    """One way to store a tensor.

    `bits` counts the scales too, per element. `ideal_db` is the SQNR that Gaussian data reaches
    (measured with this code on 2^20 values): a tensor far below it has outliers, or values outside
    the format's range. `largest` bounds what is representable without a scale (inf with one).
    """

    name: str
    label: str
    bits: float
    ideal_db: float
    largest: float
    quantise: Quantiser
    help: str


def _grid(dtype: Any) -> Grid:
    def rounded(values: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            # Through float32 as devices do; it holds every value of the narrow formats exactly.
            return values.astype(np.float32).astype(dtype).astype(np.float64)

    return rounded


def _cast(dtype: Any) -> Quantiser:
    return lambda values, _: _grid(dtype)(values)


def _per_tensor(grid: Grid, largest: float) -> Quantiser:
    """One float32 scale for the whole tensor."""
    return lambda values, peak: _on_grid(values, np.float64(peak), grid, largest)


def _per_row(grid: Grid, largest: float) -> Quantiser:
    """One float32 scale for each row of the last axis."""

    def quantise(values: Array, _: float) -> Array:
        return _on_grid(values, np.max(np.abs(values), axis=-1, keepdims=True), grid, largest)

    return quantise


def _on_grid(values: Array, peak: Any, grid: Grid, largest: float) -> Array:
    scale = np.where(peak > 0, peak / largest, 1.0).astype(np.float32).astype(np.float64)
    return grid(np.clip(values / scale, -largest, largest)) * scale


def _blocked(within: Grid, size: int) -> Quantiser:
    """A grid for each block of `size` along the last axis; a shorter last block counts."""

    def quantise(values: Array, _: float) -> Array:
        length = values.shape[-1]
        padded = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, -length % size)])
        blocks = padded.reshape(*padded.shape[:-1], -1, size)
        whole: Array = within(blocks).reshape(padded.shape)
        return whole[..., :length]

    return quantise


def _own_peak(grid: Grid, largest: float) -> Grid:
    def within(blocks: Array) -> Array:
        return _on_grid(blocks, np.max(np.abs(blocks), axis=-1, keepdims=True), grid, largest)

    return within


def _mx(grid: Grid, largest: float) -> Grid:
    """A power-of-two scale for each block: floor(log2 amax) - emax, as OCP MX v1.0 has it."""
    top = np.floor(np.log2(largest))

    def within(blocks: Array) -> Array:
        peak = np.max(np.abs(blocks), axis=-1, keepdims=True)
        exponent = np.floor(np.log2(np.where(peak > 0, peak, 1.0))) - top
        scale = np.exp2(np.clip(exponent, -127, 127))
        laid: Array = grid(np.clip(blocks / scale, -largest, largest)) * scale
        return laid

    return within


def _nvfp4(values: Array, peak: float) -> Array:
    """Blocks of 16 in e2m1 under an e4m3 scale, and one float32 scale for the tensor."""
    whole = peak / (_E2M1_MAX * _E4M3_MAX) if peak > 0 else 1.0

    def within(blocks: Array) -> Array:
        wanted = np.max(np.abs(blocks), axis=-1, keepdims=True) / _E2M1_MAX / whole
        scale = _e4m3(np.minimum(wanted, _E4M3_MAX)) * whole
        safe = np.where(scale > 0, scale, 1.0)
        on_grid = _e2m1(np.clip(blocks / safe, -_E2M1_MAX, _E2M1_MAX)) * safe
        return np.where(scale > 0, on_grid, 0.0)

    return _blocked(within, _NVFP4_BLOCK)(values, peak)


def _int4(groups: Array) -> Array:
    """Asymmetric: 16 codes between the smallest and the largest value of a group, zero kept."""
    low = np.minimum(groups.min(axis=-1, keepdims=True), 0.0)
    high = np.maximum(groups.max(axis=-1, keepdims=True), 0.0)
    scale = np.where(high > low, (high - low) / 15.0, 1.0)
    zero = np.rint(-low / scale)
    laid: Array = (np.clip(np.rint(groups / scale) + zero, 0, 15) - zero) * scale
    return laid


_e4m3 = _grid(ml_dtypes.float8_e4m3fn)
_e5m2 = _grid(ml_dtypes.float8_e5m2)
_e2m1 = _grid(ml_dtypes.float4_e2m1fn)
_int8: Grid = np.rint
_INF = float("inf")

_ALL = (
    Scheme(
        "bfloat16", "bf16", 16, 55.6, 3.3895e38, _cast(ml_dtypes.bfloat16),
        say("Cast, no scale."),
    ),
    Scheme(
        "float16", "fp16", 16, 73.7, 65504.0, _cast(np.float16),
        say("Cast, no scale; up to 65504."),
    ),
    Scheme(
        "e4m3_tensor", "e4m3 tensor", 8, 31.6, _INF, _per_tensor(_e4m3, _E4M3_MAX),
        say("fp8 e4m3, one scale for the tensor."),
    ),
    Scheme(
        "e4m3_row", "e4m3 row", 8, 31.6, _INF, _per_row(_e4m3, _E4M3_MAX),
        say("fp8 e4m3, a scale for each row of the last axis."),
    ),
    Scheme(
        "e4m3_block", "e4m3 block", 8.25, 31.8, _INF,
        _blocked(_own_peak(_e4m3, _E4M3_MAX), _GROUP),
        say("fp8 e4m3, a scale for each 128 values along the last axis."),
    ),
    Scheme(
        "e5m2_tensor", "e5m2 tensor", 8, 25.6, _INF, _per_tensor(_e5m2, _E5M2_MAX),
        say("fp8 e5m2, one scale for the tensor."),
    ),
    Scheme(
        "mxfp8", "MXFP8", 8.25, 30.7, _INF, _blocked(_mx(_e4m3, _E4M3_MAX), _MX_BLOCK),
        say("OCP MX: e4m3 in blocks of 32 under a power-of-two scale."),
    ),
    Scheme(
        "int8_tensor", "int8 tensor", 8, 38.9, _INF, _per_tensor(_int8, 127.0),
        say("Symmetric int8, one scale for the tensor."),
    ),
    Scheme(
        "int8_row", "int8 row", 8, 41.7, _INF, _per_row(_int8, 127.0),
        say("Symmetric int8, a scale for each row of the last axis."),
    ),
    Scheme(
        "int4_group", "int4 g128", 4.25, 19.9, _INF, _blocked(_int4, _GROUP),
        say("Asymmetric int4 in groups of 128 along the last axis."),
    ),
    Scheme(
        "mxfp4", "MXFP4", 4.25, 18.8, _INF, _blocked(_mx(_e2m1, _E2M1_MAX), _MX_BLOCK),
        say("OCP MX: e2m1 in blocks of 32 under a power-of-two scale."),
    ),
    Scheme(
        "nvfp4", "NVFP4", 4.5, 20.4, _INF, _nvfp4,
        say("e2m1 in blocks of 16 under an e4m3 scale and one float32 scale."),
    ),
)  # fmt: skip

SCHEMES: Mapping[str, Scheme] = {scheme.name: scheme for scheme in _ALL}
