"""Rounding or fault, where, which side: small decoders with honest kernels and planted faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from memory_runs import MemoryValues
from tiny_decoder import Decoder

from analysis.compare import compare
from analysis.diagnose import diagnose
from analysis.findings.texts import describe
from analysis.verdict import judge
from core.findings import Diagnosis, Finding
from core.runs import Array, Run
from loaders import open_run

SAMPLES = Path(__file__).parent.parent / "sample_dumps"
FORMATS = ("float32", "float16", "bfloat16")


def diagnosis(reference: Run, candidate: Run) -> Diagnosis:
    return diagnose(reference, candidate, compare(reference, candidate))


def first(found: Diagnosis) -> tuple[str, str, str]:
    assert found.findings, "nothing was found"
    finding = found.findings[0]
    return finding.operator, finding.slot, finding.side


def thinned(run: Run, keep: Callable[[str], bool]) -> Run:
    assert isinstance(run.values, MemoryValues)
    return replace(run, tensors={n: t for n, t in run.tensors.items() if keep(n)})


def scaled(by: float) -> Callable[[Array], Array]:
    return lambda y: y * np.float32(by)


def one_row(y: Array) -> Array:
    y = y.copy()
    y[0, 5] *= np.float32(1.5)
    return y


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("candidate", FORMATS)
@pytest.mark.parametrize("reference", FORMATS)
def test_honest_kernels_of_any_format_give_no_finding(
    reference: str, candidate: str, seed: int
) -> None:
    a = Decoder(dtype=reference, seed=seed, padding=3).run()
    b = Decoder(dtype=candidate, order=16, seed=seed, padding=3).run()
    found = diagnosis(a, b)
    assert found.verdict == "rounding", [f.operator for f in found.findings]
    assert max(r.ratio_candidate for r in found.replays) < 1.5
    assert not found.not_replayed


def test_the_identity_of_the_replay_holds() -> None:
    found = diagnosis(Decoder().run(), Decoder(order=8).run())
    for replay in found.replays:
        parts = replay.local_candidate + replay.propagated + replay.local_reference
        assert replay.total <= parts * (1 + 1e-9)


@pytest.mark.parametrize("where", ["layers.1.attn", "layers.0.down", "layers.1.act", "lm_head"])
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("fault", [scaled(1.05), one_row])
def test_a_planted_fault_is_named_and_nothing_else_is(
    where: str, dtype: str, fault: Callable[[Array], Array]
) -> None:
    broken = Decoder(dtype=dtype, order=16, faults={where: fault}).run()
    found = diagnosis(Decoder(dtype=dtype).run(), broken)
    assert found.verdict == "fault"
    assert first(found) == (where, "forward_output.0", "candidate")
    assert len(found.findings) == 1


def test_a_slope_far_below_one_rounding_is_seen() -> None:
    broken = Decoder(dtype="bfloat16", faults={"layers.0.up": lambda y: y}).run()
    honest = diagnosis(Decoder(dtype="bfloat16").run(), broken)
    assert honest.verdict == "rounding"
    gentle = Decoder(dtype="bfloat16", weights={"layers.0.up": scaled(1.0)})
    gentle.faults = {"layers.0.mul": scaled(1.003)}
    assert first(diagnosis(Decoder(dtype="bfloat16").run(), gentle.run()))[0] == "layers.0.mul"


def test_two_faults_are_both_found_in_execution_order() -> None:
    faults = {"layers.0.o": scaled(1.1), "layers.1.gate": one_row}
    found = diagnosis(Decoder().run(), Decoder(order=8, faults=faults).run())
    assert [f.operator for f in found.findings] == ["layers.0.o", "layers.1.gate"]


def test_a_fault_of_the_reference_is_laid_at_its_door() -> None:
    found = diagnosis(Decoder(faults={"layers.1.up": one_row}).run(), Decoder(order=8).run())
    assert first(found) == ("layers.1.up", "forward_output.0", "reference")


def test_renamed_classes_change_nothing() -> None:
    names = {"Linear": "XpuGemm", "RMSNorm": "VendorNorm7", "FusedAttention": "Blob", "SiLU": "K3"}
    broken = Decoder(order=8, classes=names, faults={"layers.1.down": one_row}).run()
    found = diagnosis(Decoder(classes=names).run(), broken)
    assert first(found)[0] == "layers.1.down"
    assert not found.not_replayed


def test_an_attribute_nobody_recorded_is_fitted_to_the_reference() -> None:
    honest = diagnosis(Decoder(eps=1e-3).run(), Decoder(eps=1e-3, order=8).run())
    assert honest.verdict == "rounding"
    fitted = [r.attributes["eps"] for r in honest.replays if "norm" in r.tensor]
    assert fitted == [pytest.approx(1e-3)] * len(fitted)
    wrong = diagnosis(Decoder(eps=1e-3).run(), Decoder(eps=1e-5, order=8).run())
    assert first(wrong)[0] == "layers.0.attn_norm"


def test_garbage_in_padding_is_no_finding_and_a_nan_there_is() -> None:
    def spoilt(value: float) -> Callable[[Array], Array]:
        def fault(y: Array) -> Array:
            y = y.copy()
            y[1, :3] = value
            return y

        return fault

    reference = Decoder(dtype="bfloat16", padding=3).run()
    for value, verdict in ((3.0, "rounding"), (np.nan, "fault")):
        faults = {"layers.0.attn": spoilt(value)}
        broken = Decoder(dtype="bfloat16", order=16, padding=3, faults=faults).run()
        assert diagnosis(reference, broken).verdict == verdict


def test_other_ids_are_setup_and_come_first() -> None:
    def other(ids: Array) -> Array:
        ids = ids.copy()
        ids[0, 3] = 1 + ids[0, 3] % 30
        return ids

    broken = Decoder(ids=other, faults={"lm_head": one_row}).run()
    found = diagnosis(Decoder().run(), broken)
    assert found.verdict == "setup"
    assert first(found)[:2] == ("embed", "forward_input.0")
    assert found.findings[0].mechanism == "different_inputs"


def test_one_wrong_weight_is_a_fault_and_many_are_another_checkpoint() -> None:
    one = diagnosis(Decoder().run(), Decoder(weights={"layers.1.o": scaled(1.5)}).run())
    assert (one.verdict, *first(one)[:2]) == ("fault", "layers.1.o", "forward_params.weight")
    many = {f"layers.{n}.{w}": scaled(1.5) for n in range(2) for w in "qkv"}
    other = diagnosis(Decoder().run(), Decoder(weights=many).run())
    assert (other.verdict, first(other)[0]) == ("setup", "layers.0.q")


def test_one_turned_weight_is_wrong_and_many_are_a_way_of_storing_them() -> None:
    reference = Decoder().run()
    broken = Decoder(order=8, weights={"layers.1.o": lambda w: w.T.copy()}).run()
    assert first(diagnosis(reference, broken))[:2] == ("layers.1.o", "forward_params.weight")
    other = Decoder(order=8).run()
    assert isinstance(other.values, MemoryValues)
    square = [
        n
        for n in other.tensors
        if n.endswith((".q:forward_params.weight", ".o:forward_params.weight"))
    ]
    turned = {**other.values.arrays, **{n: other.values.arrays[n].T.copy() for n in square}}
    stored = replace(other, values=MemoryValues(turned))
    assert len(square) == 4
    assert diagnosis(reference, stored).verdict == "rounding"


def test_a_weight_cast_to_another_format_is_the_same_weight() -> None:
    assert diagnosis(Decoder().run(), Decoder(dtype="bfloat16").run()).verdict == "rounding"


def test_inputs_that_were_not_captured_are_found_among_the_outputs() -> None:
    def keep(name: str) -> bool:
        return "forward_output" in name or name.endswith(("mask:forward_input.0", "input.3"))

    broken = Decoder(order=8, faults={"layers.1.mul": one_row}).run()
    found = diagnosis(thinned(Decoder().run(), keep), thinned(broken, keep))
    assert first(found) == ("layers.1.mul", "forward_output.0", "candidate")
    assert any("attn_add:" in r.tensor for r in found.replays)


def test_layer_outputs_alone_give_the_layer_and_a_zone() -> None:
    def keep(name: str) -> bool:
        return name.startswith(("embed", "lm_head")) or "mlp_add:forward_output" in name

    def seen(**parts: object) -> Finding:
        broken = Decoder(dtype="bfloat16", order=16, **parts)  # type: ignore[arg-type]
        a, b = Decoder(dtype="bfloat16").run(), broken.run()
        found = diagnosis(thinned(a, keep), thinned(b, keep))
        return found.findings[0]

    finding = seen(faults={"layers.1.attn": scaled(3.0)})
    assert finding.operator == "layers.1.mlp_add"
    assert finding.zone == ("layers.0.mlp_add", "layers.1.mlp_add")
    assert finding.side == "unknown"
    assert not finding.hypotheses
    assert "layers.0.mlp_add … layers.1.mlp_add" in describe(finding).next_steps[0]


def test_honest_outputs_that_nothing_recomputes_are_rounding() -> None:
    honest = (
        thinned(Decoder(order=n).run(), lambda name: "mlp_add:forward_o" in name) for n in (0, 16)
    )
    found = diagnosis(*honest)
    assert (found.verdict, found.replays) == ("rounding", ())


@pytest.mark.parametrize(("name", "verdict"), [("SiLU", "fault"), ("TopKRouter", "rounding")])
def test_a_token_that_a_router_sends_another_way_is_no_growth(name: str, verdict: str) -> None:
    def seen(**parts: object) -> Run:
        made = Decoder(dtype="bfloat16", classes={"SiLU": name}, **parts).run()  # type: ignore[arg-type]
        return thinned(made, lambda n: n.endswith(("act:forward_output.0", "add:forward_output.0")))

    elsewhere = {"layers.0.mlp_add": lambda y: np.concatenate((y[:, :-1], -y[:, -1:]), 1)}
    assert diagnosis(seen(), seen(order=16, faults=elsewhere)).verdict == verdict


def test_a_wrong_input_of_a_block_is_laid_to_the_block_before() -> None:
    def keep(name: str) -> bool:
        return name.startswith(("embed", "mask")) or "norm:forward_input" in name

    faults = {"layers.0.down": scaled(-2.0)}
    a = thinned(Decoder(dtype="bfloat16").run(), keep)
    b = thinned(Decoder(dtype="bfloat16", order=16, faults=faults).run(), keep)
    finding = diagnosis(a, b).findings[0]
    assert finding.module == "layers.0.mlp_norm"
    assert finding.tensor == "layers.1.attn_norm:forward_input.0"
    assert finding.zone == ("layers.0.mlp_norm", "layers.1.attn_norm")


def test_a_judgement_takes_floors_and_verdict_from_the_diagnosis() -> None:
    reference, broken = Decoder().run(), Decoder(order=8, faults={"layers.0.o": one_row}).run()
    comparison = compare(reference, broken)
    judgement = judge(comparison, diagnose(reference, broken, comparison))
    names = [p.reference.id for p in comparison.pairs]
    at = names.index("layers.0.o:forward_output.0")
    assert judgement.first_divergence == at
    assert judgement.floor_kinds[at] == "replay"
    assert judgement.times_floor[at] > 1000
    assert judgement.verdicts[:at].count("rounding") == at
    assert judge(comparison).floor_kinds[at] == "depth"


@pytest.mark.parametrize(
    ("sample", "verdict", "where"),
    [
        ("minilm-fp32-bf16", "rounding", None),
        ("xray-renamed", "rounding", None),
        ("decoder-fault", "fault", ("model.layers.2.self_attn.rotary_emb", "forward_output.0")),
        (
            "decoder-training",
            "fault",
            ("model.layers.1.post_attention_layernorm", "backward_output.0"),
        ),
    ],
)
def test_the_samples_stories_come_out(
    sample: str, verdict: str, where: tuple[str, str] | None
) -> None:
    found = diagnosis(
        open_run(SAMPLES / sample / "reference"), open_run(SAMPLES / sample / "candidate")
    )
    assert found.verdict == verdict
    assert [(f.operator, f.slot) for f in found.findings] == ([where] if where else [])
