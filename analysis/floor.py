"""How much error rounding explains: the unit in which every error is shown.

First version: a law of formats and depth only, for dumps whose operators are not replayed.
Everything else asks `floors` and nothing here, so a better model replaces this module alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from analysis import summaries
from core.comparison import Pair, Tolerance
from core.tensors import TensorInfo
from metrics import formats

# Relative L2 error of one rounding to nearest in units of the unit roundoff u: sqrt(0.1803), for
# any smooth distribution (measured 0.4246 to 0.4253 on bf16, fp16, e4m3).
ONE_ROUNDING = 0.4247

# Rounding errors of a residual network grow like 0.7 u sqrt(k) after k blocks (measured on stable
# pre-norm decoders, branch gain 0.3 to 1: exponent 0.42 to 0.61).
_DEPTH_FACTOR = 0.7 / ONE_ROUNDING

# A dot product of K terms accumulated in the storage format adds 0.3 u sqrt(K) (zero-mean data);
# only float32 and float64 are accumulated in themselves, narrower formats in float32.
_DOT_PRODUCT = 0.3
_SELF_ACCUMULATED = frozenset({"float32", "float64"})

# Quantising normal data to int8 with one scale per tensor, measured; int8 in a dump is such data.
_INT8_STEP = 1.08e-2

# torch.testing.assert_close for the IEEE formats and bf16, the CANN mixed tolerance for fp8.
_TOLERANCES: Mapping[str, Tolerance] = {
    "float64": Tolerance(1e-7, 1e-7),
    "float32": Tolerance(1e-5, 1.3e-6),
    "float16": Tolerance(1e-5, 1e-3),
    "bfloat16": Tolerance(1e-5, 1.6e-2),
    "float8_e4m3fn": Tolerance(2.0**-4, 2.0**-2),
    "float8_e5m2": Tolerance(2.0**-3, 2.0**-1),
}


def default_tolerance(reference: str, candidate: str) -> Tolerance:
    """Element tolerance of the coarser of two logical dtypes; exact for ints and bools."""
    return _TOLERANCES.get(
        formats.real_of(formats.coarser_of(reference, candidate)), Tolerance(0, 0)
    )


def floors(pairs: Sequence[Pair]) -> tuple[float, ...]:
    """Relative L2 error that rounding explains, per pair; 0 for bools and ids (bit-exact).

    0.4247 u of the coarser logical dtype for one rounding, plus 0.3 u sqrt(K) where that dtype also
    accumulates, times 1.65 sqrt(k) for a tensor k blocks deep. K is the longest last axis among the
    tensors of the same operator, k counts the repeated blocks (`layers.N`) entered so far. Where a
    coarser format upstream already made the runs differ, its rounding counts instead: a float32
    softmax inside a bf16 model carries bf16 errors.
    """
    lengths = _contraction_lengths(pairs)
    upstream: dict[tuple[int | None, int | None], float] = {}
    found = []
    for pair, depth in zip(pairs, _depths(pairs), strict=True):
        tensor = pair.reference
        place = (tensor.step, tensor.rank)
        one = _one_operator(pair, lengths[_operator_key(tensor)])
        if one and tensor.pass_ != "parameter":
            one = max(one, upstream.get(place, 0.0))
            if _differs(pair):
                upstream[place] = one
        found.append(one * _DEPTH_FACTOR * math.sqrt(depth))
    return tuple(found)


def _differs(pair: Pair) -> bool:
    if pair.stats is not None:
        return pair.stats.equal < pair.stats.count
    return pair.summary is not None and summaries.differs(pair.summary)


def _one_operator(pair: Pair, length: int) -> float:
    dtype = formats.real_of(formats.coarser_of(pair.reference.dtype, pair.candidate.dtype))
    if dtype == "int8":
        return _INT8_STEP
    if formats.kind(dtype) != "float":
        return 0.0
    fmt = formats.format_of(dtype)
    accumulated = _DOT_PRODUCT * math.sqrt(length) if dtype in _SELF_ACCUMULATED else 0.0
    return fmt.unit_roundoff * math.hypot(ONE_ROUNDING, accumulated)


def _operator_key(tensor: TensorInfo) -> tuple[object, ...]:
    return (tensor.step, tensor.rank, tensor.operator, tensor.call)


def _contraction_lengths(pairs: Sequence[Pair]) -> dict[tuple[object, ...], int]:
    lengths: dict[tuple[object, ...], int] = {}
    for pair in pairs:
        key = _operator_key(pair.reference)
        length = max(pair.reference.shape[-1:] or (1,))
        lengths[key] = max(lengths.get(key, 1), length)
    return lengths


def block_of(module: str) -> int | None:
    """Index of the repeated block a module lies in: the first number in its path."""
    return next((int(s) for s in module.split(".") if s.isdecimal() and len(s) < 7), None)


def _depths(pairs: Sequence[Pair]) -> list[int]:
    """Blocks entered so far: forwards counts up, a backward pass adds the way back."""
    deepest: dict[tuple[int | None, int | None], int] = {}
    depths = []
    for pair in pairs:
        tensor = pair.reference
        place = (tensor.step, tensor.rank)
        block = block_of(tensor.module)
        top = deepest.get(place, 1)
        if tensor.pass_ in ("backward", "gradient", "update"):
            depths.append(2 * top - (block if block is not None else 0))
            continue
        if block is not None and tensor.pass_ == "forward":
            top = deepest[place] = max(top, block + 1)
        depths.append(block + 1 if block is not None else top)
    return depths
