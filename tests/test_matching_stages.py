"""What each stage of matching finds, how sure it is, and what it leaves alone."""

from collections.abc import Iterable, Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_runs import run_of

from analysis.compare import compare
from analysis.matching import match
from analysis.matching.naming import common_path, rules
from analysis.verdict import judge
from core.comparison import Comparison, Settings
from core.errors import CompareError
from core.runs import Array, Run


def values(*shape: int, seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def pairs(reference: Run, candidate: Run) -> dict[str, tuple[str, str, float]]:
    found = match(reference, candidate)
    return {a.id: (b.id, how.method, how.confidence) for a, b, how in found.pairs}


def renamed(arrays: Mapping[str, Array], names: Mapping[str, str]) -> dict[str, Array]:
    out = {}
    for name, array in arrays.items():
        for old, new in names.items():
            name = name.replace(old, new)
        out[name] = array
    return out


# --- names by the table


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("decoder.layers.3.self_attention.linear_proj", "layers.3.self_attn.o_proj"),
        ("transformer.h.0.ln_1", "layers.0.input_layernorm"),
        ("layers.7.attention.wq", "layers.7.self_attn.q_proj"),
        ("llama.layers.1.mlp.gate_up_fused_proj", "layers.1.mlp.gate_up_proj"),
        ("module.module.embedding.word_embeddings", "embed_tokens"),
        ("encoder.layer.2.attention.self.key", "layers.2.self_attn.k_proj"),
    ],
)
def test_the_table_brings_other_frameworks_names_to_the_common_spelling(
    theirs: str, ours: str
) -> None:
    assert ".".join(common_path(theirs)) == ours
    assert ".".join(common_path(ours)) == ours


def test_no_rule_of_the_table_undoes_another_or_begins_with_a_star() -> None:
    for old, common in rules().paths:
        assert old[0] != "*"
        path = ".".join("0" if s == "*" else s for s in common)
        assert ".".join(common_path(path)) == path


def test_names_of_another_framework_pair_by_the_table() -> None:
    ours = {
        "model.layers.0.self_attn.o_proj:forward_params.weight": values(6, 4, seed=1),
        "model.layers.0.input_layernorm:forward_params.weight": values(4, seed=2),
        "model.norm:forward_output.0": values(3, 4, seed=3),
    }
    names = {
        "model.layers.0.self_attn.o_proj": "decoder.layers.0.self_attention.linear_proj",
        "model.layers.0.input_layernorm": "decoder.layers.0.input_layernorm",
        "model.norm": "decoder.final_layernorm",
        "input_layernorm:forward_params.weight": "input_layernorm:forward_params.gamma",
    }
    found = pairs(run_of(ours), run_of(renamed(ours, names)))
    assert len(found) == 3
    assert {(method, sure) for _, method, sure in found.values()} == {("normalised", 0.9)}


# --- fused modules

Q, K, V = values(16, 12, seed=4), values(8, 12, seed=5), values(8, 12, seed=6)
ATTENTION = "model.layers.0.self_attn"
X = values(5, 12, seed=7)


def apart() -> dict[str, Array]:
    arrays = {}
    for name, weight in (("q_proj", Q), ("k_proj", K), ("v_proj", V)):
        arrays[f"{ATTENTION}.{name}:forward_params.weight"] = weight
        arrays[f"{ATTENTION}.{name}:forward_input.0"] = X
        arrays[f"{ATTENTION}.{name}:forward_output.0"] = X @ weight.T
    return arrays


def fused(weight: Array, name: str = f"{ATTENTION}.qkv_proj") -> dict[str, Array]:
    return {
        f"{name}:forward_params.weight": weight,
        f"{name}:forward_input.0": X,
        f"{name}:forward_output.0": X @ weight.T,
    }


def grouped(weights: list[Array], groups: int) -> Array:
    pieces = [np.split(w, groups) for w in weights]
    return np.concatenate([p[g] for g in range(groups) for p in pieces])


def all_equal(comparison: Comparison) -> bool:
    return all(p.stats is not None and p.stats.equal == p.stats.count for p in comparison.pairs)


def test_fused_qkv_is_compared_with_its_parts() -> None:
    comparison = compare(run_of(apart()), run_of(fused(np.concatenate([Q, K, V]))))
    assert not comparison.unmatched_reference
    assert not comparison.unmatched_candidate
    assert [p.shape for p in comparison.pairs][::3] == [(16, 12), (8, 12), (8, 12)]
    weights = [p for p in comparison.pairs if p.reference.slot == "parameter"]
    assert [p.adaptation.steps[0].arguments for p in weights if p.adaptation] == [
        (0, 0, 16),
        (0, 16, 24),
        (0, 24, 32),
    ]
    assert judge(comparison).verdict == "rounding"


