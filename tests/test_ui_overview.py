"""The Overview as a session sees it: the answer, the links, what is missing."""

from __future__ import annotations

import html
from dataclasses import replace

import fakes
import pytest
from streamlit_fixture import asked_to_go, html_of, navigation_mode, open_page

from core.coverage import Coverage, ModuleCount, Oddity, Share
from store import workspace
from ui import context

pytestmark = pytest.mark.usefixtures("navigation_mode")
__all__ = ["navigation_mode"]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> fakes.FakeWorkspace:
    fake = fakes.FakeWorkspace(compared={"c0ffee": fakes.comparison()})
    monkeypatch.setattr(workspace, "default", lambda: fake)
    return fake


@pytest.mark.usefixtures("kept")
def test_the_page_opens_with_verdict_and_sentence() -> None:
    page = open_page("overview", c="c0ffee")
    shown = html_of(page)
    assert not page.exception
    assert "113× the rounding floor.</h1>" in shown
    assert 'px-verdict px-fault">' in shown
    assert "<dd>33 <small>/ 34</small></dd>" in shown
    assert "step 0, rank 0, forward" in shown


@pytest.mark.usefixtures("kept")
def test_findings_come_first_and_link_to_their_tensor() -> None:
    shown = html_of(open_page("overview", c="c0ffee"))
    order = [shown.index(f"tensor?c=c0ffee&amp;t=step0%2Frank0%2F{n}%2F")
             for n in (fakes.FAULT, fakes.WATCH, "model.kv_cache")]  # fmt: skip
    assert order == sorted(order)
    assert "in the candidate only" in shown


@pytest.mark.usefixtures("kept")
def test_coverage_counts_every_pair_and_what_is_in_one_run_only() -> None:
    shown = html_of(open_page("overview", c="c0ffee"))
    assert "Matched: 34 by name</p>" in shown
    assert "In the candidate only" in shown


def test_coverage_says_what_it_cannot_vouch_for(kept: fakes.FakeWorkspace) -> None:
    coverage = Coverage(
        tensors=Share(33, 40),
        nbytes=Share(1000, 2000),
        modules=Share(9, 10),
        suggested=3,
        oddities=(Oddity("layers_missing", "candidate", 1, (fakes.HOSTILE,)),),
        unmatched=(ModuleCount("candidate", "model.extra", 1),),
    )
    kept.compared["c0ffee"] = replace(kept.compared["c0ffee"], coverage=coverage)
    page = open_page("overview", c="c0ffee", list="unmatched")
    shown = html_of(page)
    assert "Compared: 33 of 40 tensors" in shown
    assert "3 suggested pairs wait to be accepted." in shown
    assert "candidate: layers between captured ones are missing (1): &lt;img" in shown
    assert not page.exception


@pytest.mark.usefixtures("kept")
def test_provenance_puts_differences_first() -> None:
    shown = html_of(open_page("overview", c="c0ffee"))
    assert shown.index("≠</b> Device") < shown.index("= Framework")
    assert "<b>not recorded</b>" in shown


def test_refused_items_of_the_dumps_are_listed(kept: fakes.FakeWorkspace) -> None:
    whole = kept.compared["c0ffee"]
    side = replace(whole.reference, problems=fakes.refused(3))
    kept.compared["c0ffee"] = replace(whole, reference=side)
    page = open_page("overview", c="c0ffee")
    assert "3 items of the dumps could not be read" in [e.label for e in page.expander]


@pytest.mark.usefixtures("kept")
def test_an_unknown_comparison_says_what_was_asked_and_offers_runs() -> None:
    page = open_page("overview", c="gone")
    shown = html.unescape(html_of(page))
    assert not page.exception
    assert "Comparison 'gone' is not on this server." in shown
    assert 'href="./"' in shown


@pytest.mark.usefixtures("kept")
def test_no_comparison_at_all_is_explained() -> None:
    page = open_page("overview")
    assert not page.exception
    assert "No comparison is open." in html_of(page)


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(("key", "value"), [("m", "nope"), ("show", "<b>x")])
def test_a_stale_choice_is_called_out_not_replaced_in_silence(key: str, value: str) -> None:
    page = open_page("overview", **{"c": "c0ffee", key: value})
    assert not page.exception
    (warning,) = page.warning
    assert "which is not here" in warning.value


