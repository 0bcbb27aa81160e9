"""Ranks that should hold the same values: told by the other run, named where they part."""

from __future__ import annotations

import numpy as np
from memory_runs import run_of

from analysis.compare import compare
from analysis.diagnose import diagnose
from analysis.export_findings import diagnosis_json
from analysis.findings.texts import describe
from analysis.localise.replicas import parted
from core.findings import Diagnosis
from core.runs import Array, Run

RNG = np.random.default_rng(5)
X = RNG.standard_normal((8, 16)).astype(np.float32)
SHARDS = [RNG.standard_normal((8, 4)).astype(np.float32) for _ in range(2)]
NAMES = ("mlp:forward_output.0", "norm:forward_output.0", "mask:forward_output.0")


def ranks(*per_rank: tuple[Array, Array, Array]) -> Run:
    """On each rank a shard, a tensor that all share, and a mask of ones."""
    arrays, facts = {}, {}
    for rank, held in enumerate(per_rank):
        for order, (name, array) in enumerate(zip(NAMES, held, strict=True)):
            module = name.partition(":")[0]
            arrays[f"rank{rank}/{name}"] = array
            named = {"name": name, "module": module, "op": "", "rank": rank}
            facts[f"rank{rank}/{name}"] = {**named, "order": order * 8 + rank}
    return run_of(arrays, facts=facts)


ONES = np.ones((4, 4), np.float32)
WHOLE = ranks((SHARDS[0], X, ONES), (SHARDS[1], X, ONES))


def found(reference: Run, candidate: Run) -> Diagnosis:
    return diagnose(reference, candidate, compare(reference, candidate))


def test_ranks_that_agree_are_no_finding_whatever_their_rounding() -> None:
    near = np.nextafter(X, np.float32(9))
    assert found(WHOLE, ranks((SHARDS[0], near, ONES), (SHARDS[1], near, ONES))).findings == ()


def test_ranks_that_part_beyond_rounding_are_a_fault_of_their_side() -> None:
    other = X.copy()
    other[3, 7] += np.float32(1e-2)
    run = ranks((SHARDS[0], X, ONES), (SHARDS[1], other, ONES))
    for pair, side in (((WHOLE, run), "candidate"), ((run, WHOLE), "reference")):
        (place,) = parted(compare(*pair), *pair)
        assert (place.side, place.pair.reference.module, place.places) == (side, "norm", 1)
        assert [tensor.rank for tensor in place.tensors] == [0, 1]
        assert place.times > 100


def test_ranks_that_part_by_rounding_are_to_be_watched() -> None:
    other = np.nextafter(X, np.float32(9))
    run = ranks((SHARDS[0], X, ONES), (SHARDS[1], other, ONES))
    diagnosis = found(WHOLE, run)
    (finding,) = diagnosis.findings
    assert (finding.verdict, finding.side, finding.module) == ("watch", "candidate", "norm")
    assert diagnosis_json(diagnosis)["verdict"] == "rounding"
    text = describe(finding)
    assert "Ranks 0 and 1 of the candidate" in text.detail
    assert text.next_steps


def test_shards_and_constants_are_no_replicas() -> None:
    zeros = np.zeros_like(ONES)
    run = ranks((SHARDS[0], X, ONES), (SHARDS[1] * 2, X, zeros))
    assert parted(compare(WHOLE, run), WHOLE, run) == []


def test_ranks_merged_by_shape_are_held_to_be_equal() -> None:
    name = "rank0/norm:forward_output.0"
    one = run_of({name: X}, facts={name: {"name": NAMES[1], "module": "norm", "op": "", "rank": 0}})
    other = X.copy()
    other[0] *= np.float32(1.5)
    equal = ranks((SHARDS[0], X, ONES), (SHARDS[1], X, ONES))
    unequal = ranks((SHARDS[0], X, ONES), (SHARDS[1], other, ONES))
    assert parted(compare(one, equal), one, equal) == []
    (place,) = parted(compare(one, unequal), one, unequal)
    assert (place.side, place.pair.reference.module) == ("candidate", "norm")
    assert place.times > 1e5
