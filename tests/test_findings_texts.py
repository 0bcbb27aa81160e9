"""Findings in words: every mechanism has a title, an explanation and something to do."""

import csv
import math
import string
from pathlib import Path

import pytest

from analysis.findings import DETECTORS
from analysis.findings.catalogue import CATALOGUE
from analysis.findings.texts import describe, title_of
from core.findings import Finding, Hypothesis

VOCABULARY = Path(__file__).parents[2] / "shared" / "casebook" / "mechanisms.csv"


def finding(*hypotheses: Hypothesis, verdict: str = "fault") -> Finding:
    return Finding(
        id="f1",
        verdict=verdict,  # type: ignore[arg-type]
        tensor="step0/rank0/model.layers.1.mlp.up_proj",
        module="model.layers.1.mlp.up_proj",
        operator="model.layers.1.mlp.up_proj",
        slot="forward_output.0",
        step=0,
        rank=0,
        call=0,
        side="candidate",
        confidence=0.99,
        hypotheses=hypotheses,
    )


def named(mechanism: str, **facts: float | int | str) -> Hypothesis:
    return Hypothesis(mechanism=mechanism, confidence=0.9, before=120.0, after=0.9, facts=facts)


@pytest.mark.parametrize("mechanism", sorted(CATALOGUE))
def test_every_mechanism_can_be_told_without_any_facts(mechanism: str) -> None:
    text = describe(finding(named(mechanism)))
    assert text.title
    assert "{" not in text.title + text.detail
    assert "120" in text.detail
    assert text.next_steps


@pytest.mark.parametrize("mechanism", sorted(CATALOGUE))
def test_facts_fill_the_sentences_that_name_them(mechanism: str) -> None:
    entry = CATALOGUE[mechanism]
    templates = (entry.title, *entry.says)
    names = {n for t in templates for _, n, _, _ in string.Formatter().parse(t) if n}
    text = describe(finding(named(mechanism, **dict.fromkeys(names, 7))))
    assert "—" not in text.title
    assert len(text.detail) >= len(entry.means) + sum(map(len, entry.says)) // 2


def test_facts_stand_in_the_explanation() -> None:
    text = describe(finding(named("norm_eps", eps=1e-5, eps_reference=1e-6)))
    assert "1e-05 instead of 1e-06" in text.detail
    assert "falls from 120 to 0.9" in text.detail


def test_a_place_without_a_cause_says_so() -> None:
    text = describe(finding())
    assert "not known" in text.title
    assert text.next_steps


def test_a_sign_without_a_residual_gives_the_size_alone() -> None:
    seen = Hypothesis(mechanism="bit_flip", confidence=0.9, before=50.0, after=math.nan)
    assert "50 times" in describe(finding(seen)).detail


def test_a_setup_finding_says_that_nothing_after_it_can_be_judged() -> None:
    text = describe(finding(named("different_inputs", count=3), verdict="setup"))
    assert "nothing after this point" in text.next_steps[-1]


def test_a_runner_up_has_a_title_of_its_own() -> None:
    assert title_of(named("tf32_gemm", bits=11)).startswith(
        "Matrix product with operands cut to 11"
    )


def test_every_mechanism_has_a_detector_and_every_detector_a_definition() -> None:
    looked_for = {m for d in DETECTORS.values() for m in d.mechanisms}
    assert looked_for == set(CATALOGUE)
    assert all(len(d.help) > 60 for d in DETECTORS.values())


@pytest.mark.skipif(not VOCABULARY.exists(), reason="the casebook stands outside this repository")
def test_the_catalogue_is_the_closed_vocabulary() -> None:
    with VOCABULARY.open() as file:
        rows = {r["slug"]: r["family"] for r in csv.DictReader(file) if r["family"] != "benign"}
    assert {slug: entry.family for slug, entry in CATALOGUE.items()} == rows
