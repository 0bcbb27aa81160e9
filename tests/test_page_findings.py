"""The page Findings as a session sees it: the answer, the evidence, and what stays open."""

from __future__ import annotations

import html
import math

import fakes
import pytest
from streamlit_fixture import html_of, navigation_mode, open_page

from core.findings import Finding
from store import workspace

pytestmark = pytest.mark.usefixtures("navigation_mode")
__all__ = ["navigation_mode"]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> fakes.FakeWorkspace:
    fake = fakes.FakeWorkspace(compared={"c0ffee": fakes.comparison()})
    monkeypatch.setattr(workspace, "default", lambda: fake)
    return fake


def with_finding(kept: fakes.FakeWorkspace, *findings: Finding, **changes: object) -> None:
    compared = kept.compared["c0ffee"]
    kept.found["c0ffee"] = fakes.diagnosis(compared, findings=findings, **changes)


@pytest.mark.usefixtures("kept")
def test_the_first_finding_is_open_and_the_others_are_links() -> None:
    page = open_page("findings", c="c0ffee")
    shown = html_of(page)
    assert not page.exception
    assert "Fault in the candidate" in shown
    assert "confidence 98" in shown
    assert 'href="findings?c=c0ffee&amp;f=F2"' in shown
    assert shown.count('f=F1" aria-current="true"') == 1
    assert 'f=F2" aria-current' not in shown


@pytest.mark.usefixtures("kept")
def test_the_address_opens_another_finding_whose_cause_is_open() -> None:
    page = open_page("findings", c="c0ffee", f="F2")
    shown = html_of(page)
    assert not page.exception
    assert "The place is certain, the cause is open" in shown
    assert "Runner-up" not in shown
    assert page.code[-1].value == "python cli.py findings c0ffee --id F2"


@pytest.mark.usefixtures("kept")
def test_hypotheses_say_what_is_left_of_the_error() -> None:
    shown = html_of(open_page("findings", c="c0ffee"))
    rows = [line for line in shown.split("<tr>") if "px-dumbbell" in line]
    assert [("explains all" in row, "no better" in row) for row in rows] == [
        (True, False),
        (False, True),
    ]
    assert "by its pattern" in shown


@pytest.mark.usefixtures("kept")
def test_the_shares_around_the_finding_are_of_its_own_block() -> None:
    shown = html_of(open_page("findings", c="c0ffee"))
    assert "> 99.9 % added by the candidate, < 0.1 % added by the reference" in html.unescape(shown)
    assert "layers.0.self_attn.rope" not in shown


@pytest.mark.usefixtures("kept")
def test_the_wrong_side_is_named_with_both_numbers() -> None:
    shown = html_of(open_page("findings", c="c0ffee"))
    assert "The candidate. The reference is 0.9× and the candidate 113× the floor." in shown


def test_a_finding_that_was_not_replayed_says_why_the_side_is_open(
    kept: fakes.FakeWorkspace,
) -> None:
    with_finding(kept, fakes.finding("lm_head", side="unknown", hypotheses=()))
    kept.found["c0ffee"] = fakes.diagnosis(
        kept.compared["c0ffee"], findings=(fakes.finding("lm_head", side="unknown"),), replays=()
    )
    shown = html_of(open_page("findings", c="c0ffee"))
    assert "Open: its input is not dumped." in shown
    assert "No operator here could be recomputed." in shown


def test_an_uncertain_place_lists_its_zone(kept: fakes.FakeWorkspace) -> None:
    zone = ("model.layers.2.mlp.up_proj", "model.layers.2.mlp.gate_proj")
    with_finding(kept, fakes.finding(zone=zone))
    shown = html_of(open_page("findings", c="c0ffee"))
    assert f"The fault lies among 2: {', '.join(zone)}." in shown


def test_no_finding_is_an_answer_of_its_own(kept: fakes.FakeWorkspace) -> None:
    with_finding(kept, verdict="rounding")
    page = open_page("findings", c="c0ffee")
    shown = html_of(page)
    assert not page.exception
    assert "No finding: rounding explains every difference." in shown
    assert "33 outputs were recomputed in float64" in shown
    assert "Closest to the limit" in shown


@pytest.mark.usefixtures("kept")
def test_an_unknown_finding_is_explained() -> None:
    page = open_page("findings", c="c0ffee", f="F9")
    assert not page.exception
    assert "has no finding 'F9'" in html.unescape(html_of(page))


def test_numbers_without_a_value_are_shown_as_such(kept: fakes.FakeWorkspace) -> None:
    broken = fakes.replay(
        fakes.FAULT, total=math.inf, local_candidate=math.inf, ratio_candidate=math.inf
    )
    with_finding(kept, fakes.finding(side="unknown", confidence=0.4), replays=(broken,))
    page = open_page("findings", c="c0ffee")
    assert not page.exception
    assert "not finite" in html_of(page)


def test_hostile_names_stay_text(kept: fakes.FakeWorkspace) -> None:
    with_finding(kept, fakes.finding(operator=fakes.HOSTILE, zone=(fakes.HOSTILE,)))
    shown = html_of(open_page("findings", c="c0ffee"))
    assert "<img" not in shown


@pytest.mark.usefixtures("kept")
def test_the_presenter_shows_one_finding_and_where_the_keys_lead() -> None:
    page = open_page("findings", c="c0ffee", present="1")
    shown = html_of(page)
    assert not page.exception
    assert "finding 1 of 2" in shown
    assert "f=F2&amp;present=1" in shown
    assert "Check next" not in shown


def test_the_presenter_without_findings_shows_the_verdict(kept: fakes.FakeWorkspace) -> None:
    with_finding(kept, verdict="rounding")
    page = open_page("findings", c="c0ffee", present="1")
    assert not page.exception
    assert "px-big" in html_of(page)
