"""Rounding or fault, and where it starts, on small planted stories."""

from collections.abc import Mapping

import numpy as np
import pytest
from memory_runs import run_of

from analysis.compare import compare
from analysis.floor import block_of, floors
from analysis.verdict import LIMIT, judge
from core.comparison import Comparison, Judgement, Settings, Tolerance
from core.runs import Array

GENERATOR = np.random.default_rng(7)
U = 2.0**-24  # unit roundoff of float32
CHAIN = ("embed", "layers.0.attn", "layers.0.mlp", "layers.1.attn", "layers.1.mlp", "head")


def chain(noise: Mapping[str, float], *, seed: int = 0) -> dict[str, Array]:
    """Each module hands its output to the next; `noise` is added where named and carried on."""
    values: dict[str, Array] = {}
    clean = np.random.default_rng(1).standard_normal((4, 64))
    rng = np.random.default_rng(seed)
    carried = np.zeros_like(clean)
    for name in CHAIN:
        values[f"{name}:forward_input.0"] = (clean + carried).astype(np.float32)
        carried = carried + noise.get(name, 0.0) * rng.standard_normal(clean.shape)
        values[f"{name}:forward_output.0"] = (clean + carried).astype(np.float32)
    return values


def judged(
    candidate: Mapping[str, Array], settings: Settings | None = None
) -> tuple[Comparison, Judgement]:
    comparison = compare(run_of(chain({})), run_of(candidate), settings)
    return comparison, judge(comparison)


def verdict_of(comparison: Comparison, judgement: Judgement, tensor: str) -> str:
    names = [p.reference.id for p in comparison.pairs]
    return judgement.verdicts[names.index(tensor)]


def first(comparison: Comparison, judgement: Judgement) -> str | None:
    n = judgement.first_divergence
    return None if n is None else comparison.pairs[n].reference.id


def test_equal_runs_agree_to_rounding() -> None:
    _, judgement = judged(chain({}))
    assert judgement.verdict == "rounding"
    assert judgement.first_divergence is None
    assert set(judgement.times_floor) == {0.0}
    assert judgement.sentence == "The two runs are equal."


def test_noise_of_the_format_is_rounding() -> None:
    _, judgement = judged(chain(dict.fromkeys(CHAIN, U)))
    assert judgement.verdict == "rounding"
    assert 0 < max(judgement.times_floor) < LIMIT


@pytest.mark.parametrize("where", CHAIN)
def test_the_planted_fault_is_the_first_divergence_and_the_rest_inherits(where: str) -> None:
    comparison, judgement = judged(chain({where: 1e-2}))
    assert judgement.verdict == "fault"
    assert first(comparison, judgement) == f"{where}:forward_output.0"
    assert judgement.verdicts.count("fault") == 1
    later = CHAIN[CHAIN.index(where) + 1 :]
    assert judgement.verdicts.count("inherited") == 2 * len(later)


def test_a_fault_on_top_of_an_inherited_error_is_a_fault_too() -> None:
    comparison, judgement = judged(chain({"layers.0.attn": 1e-4, "layers.1.mlp": 1e-1}))
    assert first(comparison, judgement) == "layers.0.attn:forward_output.0"
    assert verdict_of(comparison, judgement, "layers.1.mlp:forward_output.0") == "fault"


def test_a_changed_input_of_the_model_is_where_the_runs_part() -> None:
    candidate = chain({})
    for name in candidate:
        candidate[name] = candidate[name] + np.float32(0.5)
    comparison, judgement = judged(candidate)
    assert first(comparison, judgement) == "embed:forward_input.0"
    assert judgement.verdicts.count("fault") == 1


