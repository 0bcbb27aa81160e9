"""Statistics of a pair gathered chunk by chunk on a device."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from core.comparison import Tolerance
from core.stats import Extreme, PairStats
from metrics.decoding import Chunk, real_parts
from metrics.formats import format_of
from metrics.torch_engine.device import device_of
from metrics.torch_engine.sides import side_of
from metrics.torch_engine.stretch import About, stretch_stats

STRETCH = 1 << 22  # elements at a time: some 400 MB on the device


class Accumulator:
    """Takes two flat tensors in chunks, in order, like the compiled engine's.

    Complex values count as two real ones each. CompareError where the device is not there.
    """

    def __init__(
        self,
        tolerance: Tolerance,
        *,
        dtype: str,
        dtypes: tuple[str, str],
        shape: tuple[int, ...],
        start: int = 0,
        device: str,
    ) -> None:
        self._device = device_of(device)
        self._tolerance, self._shape = tolerance, shape
        self._formats = format_of(dtype), format_of(dtypes[0]), format_of(dtypes[1])
        self._added, self._next = start, start
        self._pending: list[tuple[Chunk, Chunk]] = []
        self._stats = PairStats(dtype)
        self._parts = 1

    def add(self, reference: Chunk, candidate: Chunk) -> None:
        """The next elements of both sides, flat and equally many."""
        if reference.ndim != 1 or reference.shape != candidate.shape:
            shapes = f"{reference.shape}, {candidate.shape}"
            raise ValueError(f"chunks are flat and of one length: {shapes}")
        self._added += reference.size
        if self._added * self._parts > math.prod(self._shape):
            raise ValueError(f"{reference.size} more elements do not fit the shape {self._shape}")
        if np.iscomplexobj(reference) or np.iscomplexobj(candidate):
            self._split_from_now_on()
            reference, candidate = _split(reference), _split(candidate)
        for pair in self._cut(reference, candidate):
            self._pending.append(pair)
            if (self._next + self._waiting) % STRETCH == 0:
                self._run()

    def stats(self) -> PairStats:
        """The statistics of all that was added, which ends the adding."""
        if self._pending:
            self._run()
        if self._parts == 1:
            return self._stats
        known = self._stats
        error, ulp = _of_whole(known.max_abs_error), _of_whole(known.max_ulp)
        return replace(known, axes=known.axes[:-1], max_abs_error=error, max_ulp=ulp)

    @property
    def _waiting(self) -> int:
        return sum(a.size for a, _ in self._pending)

    def _split_from_now_on(self) -> None:
        if self._parts == 1:
            self._parts, self._next, self._shape = 2, 2 * self._next, (*self._shape, 2)

    def _cut(self, a: Chunk, b: Chunk) -> Iterator[tuple[Chunk, Chunk]]:
        """At multiples of a stretch from the tensor's beginning, wherever the chunks were cut."""
        first = (self._next + self._waiting) % STRETCH
        edges = [0, *range(STRETCH - first, a.size, STRETCH), a.size]
        for low, high in itertools.pairwise(edges):
            yield a[low:high], b[low:high]

    def _run(self) -> None:
        sides = [
            side_of(_native(np.concatenate(parts) if len(parts) > 1 else parts[0]), self._device)
            for parts in zip(*self._pending, strict=True)
        ]
        about = About(self._tolerance, self._formats, self._shape)
        self._stats = self._stats + stretch_stats(sides[0], sides[1], about, self._next)
        self._next += sides[0].chunk.size
        self._pending = []


def _split(chunk: Chunk) -> Chunk:
    whole = chunk if np.iscomplexobj(chunk) else chunk.astype(np.complex128)
    return real_parts(whole)


def _native(chunk: Chunk) -> Chunk:
    return np.ascontiguousarray(chunk, chunk.dtype.newbyteorder("="))


def _of_whole(extreme: Extreme) -> Extreme:
    """An extreme among parts as one among complex numbers; -1, for none, stays -1."""
    return replace(extreme, index=extreme.index // 2)
