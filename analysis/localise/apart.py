"""How far the two sides of a tensor are apart on the rows that count."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from analysis.replay.engine import Engine
from analysis.replay.padding import counted
from analysis.replay.site import exact_values
from core.comparison import Pair
from core.errors import LoadError
from core.runs import Array
from metrics import METRICS

# Elements read of one tensor; beyond it the statistics of the whole pair stand in.
_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class Difference:
    """How far the two sides of an output are apart, relative to the reference, on real tokens.

    `error` is the relative L2 error, inf where only one side is finite. `uneven` is the 90 %
    quantile of the rows' relative errors over their median (a fifth of the largest, if that is
    more): 1.3 to 1.8 for honest noise, more where some positions are worse off than others.
    """

    error: float
    uneven: float = 1.0


def difference(engine: Engine, pair: Pair, spared: float) -> Difference:
    """Error of a pair on real tokens, without a share of the worst rows; NaN if unreadable."""
    stats = pair.stats
    if stats is None:
        return Difference(math.nan)
    if stats.equal == stats.count:
        return Difference(0.0)
    if pair.reference.size > _LARGEST or pair.adaptation is not None:
        return Difference(METRICS["relative_l2"](stats))
    try:
        a = exact_values(engine.run_reference.read(pair.reference.id), pair.reference.dtype)
        b = exact_values(engine.run_candidate.read(pair.candidate.id), pair.candidate.dtype)
    except LoadError:
        return Difference(math.nan)
    place = (pair.reference.step, pair.reference.rank)
    return _difference(a, b, counted(a.shape, engine.real.get(place)), spared)


def _difference(a: Array, b: Array, valid: Array, spared: float) -> Difference:
    finite = np.isfinite(a) & np.isfinite(b)
    if np.any(np.isfinite(a) != np.isfinite(b)):
        return Difference(math.inf)
    kept = valid & finite
    energy = (np.where(kept, b, 0.0) - np.where(kept, a, 0.0)) ** 2
    size = np.where(kept, a, 0.0) ** 2
    total = float(size.sum())
    if total == 0:
        return Difference(0.0 if energy.sum() == 0 else math.inf)
    error = math.sqrt(float(energy.sum()) / total)
    if a.ndim < 2:
        return Difference(error)
    norms, errors = size.sum(-1).ravel(), energy.sum(-1).ravel()
    if spared:
        kept_rows = np.argsort(errors)[: math.ceil((1 - spared) * errors.size)]
        norms, errors = norms[kept_rows], errors[kept_rows]
        error = math.sqrt(float(errors.sum()) / float(norms.sum())) if norms.sum() else error
    rows = np.sqrt(errors[norms > 0] / norms[norms > 0])
    middle = float(np.median(rows))
    if not middle:
        return Difference(error, math.inf)
    return Difference(error, max(float(np.quantile(rows, 0.9)), float(rows.max()) / 5) / middle)
