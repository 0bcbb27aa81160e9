"""What every question about a pair's values names."""

from __future__ import annotations

import math

from core.comparison import Pair
from core.stats import PairStats


def names(pair: Pair) -> dict[str, str]:
    """Both tensors and the format that counts ulps, as arguments."""
    dtype = pair.stats.dtype if pair.stats else pair.reference.dtype
    return {"reference_id": pair.reference.id, "candidate_id": pair.candidate.id, "dtype": dtype}


def rms(stats: PairStats) -> float:
    """Root mean square of the reference's finite values; NaN when there are none."""
    moments = stats.moments.reference
    return float((moments.energy / moments.count).sqrt()) if moments.count else math.nan
