"""The app as a user meets it: real server, real browser, real samples."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
from live_server import ROOT, Server
from playwright.sync_api import Browser, BrowserContext, Page, expect

pytestmark = pytest.mark.browser
SAMPLE = "decoder-fault"
PATIENT = 90_000  # ms: two shared cores, and the first comparison starts its worker


def write_dumps(folder: Path) -> None:
    """Two dumps that differ in a shape and in which tensors they hold, and one that is no dump."""
    values = np.linspace(-1, 1, 64, dtype=np.float32)
    sides = {
        "a": {"net.0": values, "net.1": values, "only.a": values},
        "b": {"net.0": values, "net.1": values[:32], "only.b": values},
    }
    for side, tensors in sides.items():
        (folder / side).mkdir()
        with h5py.File(folder / side / "x.h5", "w") as file:
            for name, data in tensors.items():
                file[name] = data
    (folder / "broken").mkdir()
    (folder / "broken" / "x.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(64))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("dumps")
    write_dumps(made)
    return made


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Server(tmp_path_factory.mktemp("server"), PX_FOLDERS=str(folder)) as started:
        yield started.url


@pytest.fixture
def context(browser: Browser, server: str) -> Iterator[BrowserContext]:
    made = browser.new_context(base_url=server, viewport={"width": 1440, "height": 900})
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext, server: str) -> Iterator[Page]:
    """A tab that fails the test on a script error and on any request that leaves the server."""
    tab = context.new_page()
    errors: list[str] = []
    outside: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on(
        "request",
        lambda r: None if r.url.startswith((server, "data:", "blob:")) else outside.append(r.url),
    )
    yield tab
    assert not errors
    assert not outside


def settled(page: Page) -> None:
    page.wait_for_selector(
        "html[data-px-frame] [data-testid=stApp][data-test-script-state=notRunning]",
        timeout=PATIENT,
    )
    page.wait_for_timeout(400)


@pytest.fixture(scope="module")
def overview(browser: Browser, server: str) -> str:
    """Address of a sample's Overview, reached by one click on the front page."""
    tab = browser.new_page(base_url=server)
    tab.goto("/")
    settled(tab)
    tab.locator(f".st-key-open-{SAMPLE} button").click()
    tab.wait_for_url(re.compile(r"/overview\?c="), timeout=PATIENT)
    address = tab.url
    tab.close()
    return address


def show(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator("h1")).to_contain_text(
        "model.layers.2.self_attn.rotary_emb", timeout=PATIENT
    )
    settled(page)


def test_a_sample_is_two_steps_from_its_worst_tensor_and_back(page: Page, overview: str) -> None:
    show(page, overview)
    page.locator(".px-next .px-go").first.click()
    page.wait_for_url(re.compile("/tensor"))
    settled(page)
    assert "t=" in page.url
    page.go_back()
    expect(page.locator("h1")).to_contain_text("model.layers.2.self_attn.rotary_emb")
    assert page.url == overview  # one entry in the history for one click
    page.reload()
    expect(page.locator("h1")).to_contain_text(
        "model.layers.2.self_attn.rotary_emb", timeout=PATIENT
    )
    assert page.url == overview


def test_the_top_navigation_keeps_the_comparison_in_the_address(page: Page, overview: str) -> None:
    show(page, overview)
    query = overview.partition("?")[2]
    page.get_by_role("link", name="Layers", exact=True).click()
    page.wait_for_url(re.compile(rf"/layers\?{query}$"))
    settled(page)
    page.get_by_role("link", name="Runs", exact=True).click()
    expect(page.get_by_role("heading", name="Recent comparisons")).to_be_visible(timeout=PATIENT)
    page.get_by_role("link", name="Overview", exact=True).click()
    page.wait_for_url(re.compile(rf"/overview\?{query}$"))
    expect(page.get_by_role("link", name="Drift", exact=True)).to_have_attribute(
        "href", re.compile(rf"/drift\?{query}$")
    )


def test_a_copied_link_shows_the_same_view_to_someone_else(
    page: Page, context: BrowserContext, browser: Browser, server: str, overview: str
) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    show(page, overview)
    page.get_by_text("Added here", exact=True).first.click()
    page.wait_for_url(re.compile("show=added"))
    settled(page)
    page.locator(".st-key-copy-link button").click()
    expect(page.locator(".st-key-copy-link button")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.url
    other = browser.new_context(base_url=server).new_page()
    other.goto(copied)
    expect(other.locator("h1")).to_contain_text(
        "model.layers.2.self_attn.rotary_emb", timeout=PATIENT
    )
    chosen = other.locator(
        ".st-key-pick-show [aria-checked=true], .st-key-pick-show [kind$=Active]"
    )
    expect(chosen).to_have_text("Added here")
    other.context.close()


def test_a_click_on_the_path_opens_the_tensor(page: Page, overview: str) -> None:
    show(page, overview)
    page.wait_for_selector(".st-key-path .js-plotly-plot .scatterlayer")
    x, y = page.evaluate(
        """() => {
          const chart = document.querySelector(".st-key-path .js-plotly-plot");
          const {xaxis, yaxis, _size} = chart._fullLayout, box = chart.getBoundingClientRect();
          const point = chart.calcdata[chart.data.findIndex((t) => t.name === "fault")][0];
          return [box.x + _size.l + xaxis.d2p(point.x), box.y + _size.t + yaxis.d2p(point.y)];
        }"""
    )
    page.mouse.move(x - 2, y)
    page.mouse.move(x, y)
    page.wait_for_timeout(300)
    page.mouse.click(x, y)
    page.wait_for_url(re.compile("/tensor.*t="))
    page.go_back()
    expect(page.locator("h1")).to_contain_text("model.layers.2.self_attn.rotary_emb")
    assert page.url == overview


def test_slash_finds_a_module(page: Page, overview: str) -> None:
    show(page, overview)
    page.keyboard.press("/")
    expect(page.locator(".st-key-find input")).to_be_focused()
    page.keyboard.type("2.self_attn.rotary")
    page.get_by_role("option").first.click()
    page.wait_for_url(re.compile(r"/layers\?.*at=model\.layers\.2\.self_attn\.rotary_emb"))


def test_what_is_no_name_filters_the_list(page: Page, overview: str) -> None:
    show(page, overview)
    page.keyboard.press("/")
    page.keyboard.type("silu rounding")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/layers\?.*q=silu"))
    expect(page.locator(".px-condition")).to_contain_text("silu rounding", timeout=PATIENT)


def test_keys_walk_the_tour_and_leave_it(page: Page, overview: str) -> None:
    show(page, f"{overview}&tour=3")
    expect(page.locator(".px-tour")).to_contain_text("Step 3 of 10")
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile(r"/overview\?.*tour=4"))
    expect(page.locator(".px-tour")).to_contain_text("Step 4 of 10", timeout=PATIENT)
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile(r"tour=3"))
    expect(page.locator(".px-tour")).to_contain_text("Step 3 of 10", timeout=PATIENT)
    page.keyboard.press("Escape")
    page.wait_for_url(overview)
    expect(page.locator(".px-tour")).to_have_count(0, timeout=PATIENT)


