"""Axes given at compare time, and the steps they ask for."""

import numpy as np
import pytest
from memory_runs import run_of

from analysis.adapt.dims import parse, rule_from_text
from analysis.compare import compare
from core.comparison import DimsRule, Pair, Settings
from core.errors import CompareError
from core.runs import Array

X = np.random.default_rng(5).standard_normal((2, 6, 4, 8)).astype(np.float32)
NAME = "a:forward_output.0"


def ranked(parts: list[Array]) -> dict[str, dict[str, object]]:
    return {
        f"rank{n}:forward_output.0": {"id": f"rank{n}/{NAME}", "rank": n, "module": "a"}
        for n, _ in enumerate(parts)
    }


def pair(reference: Array, parts: list[Array], *rules: str) -> Pair:
    facts = ranked(parts)
    candidate = run_of(dict(zip(facts, parts, strict=True)), facts=facts)
    settings = Settings(dims=tuple(map(rule_from_text, rules)))
    (found,) = compare(run_of({NAME: reference}), candidate, settings).pairs
    return found


def steps(found: Pair) -> list[tuple[str, tuple[int, ...]]]:
    assert found.adaptation is not None
    return [(s.operation, s.arguments) for s in found.adaptation.steps]


def is_equal(found: Pair) -> bool:
    return found.stats is not None and found.stats.equal == found.stats.count


def test_shards_and_replicas_of_two_axes_of_ranks() -> None:
    halves = np.split(X, 2, axis=2)
    parts = [halves[0], halves[1], halves[0], halves[1]]  # tensor parallel runs fastest
    found = pair(X, parts, "candidate:*=b s h[tp] d # dp:replicated dp=2 tp=2")
    assert steps(found) == [("concat", (2, 2)), ("replicated", (2,))]
    assert is_equal(found)


def test_partial_sums_are_added() -> None:
    found = pair(X, [0.25 * X, 0.75 * X], "candidate:*=b s h d[tp:partial]")
    assert steps(found) == [("sum", (2,))]
    assert is_equal(found)


def test_named_axes_are_brought_into_the_references_order() -> None:
    turned = X.transpose(1, 0, 2, 3)[None]
    found = pair(X, [turned], "reference:*=b s h d", "candidate:*=1 s b h d")
    assert steps(found) == [("squeeze", (6, 2, 4, 8)), ("transpose", (1, 0, 2, 3))]
    assert is_equal(found)


def test_a_fused_axis_is_cut_as_the_other_side_has_it() -> None:
    found = pair(X, [X.reshape(2, 6, 32)], "reference:*=b s h d", "candidate:*=b s (h*d)")
    assert steps(found) == [("unmerge", (2, 6, 4, 8))]
    assert is_equal(found)


def test_the_rules_are_part_of_the_comparisons_id() -> None:
    runs = run_of({NAME: X}), run_of({NAME: X})
    settings = Settings(dims=(DimsRule("*", "b s h d"),))
    assert compare(*runs).id != compare(*runs, settings).id


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("*=b s h", "3 dims for 4 axes"),
        ("candidate:*=b s h d", "name every axis of ranks|several|are left"),
        ("candidate:*=b s h[tp] d[cp]", "sizes of tp, cp are not given"),
        ("candidate:*=b s h[tp] d # tp=3", "do not fall into groups|are left"),
    ],
)
def test_dims_that_do_not_fit_the_tensors_say_why(rule: str, message: str) -> None:
    with pytest.raises(CompareError, match=message):
        pair(X, np.split(X, 2, axis=2), rule)


@pytest.mark.parametrize("text", ["b s[", "b (h d)", "b h[tp:zigzag]", "b h # tp=x"])
def test_dims_that_are_not_understood_are_named(text: str) -> None:
    with pytest.raises(CompareError, match="dims"):
        parse(text)
