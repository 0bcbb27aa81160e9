"""How much was compared, and what about the dumps themselves is odd."""

from collections.abc import Mapping

import numpy as np
import pytest
from memory_runs import run_of

from analysis.compare import compare
from analysis.coverage_text import oddity_in_words, shares_in_words
from core.coverage import Coverage
from core.runs import Array, Run

LAYERS = 5


def values(seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal((4, 8)).astype(np.float32)


def stack() -> dict[str, Array]:
    """Layers that hand their outputs on, with a module inside each."""
    arrays = {}
    for n in range(LAYERS):
        arrays[f"layers.{n}:forward_input.0"] = values(n)
        arrays[f"layers.{n}.mlp:forward_input.0"] = values(20 + n)
        arrays[f"layers.{n}.mlp:forward_output.0"] = values(40 + n)
        arrays[f"layers.{n}:forward_output.0"] = values(n + 1)
    return arrays


def covered(candidate: Mapping[str, Array] | Run, reference: Run | None = None) -> Coverage:
    run = candidate if isinstance(candidate, Run) else run_of(candidate)
    coverage = compare(reference or run_of(stack()), run).coverage
    assert coverage is not None
    return coverage


def odd(coverage: Coverage) -> dict[tuple[str, str], tuple[str, ...]]:
    return {(o.check, o.side): o.places for o in coverage.oddities}


def test_a_sound_pair_of_dumps_has_no_oddity() -> None:
    coverage = covered(stack())
    assert coverage.oddities == ()
    assert (coverage.tensors.compared, coverage.tensors.total) == (20, 20)
    assert coverage.nbytes.fraction == coverage.modules.fraction == 1.0


def test_shares_count_tensors_bytes_and_modules_of_the_reference() -> None:
    arrays = {name: a for name, a in stack().items() if not name.startswith("layers.4")}
    coverage = covered(arrays)
    assert (coverage.tensors.compared, coverage.tensors.total) == (16, 20)
    assert (coverage.nbytes.compared, coverage.nbytes.total) == (16 * 128, 20 * 128)
    assert (coverage.modules.compared, coverage.modules.total) == (8, 10)
    assert {(m.side, m.module, m.tensors) for m in coverage.unmatched} == {
        ("reference", "layers.4", 2),
        ("reference", "layers.4.mlp", 2),
    }
    assert shares_in_words(coverage).startswith("16 of 20 tensors (80 %)")


def test_a_module_whose_inputs_were_missed_is_named() -> None:
    arrays = stack()
    del arrays["layers.2.mlp:forward_input.0"]
    assert odd(covered(arrays)) == {
        ("outputs_without_inputs", "candidate"): ("layers.2.mlp",),
    }


def test_a_dump_of_outputs_alone_is_not_odd() -> None:
    arrays = {name: a for name, a in stack().items() if "output" in name}
    assert odd(covered(arrays)) == {}


def test_a_gap_in_the_numbers_of_the_layers_is_named() -> None:
    arrays = {name: a for name, a in stack().items() if "layers.2" not in name}
    assert odd(covered(arrays))["layers_missing", "candidate"] == ("layers.2",)


def test_one_buffer_in_several_layers_is_an_artefact_of_one_side() -> None:
    arrays = stack()
    for n in range(1, LAYERS):
        arrays[f"layers.{n}.mlp:forward_output.0"] = arrays["layers.0.mlp:forward_output.0"]
    assert odd(covered(arrays)) == {
        ("identical_layers", "candidate"): ("layers.{0, 1, 2, 3, 4}.mlp",)
    }
    assert odd(covered(arrays, run_of(arrays))) == {}  # both sides: a table made in every layer


def test_an_input_that_is_not_the_output_before_it_breaks_the_chain() -> None:
    arrays = stack()
    arrays["layers.1:forward_output.0"] = arrays["layers.1:forward_output.0"] + 1
    assert odd(covered(arrays)) == {("broken_chain", "candidate"): ("layers.2",)}


def test_a_model_that_adds_something_between_layers_is_not_odd() -> None:
    arrays = stack()
    for n in range(LAYERS):
        arrays[f"layers.{n}:forward_input.0"] = values(60 + n)
    assert odd(covered(arrays, run_of(arrays))) == {}


@pytest.mark.parametrize(("value", "check"), [(np.nan, "only_nan"), (2.5, "constant")])
def test_tensors_that_say_nothing_are_named(value: float, check: str) -> None:
    arrays = stack()
    arrays["layers.0.mlp:forward_output.0"] = np.full((4, 8), value, np.float32)
    found = covered(arrays).oddities
    assert [(o.check, o.side, o.count) for o in found] == [(check, "candidate", 1)]
    assert "layers.0.mlp:forward_output.0" in oddity_in_words(found[0])


def test_a_name_used_twice_is_reported() -> None:
    name = "layers.0.mlp:forward_output.0"
    twice = {**stack(), "again:forward_output.0": values(3)}
    facts = {"again:forward_output.0": {"id": f"{name}~2", "name": name, "module": "layers.0.mlp"}}
    assert odd(covered(run_of(twice, facts=facts)))["duplicated_names", "candidate"] == (
        f"{name}~2",
    )


def test_replicas_that_differ_are_a_finding_of_coverage() -> None:
    ranks = [values(1), values(1)]
    ranks[1] = ranks[1] + np.float32(1e-6)
    names = [f"rank{n}/norm" for n in range(2)]
    arrays = {f"norm{n}:forward_output.0": a for n, a in enumerate(ranks)}
    facts = {
        f"norm{n}:forward_output.0": {"id": name, "rank": n, "module": "norm"}
        for n, name in enumerate(names)
    }
    reference = run_of({"x:forward_output.0": values(1)},
                       facts={"x:forward_output.0": {"id": "norm", "module": "norm"}})  # fmt: skip
    assert odd(covered(run_of(arrays, facts=facts), reference)) == {
        ("replicas_differ", "candidate"): ("rank0/norm",)
    }
