"""How far two bundles are apart, from samples of their values; each sample is read once."""

from __future__ import annotations

import math

import numpy as np

from analysis.adapt.checks import RELATED, distance, sample
from analysis.adapt.lazy import Stored
from analysis.matching.sides import Bundle
from core.runs import Array, Run

_ELEMENTS = 1 << 10
_MOST_HELD = 1 << 13  # samples: 64 MB


class Samples:
    """Samples of the tensors of two runs, so many at a time."""

    def __init__(self, reference: Run, candidate: Run) -> None:
        self._runs = (reference, candidate)
        self._held: dict[tuple[int, str], Array | None] = {}

    def of(self, side: int, bundle: Bundle) -> Array | None:
        """Sample of a bundle's lead in the reference (0) or candidate (1)."""
        key = (side, bundle.key)
        if key not in self._held:
            if len(self._held) >= _MOST_HELD:
                self._held.clear()
            self._held[key] = sample(Stored(self._runs[side].values, bundle.lead), _ELEMENTS)
        return self._held[key]

    def distance(self, a: Bundle, b: Bundle) -> float:
        """Relative L2 error of the leads' samples; infinite when they cannot be compared."""
        if a.lead.shape != b.lead.shape:
            return math.inf
        ours, theirs = self.of(0, a), self.of(1, b)
        if ours is None or theirs is None:
            return math.inf
        apart = distance(ours, theirs)
        return math.inf if math.isnan(apart) else apart

    def alike(self, a: Bundle, b: Bundle) -> bool:
        """Whether the values speak for the two being one tensor; constants say nothing."""
        return self.distance(a, b) <= RELATED and not self.is_constant(0, a)

    def is_constant(self, side: int, bundle: Bundle) -> bool:
        """Whether all values of a sample are one, as in a fresh norm weight or a zero bias."""
        values = self.of(side, bundle)
        return values is not None and values.size > 0 and bool(np.ptp(values) == 0)
