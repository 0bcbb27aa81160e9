"""The tour: steps in the address, links and keys between them, out at any time."""

from __future__ import annotations

import re

import fakes
import pytest
from streamlit_fixture import html_of, navigation_mode, open_page

from store import workspace
from ui import tour, upload, url

pytestmark = pytest.mark.usefixtures("navigation_mode")
__all__ = ["navigation_mode"]


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> fakes.FakeWorkspace:
    fake = fakes.FakeWorkspace(compared={"c0ffee": fakes.comparison()})
    monkeypatch.setattr(workspace, "default", lambda: fake)
    monkeypatch.setattr(upload, "folder_upload", lambda *_, **__: None)
    return fake


def links(shown: str) -> dict[str, str]:
    panel = shown[shown.index('<aside class="px-tour"') :]
    found = re.findall(r'data-key="(\w+)" href="([^"]+)"', panel)
    return {key: href.replace("&amp;", "&") for key, href in found}


def test_the_front_page_starts_it_and_shows_no_panel_before():
    shown = html_of(open_page("runs"))
    assert 'href="./?tour=1"' in shown
    assert "px-tour" not in shown


def test_each_step_leads_to_the_next_on_its_page():
    for number, step in enumerate(tour.STEPS[:-1], start=1):
        if step.page in ("runs", "tensor"):
            continue  # without a comparison; with values, which this workspace does not have
        page = open_page(step.page, c="c0ffee", tour=str(number), t=str(_first()))
        assert not page.exception
        shown = html_of(page)
        assert f"Step {number} of {len(tour.STEPS)}" in shown
        following = tour.STEPS[number]
        assert links(shown)["ArrowRight"].startswith(f"{following.page}?c=c0ffee&")
        assert f"tour={number + 1}" in links(shown)["ArrowRight"]


def _first() -> str:
    compared = fakes.comparison()
    first = fakes.judgement(compared).first_divergence
    return compared.pairs[first].reference.id


def test_leaving_keeps_the_view():
    shown = html_of(open_page("overview", c="c0ffee", tour="4", dir="forward"))
    assert links(shown)["Escape"] == "?c=c0ffee&dir=forward"
    assert links(shown)["ArrowLeft"] == "overview?c=c0ffee&tour=3"


def test_the_first_steps_wait_for_the_sample_to_be_compared():
    assert links(html_of(open_page("runs", tour="1")))["ArrowRight"] == "./?tour=2"
    second = links(html_of(open_page("runs", tour="2")))
    assert "ArrowRight" not in second
    assert second["ArrowLeft"] == "./?tour=1"


@pytest.mark.parametrize("step", ["0", "11", "x"])
def test_a_step_that_is_none_is_no_tour(step):
    assert "px-tour" not in html_of(open_page("overview", c="c0ffee", tour=step))


def test_every_step_stands_on_a_page_that_exists():
    assert {step.page for step in tour.STEPS} <= set(url.PAGES)
