"""A run on two ranks against a run on one: shards merge by themselves and nobody is accused."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from analysis.compare import compare
from analysis.verdict import LIMIT, judge
from analysis.views_ranks import rank_layers
from core.comparison import Comparison
from core.runs import Run
from loaders import open_run

pytest.importorskip("torch", reason="PyTorch makes the dumps")

from sample_dumps import tensor_parallel

OPERATORS = ("matmul", "mul", "softmax", "silu", "add")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    folder: Path = tmp_path_factory.mktemp("parallel")
    tensor_parallel.whole(folder / "whole", operators=OPERATORS)
    tensor_parallel.sharded(folder / "sharded", operators=OPERATORS)
    return open_run(folder / "whole"), open_run(folder / "sharded")


@pytest.fixture(scope="module")
def comparison(runs: tuple[Run, Run]) -> Comparison:
    return compare(*runs)


def test_every_tensor_of_one_rank_finds_its_shards(comparison: Comparison) -> None:
    assert comparison.unmatched_reference == ()
    assert comparison.coverage is not None
    assert comparison.coverage.tensors.fraction == comparison.coverage.nbytes.fraction == 1.0
    assert all(len(p.members("candidate")) == 2 for p in comparison.pairs)


def test_every_shard_of_a_weight_is_joined_bit_for_bit(comparison: Comparison) -> None:
    weights = [p for p in comparison.pairs if p.reference.slot == "parameter"]
    steps = Counter(s.operation for p in weights for s in p.adaptation.steps)  # type: ignore[union-attr]
    assert steps == {"replicated": 9, "concat": 30}
    assert all(p.stats is not None and p.stats.equal == p.stats.count for p in weights)


def test_nothing_is_found_wrong(comparison: Comparison) -> None:
    judged = judge(comparison)
    assert judged.verdict == "rounding"
    assert set(judged.verdicts) == {"rounding"}
    assert np.nanmax(judged.times_floor) < LIMIT
    assert comparison.coverage is not None
    assert comparison.coverage.oddities == ()


def test_it_goes_the_other_way_round_too(runs: tuple[Run, Run]) -> None:
    one, two = runs
    back = compare(two, one)
    assert back.unmatched_candidate == ()
    judged = judge(back)
    assert judged.verdict == "rounding"
    table = rank_layers(back, judged)
    assert table.ranks == (0, 1)
    assert {"model.layers.0", "model.layers.3", "lm_head"} <= set(table.layers)
    inside = [table.layers.index(f"model.layers.{n}") for n in range(4)]
    assert np.all(table.worst[:, inside] > 0)
    assert np.all(table.worst[:, inside] < LIMIT)
    assert np.all(table.pairs[:, inside] >= 0)


def test_a_reduction_left_out_is_a_fault_where_it_happens(
    runs: tuple[Run, Run], tmp_path: Path
) -> None:
    tensor_parallel.sharded(tmp_path, unreduced=2, operators=OPERATORS)
    comparison = compare(runs[0], open_run(tmp_path))
    judged = judge(comparison)
    assert judged.verdict == "fault"
    assert judged.first_divergence is not None
    first = comparison.pairs[judged.first_divergence]
    assert first.reference.operator == "model.layers.2.self_attn.o_proj"
    assert "another way than in other layers" in first.match.note
    assert comparison.coverage is not None
    (oddity,) = comparison.coverage.oddities
    assert (oddity.check, oddity.side) == ("replicas_differ", "candidate")
    assert first.candidate.id in oddity.places
