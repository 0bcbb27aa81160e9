"""Statistics of a pair gathered chunk by chunk; the result does not depend on the cuts."""

from __future__ import annotations

import math
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.comparison import Tolerance
from core.stats import PairStats
from metrics.engine import layout as at
from metrics.engine.building import built
from metrics.engine.layout import BLOCK, SEGMENT
from metrics.engine.merging import close_segment
from metrics.engine.plan import Plan, plan
from metrics.engine.workspace import Floats, Space, pool_for

Chunk = NDArray[Any]


class Accumulator:
    """Takes two flat tensors in chunks, in order; neither cuts nor threads change a bit of the sum.

    Sums are taken over blocks of 2048 elements at multiples of that, blocks are merged in order to
    segments of 2^20, segments in order to the whole. An element is a real part of a complex number.
    `threads` work on as many segments of a chunk at once.
    """

    def __init__(
        self,
        tolerance: Tolerance,
        *,
        dtype: str,
        dtypes: tuple[str, str],
        shape: tuple[int, ...],
        start: int = 0,
        threads: int = 1,
    ) -> None:
        self._about = tolerance, dtype, dtypes, shape
        self._plan: Plan | None = None
        self._start = self._next = start
        self._threads = threads
        self._spaces: list[Space] = []
        self._pending: list[tuple[Chunk, Chunk]] = []
        self._waiting = 0

    def add(self, reference: Chunk, candidate: Chunk) -> None:
        """The next elements of both sides, flat and equally many."""
        _check(reference, candidate, self._next, self._about[3])
        known = self._plan or self._begin(reference, candidate)
        a = _parts(reference, known.sides[0].dtype)
        b = _parts(candidate, known.sides[1].dtype)
        self._next += reference.size
        if self._waiting:
            a, b = self._filled(a, b)
        rest = (self._at + self._waiting + a.size) % BLOCK
        whole = max(a.size - rest, 0)
        if whole:
            self._run(a[:whole], b[:whole])
        if whole < a.size:
            self._pending.append((a[whole:], b[whole:]))
            self._waiting += a.size - whole

    def stats(self) -> PairStats:
        """The statistics of all that was added, which ends the adding."""
        known = self._plan
        if known is None:
            return PairStats(self._about[1])
        if self._waiting:
            self._run(*self._joined())
        sums, profile = self._open, self._open_profile
        if self._closed:
            close_segment(self._sums, sums, self._profile, profile)
            sums, profile = self._sums, self._profile
        for space in self._spaces:
            space.collect(known)
        count = (self._next - self._start) * known.parts
        result = built(known, self._spaces, count, sums, profile)
        for space in self._spaces:
            self._pool.give(space)
        self._spaces = []
        return result

    def _begin(self, reference: Chunk, candidate: Chunk) -> Plan:
        tolerance, dtype, dtypes, shape = self._about
        known = plan((reference.dtype, candidate.dtype), tolerance, dtype, dtypes, shape)
        self._plan, self._pool = known, pool_for(known)
        self._spaces.append(self._pool.take())
        self._at = self._next * known.parts
        self._open, self._open_profile = _empty(known)
        self._closed = False
        return known

    def _filled(self, a: Chunk, b: Chunk) -> tuple[Chunk, Chunk]:
        """Complete the block that was begun, if there is enough for it; the rest of the chunk."""
        need = BLOCK - (self._at + self._waiting) % BLOCK
        take = min(need, a.size)
        self._pending.append((a[:take].copy(), b[:take].copy()))
        self._waiting += take
        if take == need:
            self._run(*self._joined())
        return a[take:], b[take:]

    def _joined(self) -> tuple[Chunk, Chunk]:
        if len(self._pending) == 1:
            (a, b) = self._pending[0]
        else:
            a, b = (np.concatenate(side) for side in zip(*self._pending, strict=True))
        self._pending, self._waiting = [], 0
        return a, b

    def _run(self, a: Chunk, b: Chunk) -> None:
        """Add a stretch that begins at a block's edge, segment by segment."""
        assert self._plan is not None
        done = 0
        while done < a.size:
            inside = self._at % SEGMENT
            segments = (a.size - done) // SEGMENT
            if inside == 0 and self._threads > 1 and segments > 1:
                self._run_together(a[done:], b[done:], segments)
                done += segments * SEGMENT
                continue
            take = min(SEGMENT - inside, a.size - done)
            x, y = a[done : done + take], b[done : done + take]
            _measure(self._plan, self._spaces[0], x, y, self._at, self._open, self._open_profile)
            self._at += take
            done += take
            if self._at % SEGMENT == 0:
                self._close(self._open, self._open_profile)

    def _close(self, sums: Floats, profile: Floats) -> None:
        assert self._plan is not None
        if not self._closed:
            self._sums, self._profile = _empty(self._plan)
            self._closed = True
        close_segment(self._sums, sums, self._profile, profile)

    def _run_together(self, a: Chunk, b: Chunk, segments: int) -> None:
        """Whole segments, several at once; they are folded in order as they are done."""
        assert self._plan is not None
        while len(self._spaces) < self._threads:
            self._spaces.append(self._pool.take())
        idle = deque(self._spaces[: self._threads])
        running: deque[tuple[Space, Floats, Floats, Future[None]]] = deque()
        with ThreadPoolExecutor(self._threads) as executor:
            for i in range(segments):
                if not idle:
                    idle.append(self._folded(running))
                space = idle.popleft()
                sums, profile = _empty(self._plan)
                part = slice(i * SEGMENT, (i + 1) * SEGMENT)
                task = executor.submit(
                    _measure, self._plan, space, a[part], b[part], self._at, sums, profile
                )
                running.append((space, sums, profile, task))
                self._at += SEGMENT
            while running:
                self._folded(running)

    def _folded(self, running: deque[tuple[Space, Floats, Floats, Future[None]]]) -> Space:
        space, sums, profile, task = running.popleft()
        task.result()
        self._close(sums, profile)
        return space


def _empty(known: Plan) -> tuple[Floats, Floats]:
    return np.zeros(at.SUMS), np.zeros((3, sum(known.lengths) + 1))


def _measure(
    known: Plan, space: Space, a: Chunk, b: Chunk, position: int, sums: Floats, profile: Floats
) -> None:
    space.run(known, a.ctypes.data, b.ctypes.data, a.size, position, sums, profile)


def _parts(chunk: Chunk, part: np.dtype[Any]) -> Chunk:
    """A chunk as its real parts lie in memory: contiguous, of native byte order."""
    if chunk.dtype == part and chunk.flags.c_contiguous:
        return chunk
    if np.iscomplexobj(chunk):
        return np.ascontiguousarray(chunk, chunk.dtype.newbyteorder("=")).view(part)
    if chunk.dtype == part or chunk.dtype.newbyteorder("=") == part:
        return np.ascontiguousarray(chunk, part)
    return chunk.astype(np.complex128).view(part)  # a real side against a complex one


def _check(reference: Chunk, candidate: Chunk, start: int, shape: tuple[int, ...]) -> None:
    if reference.ndim != 1 or reference.shape != candidate.shape:
        raise ValueError(f"chunks are flat and of one length: {reference.shape}, {candidate.shape}")
    if start < 0 or start + reference.size > math.prod(shape):
        raise ValueError(f"{reference.size} elements from {start} do not fit the shape {shape}")
