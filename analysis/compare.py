"""One pass over two runs: pairs, statistics, content ids."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from blake3 import blake3

from analysis.floor import default_tolerance
from analysis.matching import Matching, match
from core.comparison import Comparison, Match, Pair, RunSummary, Settings
from core.errors import CompareError, LoadError
from core.numbers import shape
from core.runs import Array, Run, nbytes
from core.tensors import TensorInfo
from metrics import accumulator, formats

# Part of every comparison id: raise it when the same dumps would give other statistics or pairs.
ENGINE_VERSION = 3

CHUNK_ELEMENTS = 1 << 22  # some segments of the engine for each core; memory grows with it
_SIDE_BYTES = 1 << 20  # chunks from here on are hashed beside the statistics
_CORES = len(os.sched_getaffinity(0))
_ID_LENGTH = 20


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a comparison is; bytes count both runs as stored, `where` is the tensor at hand."""

    done_bytes: int
    total_bytes: int
    done_pairs: int
    total_pairs: int
    where: str


Report = Callable[[Progress], None]


def compare(
    reference: Run,
    candidate: Run,
    settings: Settings | None = None,
    progress: Report = lambda _: None,
) -> Comparison:
    """Pair and measure two runs; every value of both is read once, in bounded pieces.

    `progress` is called before each chunk and may raise to stop. A tensor that cannot be read or
    compared is a pair with a problem. Raises CompareError when a run is empty.
    """
    for run in (reference, candidate):
        if not run.tensors:
            raise CompareError(
                f"{run.label} holds no tensor.",
                "Check that the folder is a dump and was not empty.",
            )
    settings = settings or Settings()
    matching = match(reference, candidate)
    with ThreadPoolExecutor(2) as hashing:
        reader = _Reader(reference, candidate, matching, progress, hashing)
        pairs = tuple(reader.pair(a, b, how, settings) for a, b, how in matching.pairs)
        for run, rest in (
            (reference, matching.unmatched_reference),
            (candidate, matching.unmatched_candidate),
        ):
            for tensor in rest:
                reader.digest(run, tensor)
    ours, theirs = _summary(reference, reader), _summary(candidate, reader)
    return Comparison(
        id=_comparison_id(ours, theirs, settings, pairs),
        reference=ours,
        candidate=theirs,
        settings=settings,
        pairs=pairs,
        unmatched_reference=matching.unmatched_reference,
        unmatched_candidate=matching.unmatched_candidate,
    )


class _Reader:
    """Reads both runs once: statistics and content digests come from the same pass."""

    def __init__(
        self,
        reference: Run,
        candidate: Run,
        matching: Matching,
        report: Report,
        hashing: Executor,
    ) -> None:
        self.reference, self.candidate = reference, candidate
        self.report, self.hashing = report, hashing
        self.digests: dict[tuple[int, str], str] = {}
        self.total_pairs = len(matching.pairs)
        self.total_bytes = sum(
            nbytes(t) for run in (reference, candidate) for t in run.tensors.values()
        )
        self.done_pairs = self.done_bytes = 0

    def pair(self, a: TensorInfo, b: TensorInfo, how: Match, settings: Settings) -> Pair:
        tolerance = settings.tolerance or default_tolerance(a.dtype, b.dtype)
        pair = Pair(a, b, how, tolerance, problem=incomparable(a, b))
        if pair.problem is None:
            pair = self._measured(pair)
        else:
            self.digest(self.reference, a)
            self.digest(self.candidate, b)
        self.done_pairs += 1
        return pair

    def _measured(self, pair: Pair) -> Pair:
        a, b = pair.reference, pair.candidate
        gathered = accumulator(
            pair.tolerance,
            dtype=formats.coarser_of(a.dtype, b.dtype),
            dtypes=(a.dtype, b.dtype),
            shape=a.shape,
            threads=_CORES,
        )
        try:
            ours = self._hashed(self.reference, a)
            theirs = self._hashed(self.candidate, b)
            for x, y in zip(ours, theirs, strict=True):
                gathered.add(x, y)
        except LoadError as error:
            return Pair(a, b, pair.match, pair.tolerance, problem=f"cannot be read: {error}")
        return Pair(a, b, pair.match, pair.tolerance, stats=gathered.stats())

    def digest(self, run: Run, tensor: TensorInfo) -> None:
        """Hash a tensor that is not compared; unreadable ones count as such."""
        try:
            for _ in self._hashed(run, tensor):
                pass
        except LoadError:
            return

    def _hashed(self, run: Run, tensor: TensorInfo) -> Iterator[Array]:
        """Chunks of a tensor; its digest is kept once all have passed."""
        key = (id(run), tensor.id)
        self.digests[key] = "unreadable"
        digest = blake3()
        for chunk in run.chunks(tensor.id, CHUNK_ELEMENTS):
            self._tell(tensor)
            flat = np.ascontiguousarray(chunk)
            raw = flat.view(np.uint8).data if flat.size else b""
            if chunk.nbytes < _SIDE_BYTES:
                digest.update(raw)
                yield flat
            else:
                hashed = self.hashing.submit(digest.update, raw)
                yield flat
                hashed.result()
            self.done_bytes += chunk.nbytes
        self.digests[key] = digest.hexdigest()

    def _tell(self, tensor: TensorInfo) -> None:
        self.report(
            Progress(
                self.done_bytes, self.total_bytes, self.done_pairs, self.total_pairs, tensor.id
            )
        )


def incomparable(a: TensorInfo, b: TensorInfo) -> str | None:
    """Why two tensors cannot be compared element by element; None when they can."""
    if a.shape != b.shape:
        return f"shapes differ: {shape(a.shape)} against {shape(b.shape)}"
    kinds = formats.kind(a.dtype), formats.kind(b.dtype)
    if kinds[0] != kinds[1]:
        return f"kinds differ: {a.dtype} against {b.dtype}"
    if a.size == 0:
        return "both sides are empty"
    return None


def _summary(run: Run, reader: _Reader) -> RunSummary:
    described = [
        (t.id, t.dtype, t.storage_dtype, t.shape, reader.digests[id(run), t.id])
        for t in run.tensors.values()
    ]
    return RunSummary(
        label=run.label,
        fingerprint=run.fingerprint,
        content=_digest_of([described, sorted(run.provenance.items())]),
        tensors=len(run.tensors),
        nbytes=sum(map(nbytes, run.tensors.values())),
        provenance=run.provenance,
        problems=run.problems,
    )


def _comparison_id(
    reference: RunSummary, candidate: RunSummary, settings: Settings, pairs: tuple[Pair, ...]
) -> str:
    mapping = [(p.reference.id, p.candidate.id) for p in pairs]
    parts = [ENGINE_VERSION, reference.content, candidate.content, asdict(settings), mapping]
    return _digest_of(parts)[:_ID_LENGTH]


def _digest_of(value: Any) -> str:
    return blake3(json.dumps(value, separators=(",", ":")).encode()).hexdigest()
