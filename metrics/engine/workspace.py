"""Memory that one thread computes in: tables and the arrays of one block, empty between pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from core.records import maker_of
from core.stats import Histogram
from metrics.engine import layout as at
from metrics.engine import narrow
from metrics.engine.collecting import collect_narrow, collect_wide
from metrics.engine.lanes import LANES
from metrics.engine.layout import BLOCK, SEGMENT
from metrics.engine.narrow_block import FLOAT_ROWS, TABLES, run_narrow
from metrics.engine.narrow_lanes import JOINT_WIDTH, SURVEYED, SWEPT
from metrics.engine.plan import Plan
from metrics.engine.planes import PLANES
from metrics.engine.wide_block import ROWS, run_wide

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FRESH_COUNTS = np.zeros(at.COUNTS, np.int64)
_FRESH_COUNTS[[at.WORST_AT, at.ULP_AT]] = -1
_FRESH_COUNTS[[at.SEEN_A, at.SEEN_B]] = 1 << 40
_FRESH_EXTREMES = np.full(at.EXTREMES, np.nan)
_FRESH_EXTREMES[[at.WORST, at.ULP, at.MAX_A, at.MAX_B]] = -np.inf
_FRESH_EXTREMES[[at.MIN_A, at.MIN_B]] = np.inf

_histogram = maker_of(Histogram)

JOINT_ROWS = narrow.TINY_ROWS + narrow.OCTAVES + 1
_WIDE_BINS = 2112 * 2112 + 4 * 32768 + 256
_FULL = (1 << 31) - SEGMENT  # elements after which the 32-bit tables are emptied


class Space:
    """Counts, extremes and tables of what one thread has seen of a pair."""

    def __init__(self, histogram_bins: int) -> None:
        self.counts = _FRESH_COUNTS.copy()
        self.extremes = _FRESH_EXTREMES.copy()
        self.part = np.zeros(at.SUMS)
        self.bins = np.zeros(histogram_bins, np.int64)
        self.tally = np.zeros(histogram_bins, np.int64)
        self.clock = np.zeros(16, np.int64)
        self.ends = np.zeros(10, np.int64)
        self.histograms: list[Histogram] = []
        self.small = [0, 0, 0, 0]  # zeros and subnormals of either side
        self._tallied = 0

    def run(
        self, plan: Plan, a: int, b: int, count: int, position: int, sums: Floats, profile: Floats
    ) -> None:
        """Add `count` elements at two addresses, flat `position` of the tensor."""
        if self._tallied > _FULL:
            self.collect(plan)
        self._tallied += count
        self._run(plan, a, b, count, position, sums, profile)

    def collect(self, plan: Plan) -> None:
        """Empty the tables into `histograms`."""
        self._collect(plan)
        self._tallied = 0
        *ends, zero_a, tiny_a, zero_b, tiny_b = self.ends.tolist()
        bins, tally = self.bins[: ends[-1]].copy(), self.tally[: ends[-1]].copy()
        found = []
        first = 0
        for end in ends:
            found.append(_histogram(bins[first:end], tally[first:end]))
            first = end
        small = (zero_a, tiny_a, zero_b, tiny_b)
        if self.histograms:
            found = [a + b for a, b in zip(self.histograms, found, strict=True)]
        self.histograms = found
        self.small = [x + y for x, y in zip(self.small, small, strict=True)]

    def clear(self) -> None:
        """Forget the pair; the tables are empty already."""
        self.counts[:] = _FRESH_COUNTS
        self.extremes[:] = _FRESH_EXTREMES
        self.histograms = []
        self.small = [0, 0, 0, 0]

    def _run(
        self, plan: Plan, a: int, b: int, count: int, position: int, sums: Floats, profile: Floats
    ) -> None:
        raise NotImplementedError

    def _collect(self, plan: Plan) -> None:
        raise NotImplementedError


class NarrowSpace(Space):
    """For pairs that fit float32."""

    def __init__(self) -> None:
        super().__init__(2 * 8192 + JOINT_ROWS * JOINT_WIDTH + 128)
        values = narrow.TOPS + 2 * narrow.OCTAVES * 16
        self.tops = np.zeros((TABLES, 4, values + 48), np.uint32)
        self.joint = np.zeros((4, JOINT_ROWS * JOINT_WIDTH + 1024 + 80), np.uint32)
        self.planes = np.zeros((3, PLANES * LANES), np.uint32)
        self.marks = np.zeros((2, 24), np.uint32)
        self.words = np.zeros((4, BLOCK + LANES), np.uint32)
        self.masks = np.zeros(BLOCK // 64, np.uint64)
        self.floats = np.zeros((FLOAT_ROWS, BLOCK), np.float32)
        self.errors = np.zeros(BLOCK)
        self.swept = np.zeros((2, SWEPT))
        self.found = np.zeros(SURVEYED, np.int64)
        self.ahead = np.zeros(4, np.int64)
        self.where = np.zeros(BLOCK, np.int64)
        self.place = np.zeros(64, np.int64)

    def _run(
        self, plan: Plan, a: int, b: int, count: int, position: int, sums: Floats, profile: Floats
    ) -> None:
        self.ahead[at.WIDTH_A :] = plan.sides[0].dtype.itemsize, plan.sides[1].dtype.itemsize
        run_narrow(
            *(a, b, count, position, plan.sides[0].table, plan.sides[1].table),
            *(plan.terms, plan.orders, plan.shape, plan.offsets),
            *(self.tops, self.joint, self.planes, self.marks, self.words, self.masks),
            *(self.floats, self.errors, self.swept, self.found),
            *(self.ahead, self.where, self.place, self.counts, self.extremes),
            *(sums, self.part, profile, self.clock),
        )

    def _collect(self, plan: Plan) -> None:
        collect_narrow(
            *(self.tops, self.joint, self.planes, self.marks, plan.form),
            *(self.counts, self.bins, self.tally, self.ends),
        )


class WideSpace(Space):
    """For pairs that need float64. Most pages of the joint table are never touched."""

    def __init__(self) -> None:
        super().__init__(1 << 16)
        self.bins = np.empty(_WIDE_BINS, np.int64)
        self.tally = np.empty(_WIDE_BINS, np.int64)
        self.tops = np.zeros((2, 2, 2 * 32768 + 2 * 52 * 16), np.uint32)
        self.joint = np.zeros((1, 2112 * 2112), np.uint32)
        self.bits = np.zeros((2, 2, 64), np.uint32)
        self.ulp_bins = np.zeros((2, 72), np.uint32)
        self.arrays = np.zeros((ROWS, BLOCK))
        self.ints = np.zeros((2, BLOCK), np.int64)
        self.ulps = np.zeros(BLOCK, np.uint64)
        self.narrow = np.zeros(BLOCK, np.float32)
        self.where = np.zeros(BLOCK, np.int64)

    def _run(
        self, plan: Plan, a: int, b: int, count: int, position: int, sums: Floats, profile: Floats
    ) -> None:
        run_wide(
            *(a, b, count, position, plan.sides[0].table, plan.sides[1].table),
            *(plan.terms, plan.orders, plan.shape, plan.offsets),
            *(self.tops, self.joint, self.bits, self.ulp_bins, self.arrays, self.ints, self.ulps),
            *(self.narrow, self.where, self.counts, self.extremes, sums, self.part, profile),
        )

    def _collect(self, plan: Plan) -> None:
        collect_wide(
            *(self.tops, self.joint, self.bits, self.ulp_bins, plan.form),
            *(self.counts, self.bins, self.tally, self.ends),
        )


class _Pool:
    """Spaces not in use; one that an exception left behind is not used again."""

    def __init__(self, make: Callable[[], Space]) -> None:
        self._make = make
        self._free: list[Space] = []

    def take(self) -> Space:
        """An empty space."""
        try:
            return self._free.pop()
        except IndexError:
            return self._make()

    def give(self, space: Space) -> None:
        """Back, after its tables were collected."""
        space.clear()
        self._free.append(space)


_NARROW = _Pool(NarrowSpace)
_WIDE = _Pool(WideSpace)


class Pool(Protocol):
    """Where spaces come from."""

    def take(self) -> Space: ...
    def give(self, space: Space) -> None: ...


def pool_for(plan: Plan) -> Pool:
    """The pool of spaces for a plan."""
    return _NARROW if plan.narrow else _WIDE