def test_fused_qkv_without_a_batch_axis_is_compared_with_its_parts() -> None:
    batched = {n: a[None] if "weight" not in n else a for n, a in apart().items()}
    for ours, theirs in ((batched, fused(np.concatenate([Q, K, V]))),
                         (fused(np.concatenate([Q, K, V])), batched)):  # fmt: skip
        comparison = compare(run_of(ours), run_of(theirs))
        assert not comparison.unmatched_reference
        assert {p.problem for p in comparison.pairs} == {None}
        assert judge(comparison).verdict == "rounding"


def test_parts_are_joined_to_be_compared_with_a_fused_reference() -> None:
    comparison = compare(run_of(fused(np.concatenate([Q, K, V]))), run_of(apart()))
    assert len(comparison.pairs) == 3
    assert not comparison.unmatched_candidate
    assert judge(comparison).verdict == "rounding"


def big(rows: int, seed: int) -> Array:
    return values(rows, 12, seed=seed)


@pytest.mark.parametrize("turned", [False, True])
def test_query_groups_interleaved_with_their_keys_are_found_by_value(turned: bool) -> None:
    q, k, v = big(64, 1), big(32, 2), big(32, 3)
    parts = {
        f"layers.0.self_attn.{n}:forward_params.weight": w
        for n, w in (("q_proj", q), ("k_proj", k), ("v_proj", v))
    }
    whole = grouped([q, k, v], 2)
    whole_run = run_of(
        {
            "decoder.layers.0.self_attention.linear_qkv:forward_params.weight": (
                whole.T.copy() if turned else whole
            )
        }
    )
    comparison = compare(run_of(parts), whole_run)
    assert len(comparison.pairs) == 3
    assert all_equal(comparison)
    back = compare(whole_run, run_of(parts))
    assert len(back.pairs) == 1
    assert all_equal(back)


def test_gate_and_up_in_shards_are_put_in_order() -> None:
    gate, up = big(32, 8), big(32, 9)
    parts = {
        f"layers.0.mlp.{n}_proj:forward_params.weight": w for n, w in (("gate", gate), ("up", up))
    }
    name = "layers.0.mlp.gate_up_proj:forward_params.weight"
    shards = [np.concatenate([np.split(gate, 2)[r], np.split(up, 2)[r]]) for r in range(2)]
    ranks = {f"rank{r}/{name}": shard for r, shard in enumerate(shards)}
    facts = {
        f"rank{r}/{name}": {"rank": r, "module": "layers.0.mlp.gate_up_proj", "op": "",
                            "argument": "weight"}
        for r in range(2)
    }  # fmt: skip
    comparison = compare(run_of(parts), run_of(ranks, facts=facts))
    assert len(comparison.pairs) == 2
    assert all_equal(comparison)


# --- sequence


def calls(*names: str, module: str = "layers.0.mlp", noise: float = 0.0) -> dict[str, Array]:
    """Each call adds a term of its own to what it was handed; `name@term` says which."""
    arrays, x = {}, values(4, 6, seed=50)
    for n, call in enumerate(names):
        name, _, term = call.partition("@")
        arrays[f"{module}/{name}:forward_input.0"] = x
        x = x + values(4, 6, seed=100 + int(term or n)) * (1 + noise)
        arrays[f"{module}/{name}:forward_output.0"] = x
    return arrays


def test_one_more_call_of_a_function_shifts_no_pair() -> None:
    reference = run_of(calls("mul@0", "add@1", "mul_1@2", "silu@3"))
    candidate = calls("mul@0", "add@1", "mul_1@7", "mul_2@2", "silu@3")
    extra = values(4, 6, seed=107)
    for name in list(candidate):  # the extra call leaves what comes after it as it was
        if "mul_2" in name or "silu" in name:
            candidate[name] = candidate[name] - extra
    found = pairs(reference, run_of(candidate))
    assert found["layers.0.mlp/mul_1:forward_output.0"][:2] == (
        "layers.0.mlp/mul_2:forward_output.0",
        "sequence",
    )
    assert found["layers.0.mlp/mul:forward_output.0"][0] == "layers.0.mlp/mul:forward_output.0"
    assert found["layers.0.mlp/silu:forward_output.0"][1] == "exact"