def test_a_wrong_parameter_is_a_fault_and_its_output_inherits() -> None:
    weights = {"layers.0.mlp:forward_params.weight": np.ones(64, np.float32)}
    reference = run_of(weights | chain({}))
    wrong = {"layers.0.mlp:forward_params.weight": np.full(64, 1.1, np.float32)}
    comparison = compare(reference, run_of(wrong | chain({"layers.0.mlp": 1e-2})))
    judgement = judge(comparison)
    assert first(comparison, judgement) == "layers.0.mlp:forward_params.weight"
    assert verdict_of(comparison, judgement, "layers.0.mlp:forward_output.0") == "inherited"


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_non_finite_value_on_one_side_is_a_fault_however_small_the_rest(bad: float) -> None:
    candidate = chain({})
    candidate["layers.1.attn:forward_output.0"] = candidate["layers.1.attn:forward_output.0"].copy()
    candidate["layers.1.attn:forward_output.0"][0, 0] = bad
    comparison, judgement = judged(candidate)
    assert first(comparison, judgement) == "layers.1.attn:forward_output.0"
    assert "beyond any rounding" not in judgement.sentence
    assert "where rounding cannot" in judgement.sentence


def test_non_finite_values_on_both_sides_alike_are_no_fault() -> None:
    name = "head:forward_output.0"
    both = chain({})
    both[name] = both[name].copy()
    both[name][0] = -np.inf
    judgement = judge(compare(run_of(both), run_of(both)))
    assert judgement.verdict == "rounding"


def test_a_container_inherits_from_the_operator_inside_it() -> None:
    values, wrong = chain({}), chain({"layers.0.mlp": 1e-2})
    outer = "layers.0:forward_output.0"
    reference = dict(values) | {outer: values["layers.0.mlp:forward_output.0"]}
    candidate = dict(wrong) | {outer: wrong["layers.0.mlp:forward_output.0"]}
    comparison = compare(run_of(reference), run_of(candidate))
    judgement = judge(comparison)
    assert verdict_of(comparison, judgement, outer) == "inherited"
    assert first(comparison, judgement) == "layers.0.mlp:forward_output.0"


def test_ids_must_be_equal_to_the_last_element() -> None:
    ids = np.arange(100)
    reference = run_of(chain({}) | {"embed:forward_input.0": ids})
    other = ids.copy()
    other[50] += 1
    comparison = compare(reference, run_of(chain({}) | {"embed:forward_input.0": other}))
    judgement = judge(comparison)
    assert judgement.first_divergence == 0
    assert judgement.times_floor[0] == np.inf


def test_a_tolerance_of_the_users_decides_by_mismatches() -> None:
    noisy = chain({"layers.1.attn": 1e-2})
    _, strict = judged(noisy, Settings(Tolerance(atol=1e-3, rtol=0)))
    _, loose = judged(noisy, Settings(Tolerance(atol=1.0, rtol=0)))
    assert (strict.verdict, loose.verdict) == ("fault", "rounding")
    assert loose.sentence == "The two runs agree within the tolerance."
    assert "12 pairs differs by more than 1.00 plus 0 of the reference" in loose.detail


def test_little_coverage_is_never_a_plain_pass() -> None:
    reference = run_of(chain({}))
    candidate = run_of({"embed:forward_input.0": chain({})["embed:forward_input.0"]})
    judgement = judge(compare(reference, candidate))
    assert judgement.verdict == "uncompared"
    assert "1 of 12 tensors" in judgement.sentence


def test_uncompared_pairs_have_no_number_and_stay_in_the_list() -> None:
    reference, candidate = chain({}), chain({})
    candidate["head:forward_output.0"] = candidate["head:forward_output.0"][:, :8]
    comparison = compare(run_of(reference), run_of(candidate))
    judgement = judge(comparison)
    assert judgement.verdicts[-1] == "uncompared"
    assert np.isnan(judgement.times_floor[-1])
    assert "shapes differ: 4 × 64 against 4 × 8" in (comparison.pairs[-1].problem or "")


def test_the_floor_grows_with_depth_and_with_coarser_formats() -> None:
    comparison = compare(run_of(chain({})), run_of(chain({})))
    by_name = dict(
        zip((p.reference.operator for p in comparison.pairs), floors(comparison.pairs), strict=True)
    )
    assert by_name["layers.1.mlp"] > by_name["layers.0.mlp"]
    coarse = {n: v.astype(np.float16) for n, v in chain({}).items()}
    rougher = floors(compare(run_of(chain({})), run_of(coarse)).pairs)
    assert min(rougher) > max(floors(comparison.pairs))


def test_a_block_is_the_first_number_of_a_path() -> None:
    assert block_of("model.layers.17.mlp.experts.3") == 17
    assert block_of("head") is None
