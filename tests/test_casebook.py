"""The diagnosis on pairs whose answer is known: verdict, place and mechanism, exactly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.planted import tiny_benign, tiny_faults, tiny_kinds, torch_benign, torch_fault_pairs
from benchmarks.planted.casebook import FOLDER, casebook, is_present
from benchmarks.planted.manifest import Entry, difficulty, read, write
from benchmarks.planted.predicting import Place, Prediction, predict, score_by_casebook
from benchmarks.planted.scoring import judged, score, summary
from benchmarks.planted.tiny_pairs import write_case
from benchmarks.planted.torch_pairs import write_plan

needs_casebook = pytest.mark.skipif(
    not is_present(), reason=f"no casebook in ../{FOLDER.parent.name}/{FOLDER.name}"
)
# Seeds of the casebook's own cases: one of each kind of sign.
VISIBLE = {
    "tf32_gemm": 12,
    "rope_phase_16bit": 16,
    "fp16_overflow": 21,
    "act_variant": 26,
    "norm_eps": 29,
    "tile_tail": 40,
    "stale_weight": 43,
    "cache_block_reuse": 47,
    "int8_saturation": 51,
    "different_inputs": 61,
}
# Places in our own tables: mechanism, row.
FURTHER = {
    "splitk_16bit": 0,
    "norm_mean_subtract": 1,
    "gqa_repeat_order": 0,
    "nibble_order": 0,
    "softcap_dropped": 3,
}
BENIGN = (1, 60, 118, 140, 151)  # places among the honest pairs of the tiny model
TORCH_BENIGN = ("llama f b blocks xray", "gpt f f eager")
TORCH_FAULTS = ("rope_interleave", "pads_attended", "grad_scale")


def diagnosed(entry: Entry, folder: Path) -> Prediction:
    assert entry.problems == []
    said = predict(folder / entry.id)
    assert said.error == ""
    return said


def check_fault(entry: Entry, folder: Path) -> None:
    said = diagnosed(entry, folder)
    assert said.verdict == entry.verdict
    first = said.first
    assert first is not None
    assert (first.module, first.slot, first.step) == (entry.module, entry.slot, entry.step)
    assert first.mechanisms[0] in entry.accepted


def check_honest(entry: Entry, folder: Path) -> None:
    said = diagnosed(entry, folder)
    assert said.verdict == "rounding"
    assert [place for place in said.places if place.verdict != "watch"] == []


@needs_casebook
@pytest.mark.parametrize("slug", VISIBLE)
def test_a_fault_of_the_casebook_is_placed_and_named(slug: str, tmp_path: Path) -> None:
    cases = casebook().cases.CASES
    case = next(case for case in cases if (case.slug, case.seed) == (slug, VISIBLE[slug]))
    check_fault(write_case(case, tmp_path, slug), tmp_path)


@needs_casebook
@pytest.mark.parametrize("slug", FURTHER)
def test_a_fault_that_the_casebook_does_not_show_is_placed_and_named(
    slug: str, tmp_path: Path
) -> None:
    tiny_faults.register()
    case = [case for case in tiny_faults.cases() if case.slug == slug][FURTHER[slug]]
    check_fault(write_case(case, tmp_path, slug), tmp_path)


@needs_casebook
@pytest.mark.parametrize("place", BENIGN)
def test_an_honest_pair_of_the_tiny_model_is_rounding(place: int, tmp_path: Path) -> None:
    tiny_kinds.register()
    case = list(tiny_benign.cases())[place]
    check_honest(write_case(case, tmp_path, "honest"), tmp_path)


@pytest.mark.parametrize("text", TORCH_BENIGN)
def test_an_honest_pair_of_torch_kernels_is_rounding(text: str, tmp_path: Path) -> None:
    plan = torch_benign.plan_of(text, 31)
    check_honest(write_plan(plan, tmp_path, "honest"), tmp_path)


@pytest.mark.parametrize("slug", TORCH_FAULTS)
def test_a_fault_in_a_torch_model_is_placed_and_named(slug: str, tmp_path: Path) -> None:
    plans = torch_fault_pairs.plans()
    plan = next(plan for plan in plans if plan.fault and plan.fault.mechanism == slug)
    check_fault(write_plan(plan, tmp_path, slug), tmp_path)


@needs_casebook
def test_every_mechanism_of_the_vocabulary_is_planted() -> None:
    tiny_faults.register()
    planted = {case.slug for case in tiny_faults.cases()}
    planted |= {case.slug for case in casebook().cases.CASES}
    lines = (FOLDER / "mechanisms.csv").read_text().splitlines()[1:]
    assert planted == {line.split(",")[0] for line in lines}


def entry(name: str, **more: Any) -> dict[str, Any]:
    known = {"id": name, "family": "semantic", "difficulty": "clear", "mechanism": "attn_scale"}
    place = {"module": "model.layers.1.attn", "slot": "forward_output.0", "verdict": "fault"}
    return {**known, **place, "accepted": ["attn_scale"], "cand_dtype": "float32", **more}


RIGHT = Place("fault", "model.layers.1.attn", "forward_output.0", "0", ("attn_scale",))


def test_a_right_answer_is_right_in_everything() -> None:
    assert set(judged(entry("a"), Prediction("a", "fault", (RIGHT,))).values()) == {True}


def test_the_right_layer_counts_when_the_module_is_another() -> None:
    near = Place("fault", "model.layers.1.mlp", "forward_output.0", "0", ("x", "attn_scale"))
    row = judged(entry("a"), Prediction("a", "fault", (near,)))
    assert row == {
        "verdict": True,
        "module": False,
        "slot": False,
        "layer": True,
        "top1": False,
        "top3": True,
    }


def test_a_missing_prediction_is_a_miss_and_an_accused_honest_pair_an_accusation() -> None:
    honest = entry("b", verdict="rounding", module=None, slot=None)
    scored = score([entry("a"), honest], [Prediction("b", "fault", (RIGHT,))])
    text = summary(scored)
    assert "balanced verdict 0.0%" in text
    assert "1/1 accused, 1/1 missed" in text


@needs_casebook
def test_our_scorer_counts_as_the_casebooks_own(tmp_path: Path) -> None:
    entries = [entry("a"), entry("b", verdict="rounding", module=None, slot=None)]
    (tmp_path / "manifest.json").write_text(json.dumps(entries))
    said = [Prediction("a", "fault", (RIGHT,)), Prediction("b", "fault", (RIGHT,))]
    theirs = score_by_casebook(tmp_path, said, FOLDER / "score.py")
    assert "balanced 50%, false positives 1/1, false negatives 0/1" in theirs
    assert "balanced verdict 50.0%, 1/1 accused, 0/1 missed" in summary(score(entries, said))


@pytest.mark.parametrize(
    ("effect", "dtype", "word"),
    [
        (0.2, "float32", "glaring"),
        (float("nan"), "float32", "glaring"),
        (float("inf"), "bfloat16", "glaring"),
        (4e-6, "float32", "clear"),
        (4e-6, "bfloat16", "subtle"),
        (2.9e-6, "float32", "subtle"),
    ],
)
def test_the_difficulty_is_measured_in_roundings(effect: float, dtype: str, word: str) -> None:
    assert difficulty(effect, dtype, "fault") == word


def test_a_pair_that_is_not_what_it_should_be_stays_out_of_the_manifest(tmp_path: Path) -> None:
    plan = torch_benign.plan_of("lstm f f same", 1)
    sound = write_plan(plan, tmp_path, "sound")
    write(tmp_path, [sound])
    assert [one["id"] for one in read(tmp_path)] == ["sound"]
    assert json.loads((tmp_path / "unsound.json").read_text()) == []
