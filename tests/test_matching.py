"""Which tensors belong together, and how the pair says it was found."""

from collections.abc import Iterable

import numpy as np
import pytest
from memory_runs import run_of

from analysis.matching import Matching, match
from analysis.matching.naming import normalised
from core.runs import Run

ONE = np.ones(2, np.float32)


def named(names: Iterable[str], **facts: object) -> Run:
    return run_of(dict.fromkeys(names, ONE), facts=dict.fromkeys(names, facts))


def methods(matching: Matching) -> dict[str, tuple[str, str]]:
    return {a.id: (b.id, how.method) for a, b, how in matching.pairs}


def test_equal_ids_pair_exactly_with_full_confidence() -> None:
    found = match(named(["a:forward_output.0"]), named(["a:forward_output.0"]))
    assert methods(found) == {"a:forward_output.0": ("a:forward_output.0", "exact")}
    assert found.pairs[0][2].confidence == 1.0


@pytest.mark.parametrize(
    "theirs",
    [
        "module.layers.0:forward_output.0",
        "_orig_mod.layers.0:forward_output.0",
        "_fsdp_wrapped_module.layers._orig_mod.0:forward_output.0",
        "model.layers.0:forward_output.0",
    ],
)
def test_wrappers_and_roots_do_not_keep_a_pair_apart(theirs: str) -> None:
    found = match(named(["layers.0:forward_output.0"]), named([theirs]))
    assert methods(found) == {"layers.0:forward_output.0": (theirs, "normalised")}
    assert found.pairs[0][2].confidence < 1.0


def test_slashes_and_dots_are_the_same_separator() -> None:
    assert normalised("layers/0/mlp") == normalised("layers.0.mlp")


def test_a_renamed_class_is_named_in_the_note() -> None:
    name = "l.0:forward_output.0"
    reference = named([name], module_class="ColumnParallelLinear", id="r", name="r")
    candidate = named([name], module_class="ColumnParallelLinearXPU", id="c", name="c")
    ((_, _, how),) = match(reference, candidate).pairs
    assert how.method == "normalised"
    assert how.note == "class ColumnParallelLinear against ColumnParallelLinearXPU"


def test_a_different_slot_argument_or_call_never_pairs() -> None:
    reference = named(["a:forward_output.0", "a:forward_input.1"])
    candidate = named(["a:forward_output.1", "a:forward_input.0"])
    found = match(reference, candidate)
    assert not found.pairs
    assert len(found.unmatched_reference) == len(found.unmatched_candidate) == 2


def test_repeated_names_pair_by_occurrence_with_less_confidence() -> None:
    ids = ["one", "two", "three"]
    reference = run_of(
        {f"a:forward_output.{n}": ONE for n in range(3)},
        facts={
            f"a:forward_output.{n}": {"argument": "0", "id": f"r/{i}"} for n, i in enumerate(ids)
        },
    )
    candidate = run_of(
        {f"a:forward_output.{n}": ONE for n in range(2)},
        facts={
            f"a:forward_output.{n}": {"argument": "0", "id": f"c/{i}"}
            for n, i in enumerate(ids[:2])
        },
    )
    found = match(reference, candidate)
    assert [(a.id, b.id) for a, b, _ in found.pairs] == [("r/one", "c/one"), ("r/two", "c/two")]
    assert {how.confidence for *_, how in found.pairs} == {0.8}
    assert [t.id for t in found.unmatched_reference] == ["r/three"]


def test_steps_numbered_differently_pair_in_order() -> None:
    reference = named(["a:forward_output.0"], step=0, id="step0/a")
    candidate = named(["a:forward_output.0"], step=1, id="step1/a")
    ((_, _, how),) = match(reference, candidate).pairs
    assert "step or rank 0/None against 1/None" in how.note


def test_pairs_come_in_the_execution_order_of_the_reference() -> None:
    names = ["b:forward_output.0", "a:forward_output.0", "c:forward_output.0"]
    found = match(named(names), named(sorted(names)))
    assert [a.id for a, *_ in found.pairs] == names


def test_everything_is_paired_or_listed() -> None:
    reference = named(["a:forward_output.0", "b:forward_output.0"])
    candidate = named(["b:forward_output.0", "c:forward_output.0"])
    found = match(reference, candidate)
    assert [t.id for t in found.unmatched_reference] == ["a:forward_output.0"]
    assert [t.id for t in found.unmatched_candidate] == ["c:forward_output.0"]
