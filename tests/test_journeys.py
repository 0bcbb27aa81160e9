"""What people do, from the first page to the link a colleague opens, in a real browser."""

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from live_server import CHROMIUM, ROOT, Server, Visit, chromium

pytestmark = [
    pytest.mark.browser,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="there is no Chromium here"),
]
SAMPLE = ROOT / "sample_dumps" / "decoder-fault"
PARTS_AT = "model.layers.2.self_attn.rotary_emb"
PATIENT = 60_000  # ms


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def visit(server: Server, browser: Browser) -> Iterator[Visit]:
    visit = Visit(browser, server)
    yield visit
    visit.close()


def choose(page: Page, slot: str, folder: Path) -> None:
    page.locator(f".st-key-upload-{slot} input[type=file]").set_input_files(folder)


def drop(page: Page, slot: str, folder: Path) -> None:
    """What the browser itself does when a folder is dragged in from the desktop."""
    box = page.locator(f".st-key-upload-{slot} section").bounding_box()
    assert box is not None
    at = {"x": box["x"] + 30, "y": box["y"] + 30}
    data = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
    session = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, **at, "data": data})


def query(page: Page) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(page.url).query).items()}


def heading(page: Page) -> str:
    return page.locator("h1").first.inner_text()


def compared(visit: Visit, folder: Path) -> str:
    """Bring both folders of the sample to the verdict; the id of the comparison."""
    page = visit.page
    page.goto("/")
    for slot in ("reference", "candidate"):
        shutil.copytree(SAMPLE / slot, folder / f"{slot}_dump")
    choose(page, "reference", folder / "reference_dump")
    expect(page.locator(".st-key-slot-reference")).to_contain_text("✓ read", timeout=PATIENT)
    drop(page, "candidate", folder / "candidate_dump")
    expect(page.locator(".st-key-slot-candidate")).to_contain_text("✓ read", timeout=PATIENT)
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page).to_have_url(re.compile("/overview"), timeout=PATIENT)
    expect(page.locator("h1").first).to_contain_text(PARTS_AT, timeout=PATIENT)
    return query(page)["c"]


def open_the_marked_cell(page: Page) -> None:
    """Click the cell that carries the glyph of a fault on the heat map."""
    chart = page.locator(".js-plotly-plot:has(.hm)").first
    expect(chart).to_be_visible(timeout=PATIENT)
    mark = chart.locator("text=◆").first
    expect(mark).to_be_attached(timeout=PATIENT)
    box = mark.bounding_box()
    assert box is not None
    at = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*at)  # plotly knows what is clicked from what is hovered
    page.wait_for_timeout(300)
    page.mouse.click(*at)


def test_from_two_folders_to_a_link_that_a_colleague_opens_after_a_restart(
    server: Server, browser: Browser, tmp_path: Path
) -> None:
    visit = Visit(browser, server)
    page = visit.page
    comparison = compared(visit, tmp_path)
    expect(page.get_by_text("Fault").first).to_be_visible()

    page.get_by_role("link", name="Layers").click()
    open_the_marked_cell(page)
    expect(page).to_have_url(re.compile("/tensor"), timeout=PATIENT)
    expect(page.locator("h1").first).to_contain_text(PARTS_AT, timeout=PATIENT)
    assert query(page)["c"] == comparison
    visit.settle()

    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("Copied")).to_be_visible()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.url

    page.go_back()
    expect(page).to_have_url(re.compile("/layers"), timeout=PATIENT)
    expect(page.locator(".js-plotly-plot:has(.hm)").first).to_be_visible(timeout=PATIENT)
    page.go_forward()
    expect(page.locator("h1").first).to_contain_text(PARTS_AT, timeout=PATIENT)
    page.reload()
    expect(page.locator("h1").first).to_contain_text(PARTS_AT, timeout=PATIENT)
    assert page.url == link
    shown = worst_elements(page)
    visit.close()

    server.restart()
    colleague = Visit(browser, server)
    colleague.page.goto(link)
    expect(colleague.page.locator("h1").first).to_contain_text(PARTS_AT, timeout=PATIENT)
    assert worst_elements(colleague.page) == shown
    assert colleague.page.url == link
    colleague.close()


def worst_elements(page: Page) -> list[str]:
    """Text of the table of worst elements, row by row."""
    rows = page.locator("table:has-text('candidate bits') tbody tr")
    expect(rows.first).to_be_visible(timeout=PATIENT)
    return rows.all_inner_texts()


def test_a_sample_opens_with_one_click_and_says_what_it_is_about(visit: Visit) -> None:
    page = visit.page
    page.goto("/")
    page.locator(".st-key-open-minilm-fp32-bf16 button").click(timeout=PATIENT)
    expect(page).to_have_url(re.compile("/overview"), timeout=PATIENT)
    expect(page.locator("h1").first).to_have_text(
        "The two runs agree to rounding.", timeout=PATIENT
    )
    expect(page.get_by_text("189 / 189")).to_be_visible()


def test_progress_of_a_comparison_survives_a_reload(visit: Visit) -> None:
    page = visit.page
    page.goto("/")
    page.locator(".st-key-open-decoder-training button").click(timeout=PATIENT)
    page.wait_for_url(re.compile("job=|/overview"), timeout=PATIENT)
    if "job=" in page.url:
        page.reload()
    expect(page).to_have_url(re.compile("/overview"), timeout=PATIENT)
    expect(page.locator("h1").first).to_contain_text("post_attention_layernorm", timeout=PATIENT)


@pytest.mark.parametrize(
    ("address", "missing"),
    [
        ("/overview?c=00000000000000000000", "00000000000000000000"),
        ("/tensor?c={c}&t=nowhere", "nowhere"),
        ("/layers?c={c}&at=model.layers.99", "model.layers.99"),
    ],
)
def test_a_stale_link_says_what_is_missing_and_shows_nothing_else(
    visit: Visit, tmp_path: Path, address: str, missing: str
) -> None:
    comparison = compared(visit, tmp_path) if "{c}" in address else ""
    visit.page.goto(address.format(c=comparison))
    expect(visit.page.get_by_text(missing).first).to_be_visible(timeout=PATIENT)
    expect(visit.page.get_by_text("Traceback")).to_have_count(0)


def test_each_page_is_clean_in_both_themes_and_on_a_telephone(
    server: Server, browser: Browser, tmp_path: Path
) -> None:
    first = Visit(browser, server)
    comparison = compared(first, tmp_path)
    first.close()
    for scheme in ("light", "dark"):
        narrow = Visit(browser, server, color_scheme=scheme, viewport={"width": 390, "height": 844})
        for name in ("", "overview", "layers", "tensor", "drift"):
            narrow.page.goto(f"/{name}?c={comparison}" if name else "/")
            expect(narrow.page.locator("h1").first).to_be_visible(timeout=PATIENT)
            narrow.settle()
            time.sleep(0.5)
            wide = narrow.page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth")
            assert wide <= 0, f"{name} is wider than the screen by {wide} px"
        narrow.close()