def test_renamed_modules_pair_by_their_place_in_the_block() -> None:
    ours = {f"layers.{n}.{m}:forward_output.0": values(3, 8, seed=10 * n + i)
            for n in range(3) for i, m in enumerate(("norm", "attn", "proj"))}  # fmt: skip
    theirs = renamed(ours, {"layers": "blocks", "attn": "mixer", "proj": "outlet"})
    found = pairs(run_of(ours), run_of(theirs))
    assert len(found) == 9
    assert found["layers.2.attn:forward_output.0"][0] == "blocks.2.mixer:forward_output.0"
    assert {method for _, method, _ in found.values()} <= {"sequence", "normalised"}


def test_an_ambiguous_place_with_other_values_is_only_suggested() -> None:
    ours = {f"layers.0.a{n}:forward_output.0": values(3, 8, seed=n) for n in range(2)}
    theirs = {f"layers.0.b{n}:forward_output.0": values(3, 8, seed=20 + n) for n in range(3)}
    comparison = compare(run_of(ours), run_of(theirs))
    suggested = [p for p in comparison.pairs if p.match.is_suggested]
    assert len(suggested) == len(comparison.pairs) == 2
    assert all(p.problem is not None and p.problem.startswith("suggested") for p in suggested)
    judgement = judge(comparison)
    assert set(judgement.verdicts) == {"uncompared"}
    assert comparison.coverage is not None
    assert comparison.coverage.suggested == 2


# --- fingerprints


def paddle_state() -> tuple[dict[str, Array], dict[str, Array]]:
    """The state of a small network, and the same as paddle keeps it: linears transposed."""
    ours, theirs = {}, {}
    for n in range(4):
        weight, bias = values(16, 16, seed=n), values(16, seed=40 + n)
        wide = values(16, 24, seed=60 + n)
        norm = 1 + 0.05 * values(64, seed=90 + n)  # each is nearly every other one
        ours |= {
            f"blocks.{n}.square:forward_params.weight": weight,
            f"blocks.{n}.square:forward_params.bias": bias,
            f"blocks.{n}.wide:forward_params.weight": wide,
            f"blocks.{n}.norm:forward_params.weight": norm,
        }
        theirs |= {
            f"linear_{2 * n}:forward_params.w_0": weight.T.copy(),
            f"linear_{2 * n}:forward_params.b_0": bias,
            f"linear_{2 * n + 1}:forward_params.w_0": wide.T.astype(np.float16),
            f"norm_{n}:forward_params.w_0": norm.astype(np.float16),
        }
    return ours, dict(sorted(theirs.items(), key=lambda item: item[0][::-1]))


def test_a_paddle_state_pairs_by_its_weights() -> None:
    ours, theirs = paddle_state()
    comparison = compare(run_of(ours), run_of(theirs))
    assert not comparison.unmatched_reference
    assert not comparison.unmatched_candidate
    assert {p.match.method for p in comparison.pairs} == {"fingerprint"}
    got = {p.reference.id: p.candidate.id for p in comparison.pairs}
    for n in range(4):
        assert got[f"blocks.{n}.square:forward_params.weight"] == (
            f"linear_{2 * n}:forward_params.w_0"
        )
        assert got[f"blocks.{n}.wide:forward_params.weight"] == (
            f"linear_{2 * n + 1}:forward_params.w_0"
        )
        assert got[f"blocks.{n}.norm:forward_params.weight"] == f"norm_{n}:forward_params.w_0"
    assert judge(comparison).verdict == "rounding"


def test_activations_follow_the_weights_of_their_module() -> None:
    ours, theirs = paddle_state()
    for n in range(4):
        activation = values(3, 16, seed=80 + n)
        ours[f"blocks.{n}.square:forward_output.0"] = activation
        theirs[f"linear_{2 * n}:forward_output.0"] = activation + 9  # a fault does not hide it
    found = pairs(run_of(ours), run_of(theirs))
    for n in range(4):
        name, method, sure = found[f"blocks.{n}.square:forward_output.0"]
        assert (name, method) == (f"linear_{2 * n}:forward_output.0", "fingerprint")
        assert sure >= 0.5


def test_different_weights_of_one_shape_are_not_taken_for_each_other() -> None:
    ours = {f"a{n}:forward_params.weight": values(8, 8, seed=n) for n in range(3)}
    theirs = {f"b{n}:forward_params.weight": values(8, 8, seed=30 + n) for n in range(3)}
    found = match(run_of(ours), run_of(theirs))
    assert not [how for *_, how in found.pairs if not how.is_suggested]


# --- sums with a residual