def test_a_stale_link_offers_the_runs_page(page: Page) -> None:
    page.goto("/overview?c=gone")
    expect(page.get_by_role("alert")).to_contain_text("gone", timeout=PATIENT)
    page.get_by_role("link", name="Go to Runs").click()
    expect(page.locator("h1")).to_contain_text("Where do two runs of one model part")


def compared(page: Page, folder: Path, look: Callable[[], None]) -> None:
    """Compares the two small dumps by their folders on the server."""
    page.goto("/")
    settled(page)
    for side, name in (("reference", "a"), ("candidate", "b")):
        page.locator(f".st-key-server-{side} button").first.click()
        field = page.locator(f".st-key-path-{side} input")
        field.fill(str(folder / name))
        field.press("Enter")
        expect(page.locator(f".st-key-slot-{side} .px-read")).to_be_visible(timeout=PATIENT)
    look()
    page.locator(".st-key-compare button").click()
    page.wait_for_url(re.compile(r"/overview\?c="), timeout=PATIENT)
    settled(page)


def selectors() -> list[str]:
    """Every selector of the style sheet, without what only a pointer or focus brings about."""
    text = re.sub(
        r"/\*.*?\*/", "", (ROOT / "ui" / "style.css").read_text(encoding="utf-8"), flags=re.S
    )
    heads = re.findall(r"([^{}]+)\{", text)
    split = [re.split(r",(?![^(]*\))", head) for head in heads if not head.strip().startswith("@")]
    return sorted(
        {re.sub(r":(hover|focus-visible)|::after", "", s).strip() for group in split for s in group}
    )


def test_every_selector_of_the_style_sheet_matches_something(
    page: Page, folder: Path, overview: str
) -> None:
    found: set[str] = set()
    wanted = selectors()
    assert len(wanted) > 50

    def look() -> None:
        settled(page)
        js = "wanted => wanted.filter((s) => document.querySelector(s))"
        found.update(page.evaluate(js, wanted))

    show(page, overview)
    look()
    query = overview.partition("?")[2]
    tensor = page.locator(".px-next .px-go").first.get_attribute("href")
    further = [f"{name}?{query}" for name in ("findings", "formats", "many", "matching", "report")]
    addresses = [
        f"layers?{query}", f"layers?{query}&at=model.layers&q=mlp", f"drift?{query}", tensor,
        *further, f"findings?{query}&present=1", f"overview?{query}&slots=both&tour=3",
    ]  # fmt: skip
    for address in addresses:
        page.goto(f"/{address}")
        settled(page)
        page.wait_for_timeout(1500)
        look()
    page.goto(f"/findings?{query}")
    settled(page)
    page.locator(".px-help").click()
    look()
    page.keyboard.press("Escape")
    page.locator(".st-key-notes button").first.click()
    page.locator("textarea").first.fill("known")
    page.get_by_role("button", name="Keep").click()
    page.wait_for_timeout(2000)
    page.goto(f"/overview?{query}")
    look()
    page.goto("/overview?c=gone")
    look()
    compared(page, folder, look)
    look()
    tensor = f"tensor?{page.url.partition('?')[2]}&t=net.0"
    shutil.rmtree(folder / "b")  # the numbers stay, the values are gone
    page.goto(f"/{tensor}")
    expect(page.get_by_role("alert").first).to_be_visible(timeout=PATIENT)
    look()
    page.goto("/?tol=own")
    look()
    page.locator(".st-key-server-reference button").first.click()
    field = page.locator(".st-key-path-reference input")
    field.fill(str(folder / "broken"))
    field.press("Enter")
    expect(page.locator(".st-key-slot-reference .px-fault")).to_be_visible(timeout=PATIENT)
    look()
    assert set(wanted) - found == set()


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_is_wider_than_its_window(
    browser: Browser, server: str, overview: str, width: int, scheme: str
) -> None:
    tab = browser.new_context(
        viewport={"width": width, "height": 844},
        color_scheme=scheme,  # type: ignore[arg-type]
    ).new_page()
    for address in (server, overview):
        tab.goto(address)
        tab.wait_for_selector("h1", timeout=PATIENT)
        settled(tab)
        wide = tab.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
        assert wide <= width, address
        ground = tab.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor")
        assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(17, 22, 27)"}[scheme]
    tab.context.close()
