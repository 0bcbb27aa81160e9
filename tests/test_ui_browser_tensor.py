"""The Tensor page as a user meets it: pick, look, zoom, move, type, and a link that says it all."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from live_server import Server, Visit
from playwright.sync_api import Browser, Locator, Page, expect

pytestmark = pytest.mark.browser
PATIENT = 90_000  # ms: two shared cores, and the first comparison starts its worker
MOST = 2_000_000  # bytes of a message


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server")) as started:
        yield started


def shown(view: Locator, text: str) -> None:
    expect(view).to_have_attribute("data-shown", text, timeout=PATIENT)


def into_first_bar(page: Page, where: str) -> None:
    """Clicks the first bar of a small chart."""
    chart = page.locator(f"{where} .js-plotly-plot")
    chart.scroll_into_view_if_needed()
    x, y = chart.evaluate(
        """(chart) => {
          const {xaxis, yaxis, _size} = chart._fullLayout, box = chart.getBoundingClientRect();
          return [box.x + _size.l + xaxis.d2p(0), box.y + _size.t + yaxis.d2p(0) - 8];
        }"""
    )
    page.mouse.move(x - 2, y)
    page.mouse.move(x, y)
    page.wait_for_timeout(300)
    page.mouse.click(x, y)


def test_a_tensor_is_picked_zoomed_moved_and_typed_into_and_its_link_says_it_all(
    browser: Browser, server: Server
) -> None:
    visit = Visit(browser, server)
    page, sizes = visit.page, []
    page.on("websocket", lambda w: w.on("framereceived", lambda f: sizes.append(len(f))))
    page.set_default_timeout(PATIENT)
    page.goto("/")
    page.locator(".st-key-open-decoder-fault button").click()
    page.wait_for_url(re.compile(r"/overview\?c="))
    page.goto(page.url.replace("/overview", "/tensor"))
    view = page.locator(".slices")
    shown(view, "0, 3, :, :")
    visit.settle()

    page.get_by_role("button", name="Sign", exact=True).click()
    page.wait_for_url(re.compile("view=sign"))
    expect(view.locator("h3").nth(2)).to_have_text("Sign of the error")
    page.get_by_role("button", name="Log", exact=True).click()
    page.wait_for_url(re.compile("log=1"))
    into_first_bar(page, ".st-key-distribution-4")
    shown(view, "0, 0, :, :")
    visit.settle()
    page.keyboard.press("]")
    shown(view, "0, 1, :, :")
    view.focus()
    page.keyboard.press("+")
    expect(view).to_have_attribute("data-shown", re.compile(r"^0, 1, \d+:\d+, \d+:\d+$"))
    before = view.get_attribute("data-shown") or ""
    page.keyboard.press("Shift+ArrowDown")
    expect(view).not_to_have_attribute("data-shown", before)
    moved = view.get_attribute("data-shown") or ""

    field = page.locator(".st-key-typed-element input")
    field.fill("0, 1, -1, 3")
    field.press("Enter")
    expect(page.get_by_text("this is [0, 1, 31, 3]")).to_be_visible()
    visit.settle()

    page.reload()
    shown(view, moved)
    expect(view.locator("h3").nth(2)).to_have_text("Sign of the error")
    expect(page.get_by_role("button", name="Log", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(page.get_by_text("this is [0, 1, 31, 3]")).to_be_visible()
    visit.settle()
    assert max(sizes) < MOST
    visit.close()
