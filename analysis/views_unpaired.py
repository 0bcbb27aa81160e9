"""Two tensors that cannot be compared element by element, by their distributions alone.

Another batch, another length, another step: shapes differ, and drift is what can still be said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.comparison import Tolerance
from core.errors import LoadError
from core.runs import Array, Run
from core.stats import PairStats
from core.tensors import TensorInfo
from metrics import accumulator, formats

SAMPLE = 1 << 22  # elements of a tensor that are read, evenly spread over it
_CHUNK = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class Unpaired:
    """Both sides of a pair on their own: `stats` holds each side's statistics.

    Of the reference also its energy along each axis, where all of it was read.

    `seen` are the elements read of each side, `total` those that there are.
    """

    number: int
    stats: PairStats
    seen: tuple[int, int]
    total: tuple[int, int]


def unpaired(
    reference: Run, candidate: Run, *, pairs: tuple[tuple[int, str, str], ...]
) -> tuple[Unpaired, ...]:
    """The distributions of these pairs (number, both tensor ids); unreadable ones are left out."""
    return tuple(_measured(reference, candidate, pairs))


def _measured(
    reference: Run, candidate: Run, pairs: Sequence[tuple[int, str, str]]
) -> Iterator[Unpaired]:
    for number, ours, theirs in pairs:
        a, b = reference[ours], candidate[theirs]
        try:
            sides = _side(reference, a), _side(candidate, b)
        except LoadError:
            continue
        stats = PairStats(
            formats.coarser_of(a.dtype, b.dtype),
            reference=sides[0][0].reference,
            candidate=sides[1][0].reference,
            axes=sides[0][0].axes if sides[0][1] == a.size else (),
        )
        yield Unpaired(number, stats, (sides[0][1], sides[1][1]), (a.size, b.size))


def _side(run: Run, tensor: TensorInfo) -> tuple[PairStats, int]:
    """One side against itself, and how many of its elements were read."""
    gathered = accumulator(
        Tolerance(0, 0), dtype=tensor.dtype, dtypes=(tensor.dtype, tensor.dtype),
        shape=tensor.shape if tensor.size <= SAMPLE else (SAMPLE,),
    )  # fmt: skip
    seen = 0
    for chunk in _spread(run, tensor):
        gathered.add(chunk, chunk)
        seen += chunk.size
    return gathered.stats(), seen


def _spread(run: Run, tensor: TensorInfo) -> Iterator[Array]:
    """All elements of a small tensor, evenly spread stretches of a large one."""
    if tensor.size <= SAMPLE or not run.values.is_seekable(tensor):
        left = SAMPLE
        for chunk in run.chunks(tensor.id, _CHUNK):
            yield chunk[:left]
            left -= min(left, chunk.size)
            if not left:
                return
        return
    stretches = SAMPLE // _CHUNK
    for k in range(stretches):
        start = k * (tensor.size - _CHUNK) // (stretches - 1)
        yield next(iter(run.chunks(tensor.id, _CHUNK, start)))
