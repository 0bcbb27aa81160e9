"""One pass over a pair of chunks: everything the metrics need.

The kernels are compiled on first use and kept on disk; nothing here imports the compiler before.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Protocol

from core.comparison import Tolerance
from core.stats import PairStats
from metrics.decoding import Chunk

if TYPE_CHECKING:
    from metrics.engine.accumulator import Accumulator as Compiled

CPU = "cpu"


class Accumulator(Protocol):
    """Gathers the statistics of a pair chunk by chunk."""

    def add(self, reference: Chunk, candidate: Chunk) -> None:
        """The next elements of both sides, flat and equally many."""

    def stats(self) -> PairStats:
        """The statistics of all that was added, which ends the adding."""


def pair_stats(
    reference: Chunk,
    candidate: Chunk,
    tolerance: Tolerance,
    *,
    dtype: str,
    dtypes: tuple[str, str],
    shape: tuple[int, ...],
    start: int = 0,
) -> PairStats:
    """Statistics of two flat chunks of one pair; `a + b` of disjoint chunks is that of both.

    `dtype` is the coarser logical dtype of the pair, `dtypes` each side's own; `shape` is that of
    the whole tensor and `start` the flat index of the chunk's first element. Complex values count
    as two real ones each; booleans as 0 and 1, where any difference is a mismatch.
    """
    gathered = accumulator(tolerance, dtype=dtype, dtypes=dtypes, shape=shape, start=start)
    gathered.add(reference, candidate)
    return gathered.stats()


def accumulator(
    tolerance: Tolerance,
    *,
    dtype: str,
    dtypes: tuple[str, str],
    shape: tuple[int, ...],
    start: int = 0,
    threads: int = 1,
    device: str = CPU,
) -> Accumulator:
    """For a pair too large to hold: `.add(reference, candidate)` chunk by chunk, then `.stats()`.

    Statistics are bit-identical however the pair is cut and whatever the number of threads. On a
    `device` of PyTorch (`cuda`, `cuda:1`, `torch-cpu`) only sums may differ, in their last bits.
    CompareError where there is no such device.
    """
    if device != CPU:
        from metrics.torch_engine.accumulator import Accumulator as OnDevice

        return OnDevice(
            tolerance, dtype=dtype, dtypes=dtypes, shape=shape, start=start, device=device
        )
    return _compiled()(
        tolerance, dtype=dtype, dtypes=dtypes, shape=shape, start=start, threads=threads
    )


@cache
def _compiled() -> type[Compiled]:
    """What brings the compiler along; looked up once, which small pairs would notice."""
    from metrics.engine.accumulator import Accumulator

    return Accumulator