@pytest.mark.usefixtures("kept")
def test_the_metric_picker_writes_the_address() -> None:
    page = open_page("overview", c="c0ffee")
    page.selectbox(key="pick-m").set_value("relative_l2").run()
    assert page.query_params["m"] == "relative_l2"
    assert page.query_params["c"] == "c0ffee"
    assert "Relative L2" in html_of(page)


def test_several_steps_can_be_told_apart(kept: fakes.FakeWorkspace) -> None:
    pairs = [fakes.pair(fakes.tensor("a", n, id=f"step{n}/a", step=n, rank=None)) for n in range(3)]
    kept.compared["c0ffee"] = fakes.comparison(pairs=tuple(pairs))
    page = open_page("overview", c="c0ffee")
    assert "steps 0 to 2" in html_of(page)
    assert page.selectbox(key="pick-step").options == ["all steps", "step 0", "step 1", "step 2"]
    page.selectbox(key="pick-step").set_value("2").run()
    assert page.query_params["step"] == "2"
    assert "step=2" in html_of(page)
    assert "t=step0" not in html_of(page)


def test_the_finder_opens_an_operator_or_a_tensor(kept: fakes.FakeWorkspace) -> None:
    for name, address in (
        (fakes.FAULT, f"layers?c=c0ffee&at={fakes.FAULT}"),
        (
            fakes.tensor("lm_head", 0).id,
            "tensor?c=c0ffee&t=step0%2Frank0%2Flm_head%2Fforward_output.0",
        ),
    ):
        page = open_page("overview", c="c0ffee")
        page.selectbox(key="find").set_value(name).run()
        assert asked_to_go(page) == address
    assert kept.asked == []


def test_hostile_names_are_shown_as_text(kept: fakes.FakeWorkspace) -> None:
    names = [f"model.{fakes.HOSTILE}", fakes.FAULT]
    whole = fakes.comparison(names)
    run = replace(whole.candidate, label=fakes.HOSTILE, provenance={fakes.HOSTILE: fakes.HOSTILE})
    kept.compared["c0ffee"] = replace(whole, candidate=run)
    page = open_page("overview", c="c0ffee")
    assert not page.exception
    shown = html_of(page)
    assert "<img src=x" not in shown
    assert "&lt;img src=x" in shown
    assert "\u202e" not in shown


def test_a_comparison_of_nothing_still_has_a_page(kept: fakes.FakeWorkspace) -> None:
    kept.compared["c0ffee"] = fakes.comparison([])
    page = open_page("overview", c="c0ffee")
    assert not page.exception
    assert "Coverage" in html_of(page)


def test_side_and_confidence_stand_beside_the_verdict(kept: fakes.FakeWorkspace) -> None:
    found = (fakes.finding(confidence=0.98, side="candidate", verdict="fault"),)
    kept.found["c0ffee"] = fakes.diagnosis(fakes.comparison(), findings=found)
    shown = html_of(open_page("overview", c="c0ffee"))
    assert "Fault in the candidate" in shown
    assert "confidence 98 %" in shown


@pytest.mark.usefixtures("kept")
def test_inputs_stand_on_the_path_where_they_are_asked_for() -> None:
    page = open_page("overview", c="c0ffee", slots="both")
    assert not page.exception


@pytest.mark.usefixtures("kept")
def test_there_are_always_five_places_to_look_at() -> None:
    shown = html_of(open_page("overview", c="c0ffee"))
    listed = shown[shown.index('class="px-next"') :]
    assert listed[: listed.index("</ol>")].count("<li>") == 5


@pytest.mark.parametrize(
    ("asked", "opened"),
    [
        ("model.layers.2.self_attn.rope", ("layers", "at", "model.layers.2.self_attn.rope")),
        ("model.layers.2", ("layers", "at", "model.layers.2")),
        ("2.self_attn.ro", ("layers", "at", "model.layers.2.self_attn.rope")),
        ("self_attn", ("layers", "q", "self_attn")),
        ("rope fault", ("layers", "q", "rope fault")),
        (
            "step0/rank0/lm_head/forward_output.0",
            ("tensor", "t", "step0/rank0/lm_head/forward_output.0"),
        ),
    ],
)
def test_search_opens_what_is_named_and_filters_by_anything_else(asked, opened) -> None:
    compared = fakes.comparison()
    assert context.found(fakes.table(compared, fakes.judgement(compared)), asked) == opened
