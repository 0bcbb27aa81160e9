"""Pairs of which one side, or both, has no values: compared by what the dumps say of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from core.comparison import Pair, SummaryPair
from core.errors import LoadError
from core.runs import Array, Run
from core.tensors import TensorInfo, TensorSummary
from language import say
from metrics import formats

_NOTHING_SHARED = say("neither holds values, and what the dumps say of them has nothing in common")


def summary_of(chunks: Iterable[Array]) -> TensorSummary:
    """Extremes, means and norm of values in float64, as a dump of statistics has them.

    NaN in the values is NaN in each of them; magnitudes count for complex values. Without any
    element there is nothing to say.
    """
    lows, highs, sums, sizes, norms, count = [], [], [], [], [], 0
    with np.errstate(all="ignore"):
        for chunk in chunks:
            if chunk.size:
                values = np.asarray(np.abs(chunk) if np.iscomplexobj(chunk) else chunk, np.float64)
                lows.append(values.min())
                highs.append(values.max())
                sums.append(values.sum())
                sizes.append(np.abs(values).sum())
                norms.append(_norm(values))
                count += values.size
    if not count:
        return TensorSummary()
    return TensorSummary(
        minimum=float(min(lows)),
        maximum=float(max(highs)),
        mean=float(sum(sums) / count),
        norm=_norm(np.array(norms)),
        magnitude=float(sum(sizes) / count),
    )


def summarised(runs: tuple[Run, Run], pair: Pair) -> Pair:
    """A pair compared by statistics; those of a side that has values are computed from them."""
    a, b = pair.reference, pair.candidate
    try:
        summary = SummaryPair(_said(runs[0], a), _said(runs[1], b))
    except LoadError as error:
        return replace(pair, problem=say("cannot be read: {error}", error=error))
    problem = unrelated(summary, a, b)
    return replace(pair, problem=problem, summary=None if problem else summary)


def _said(run: Run, tensor: TensorInfo) -> TensorSummary:
    return tensor.summary or summary_of(run.chunks(tensor.id))


def _norm(values: Array) -> float:
    """L2 norm that overflows only where the norm itself does."""
    scale = float(np.abs(values).max())
    if scale == 0 or not math.isfinite(scale):
        return scale
    return scale * float(np.sqrt(np.square(values / scale).sum()))


def unrelated(pair: SummaryPair, reference: TensorInfo, candidate: TensorInfo) -> str | None:
    """Why two summaries cannot be compared; None when they can.

    Checksums of different formats differ for equal numbers, so they alone say nothing.
    """
    if _differences(pair, reference.size):
        return None
    if pair.same_checksum is None or reference.dtype != candidate.dtype:
        return _NOTHING_SHARED
    return None


def times_floor(pair: Pair, floor: float) -> float:
    """The least relative L2 error that explains the two summaries, in units of the floor.

    A lower bound: norms differ by no more than the norm of the error, means, also those of
    magnitudes, by no more than its root mean square; where no norm is known, mean magnitudes bound
    the L1 error relative to the L1 norm. Extremes, in units of the largest magnitude, count beside
    them although they bound the largest error only. The floor is widened by the resolution of the
    written numbers. 0 for equal checksums; NaN where only checksums are there and differ; infinite
    where one side alone is not finite.
    """
    summary = pair.summary
    if summary is None or summary.same_checksum:
        return math.nan if summary is None else 0.0
    found = _differences(summary, pair.reference.size)
    if not found:
        return math.nan
    difference = max(found)
    if difference == 0:
        return 0.0
    widened = math.hypot(floor, summary.reference.resolution, summary.candidate.resolution)
    exact = formats.kind(pair.reference.dtype) in ("int", "bool")
    return difference / widened if widened and not exact else math.inf


def differs(summary: SummaryPair) -> bool:
    """Whether the two summaries show that the values are not equal."""
    if summary.same_checksum is not None:
        return not summary.same_checksum
    return any(_differences(summary, 1))


def _differences(pair: SummaryPair, size: int) -> list[float]:
    """Relative differences of all that both sides say.

    A mean or norm that overflowed over finite values says nothing.
    """
    a, b = pair.reference, pair.candidate
    bounded = all(_is_finite(v) for v in (a.minimum, a.maximum, b.minimum, b.maximum))
    largest = max((abs(v) for v in (a.minimum, a.maximum) if v is not None), default=None)
    root = None if a.norm is None or not size else a.norm / math.sqrt(size)
    asked = [
        (a.norm, b.norm, a.norm, bounded),
        (a.mean, b.mean, root if root is not None else largest, bounded),
        (a.magnitude, b.magnitude, root if root is not None else a.magnitude, bounded),
        (a.maximum, b.maximum, largest, False),
        (a.minimum, b.minimum, largest, False),
    ]
    return [
        _relative(x, y, scale)
        for x, y, scale, may_overflow in asked
        if x is not None
        and y is not None
        and not (may_overflow and not (math.isfinite(x) and math.isfinite(y)))
    ]


def _relative(reference: float, candidate: float, scale: float | None) -> float:
    if reference == candidate or (math.isnan(reference) and math.isnan(candidate)):
        return 0.0
    if not (math.isfinite(reference) and math.isfinite(candidate)):
        return math.inf
    unit = abs(reference) if scale is None or not math.isfinite(scale) else abs(scale)
    return abs(candidate - reference) / unit if unit else math.inf


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
