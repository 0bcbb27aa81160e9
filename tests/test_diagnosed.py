"""A judgement with the diagnosis: findings decide, the rest inherits or is rounding."""

from __future__ import annotations

import fakes
import pytest

from analysis.diagnosed import diagnosed
from core.comparison import Settings, Tolerance


def test_a_finding_gives_its_tensor_the_verdict_and_the_rest_inherits() -> None:
    compared = fakes.comparison()
    judged = diagnosed(compared, fakes.judgement(compared), fakes.diagnosis(compared))
    by_name = {
        p.reference.operator: v for p, v in zip(compared.pairs, judged.verdicts, strict=True)
    }
    assert judged.verdict == "fault"
    assert by_name[fakes.FAULT] == "fault"
    assert by_name[fakes.WATCH] == "watch"
    assert by_name["lm_head"] == "inherited"
    assert by_name["model.embed_tokens"] == "rounding"
    assert by_name["model.kv_cache"] == "uncompared"
    assert compared.pairs[judged.first_divergence or 0].reference.operator == fakes.FAULT


def test_what_an_operator_adds_is_its_own_error_in_floors() -> None:
    compared = fakes.comparison()
    judged = diagnosed(compared, fakes.judgement(compared), fakes.diagnosis(compared))
    by_name = {p.reference.operator: a for p, a in zip(compared.pairs, judged.added, strict=True)}
    assert by_name[fakes.FAULT] == 113.0
    assert by_name["lm_head"] == 0.9


def test_without_findings_nobody_is_accused() -> None:
    compared = fakes.comparison()
    none = fakes.diagnosis(compared, findings=(), verdict="rounding")
    judged = diagnosed(compared, fakes.judgement(compared), none)
    assert judged.verdict == "rounding"
    assert judged.first_divergence is None
    assert not {"fault", "watch", "inherited"} & set(judged.verdicts)
    assert "recomputed in float64" in judged.detail


def test_the_sentence_names_the_cause_and_the_place() -> None:
    compared = fakes.comparison()
    judged = diagnosed(compared, fakes.judgement(compared), fakes.diagnosis(compared))
    assert fakes.FAULT in judged.sentence
    assert judged.sentence != fakes.judgement(compared).sentence


@pytest.mark.parametrize("verdict", ["fault", "rounding"])
def test_a_tolerance_of_the_users_overrules_the_diagnosis(verdict: str) -> None:
    compared = fakes.comparison(settings=Settings(Tolerance(1.0, 1.0)))
    judged = fakes.judgement(compared)
    assert diagnosed(compared, judged, fakes.diagnosis(compared, verdict=verdict)) is judged
