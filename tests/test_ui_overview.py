"""The Overview as a session sees it: the answer, the links, what is missing."""

from __future__ import annotations

import html

import fakes
import pytest
from streamlit_fixture import html_of, navigation_mode, open_page

from store import workspace

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
    assert "Matched: 34 by name, 0 by rule, 0 by order" in shown
    assert "In the candidate only" in shown


@pytest.mark.usefixtures("kept")
def test_provenance_puts_differences_first() -> None:
    shown = html_of(open_page("overview", c="c0ffee"))
    assert shown.index("≠</b> Device") < shown.index("= Framework")
    assert "<b>not recorded</b>" in shown


def test_refused_items_of_the_dumps_are_listed(kept: fakes.FakeWorkspace) -> None:
    whole = kept.compared["c0ffee"]
    from dataclasses import replace

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


def test_hostile_names_are_shown_as_text(kept: fakes.FakeWorkspace) -> None:
    from dataclasses import replace

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