def test_a_hidden_state_and_its_residual_are_added() -> None:
    hidden, residual = values(4, 8, seed=1), values(4, 8, seed=2)
    whole = {"layers.0:forward_output.0": hidden + residual}
    split = {"layers.0:forward_output.0": hidden, "layers.0:forward_output.1": residual}
    for ours, theirs in ((whole, split), (split, whole)):
        comparison = compare(run_of(ours), run_of(theirs))
        (pair,) = comparison.pairs
        assert pair.adaptation is not None
        assert [s.operation for s in pair.adaptation.steps] == ["sum"]
        assert pair.stats is not None
        assert pair.stats.equal == pair.stats.count
        assert not comparison.unmatched_reference
        assert not comparison.unmatched_candidate


def test_a_faulty_state_is_not_explained_by_any_other_tensor_beside_it() -> None:
    hidden, other = values(4, 8, seed=1), values(4, 8, seed=2)
    ours = {"layers.0:forward_output.0": hidden}
    theirs = {"layers.0:forward_output.0": -hidden, "layers.0:forward_output.1": other}
    (pair, *_) = compare(run_of(ours), run_of(theirs)).pairs
    assert pair.adaptation is None


# --- steps


def stepped(steps: Iterable[int]) -> Run:
    names = [f"step{s}/a" for s in steps]
    arrays = {f"x{s}:forward_output.0": values(4, seed=s) for s in steps}
    facts = {
        key: {"id": name, "step": s, "module": "x"}
        for key, name, s in zip(arrays, names, steps, strict=True)
    }
    return run_of(arrays, facts=facts)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("", {1: 1, 2: 2}),
        ("number", {1: 1, 2: 2}),
        ("order", {0: 1, 1: 2, 2: 3}),
        ("-1", {0: 1, 1: 2, 2: 3}),
    ],
)
def test_steps_are_aligned_as_asked(steps: str, expected: dict[int, int]) -> None:
    found = match(stepped([0, 1, 2]), stepped([1, 2, 3]), Settings(steps=steps))
    assert {a.step: b.step for a, b, how in found.pairs if not how.is_suggested} == expected


def test_a_comparison_is_limited_to_the_steps_asked_for() -> None:
    runs = stepped([0, 1, 2]), stepped([1, 2, 3])
    comparison = compare(*runs, Settings(steps="order", only_steps=(1, 2)))
    assert [(p.reference.step, p.candidate.step) for p in comparison.pairs] == [(1, 2), (2, 3)]
    assert (comparison.reference.tensors, comparison.candidate.tensors) == (2, 2)
    assert comparison.unmatched_candidate == ()
    with pytest.raises(CompareError, match="no tensor of these steps"):
        compare(*runs, Settings(only_steps=(9,)))
    with pytest.raises(CompareError, match="cannot be aligned by 'soon'"):
        compare(*runs, Settings(steps="soon"))


# --- whatever the dumps


SHAPES = [(), (1,), (3,), (2, 3), (3, 2), (3, 3), (1, 2, 3), (6,), (0, 2)]


@st.composite
def dumps(draw: st.DrawFn) -> Run:
    """A few tensors of like names, shapes and values, on some ranks and steps."""
    arrays, facts = {}, {}
    for n in range(draw(st.integers(1, 8))):
        module = draw(st.sampled_from(["a", "layers.0.q_proj", "layers.0.qkv_proj", "layers.1.b"]))
        slot = draw(st.sampled_from(["forward_output", "forward_input", "forward_params"]))
        op = draw(st.sampled_from(["", "/mul", "/mul_1"]))
        name = f"{n}{module}{op}:{slot}.0"
        shape = draw(st.sampled_from(SHAPES))
        arrays[name] = np.full(shape, np.nan) if n == 7 else values(*shape, seed=n % 3)
        step, rank = draw(st.integers(0, 1)), draw(st.integers(0, 2))
        facts[name] = {"module": module, "step": step, "rank": rank,
                       "id": f"step{step}/rank{rank}/{draw(st.integers(0, 3))}/{n}"}  # fmt: skip
    return run_of(arrays, facts=facts)


@given(reference=dumps(), candidate=dumps())
def test_every_tensor_is_in_a_pair_or_listed_whatever_the_dumps(
    reference: Run, candidate: Run
) -> None:
    comparison = compare(reference, candidate)
    for side, run, rest in (
        ("reference", reference, comparison.unmatched_reference),
        ("candidate", candidate, comparison.unmatched_candidate),
    ):
        paired = {t.id for p in comparison.pairs for t in p.members(side)}  # type: ignore[arg-type]
        assert paired | {t.id for t in rest} == set(run.tensors)
        assert not paired & {t.id for t in rest}
    assert len({p.reference.id for p in comparison.pairs}) == len(comparison.pairs)
    assert all((p.stats is None) != (p.problem is None) for p in comparison.pairs)
    again = compare(reference, candidate)
    assert again.id == comparison.id
    assert again.coverage == comparison.coverage
