"""What a person waits for: from a click on the map to the painted tensor, and a cold permalink."""

from __future__ import annotations

import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page

from benchmarks.row import Row
from tests.live_server import Server, Visit, chromium

REPEATS = 9
SAMPLE = "decoder-fault"


def measure() -> Iterator[Row]:
    """Medians and the slowest of several, against opening the empty front page again."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Server(Path(folder)) as server,
        chromium() as browser,
    ):
        visit = Visit(browser, server)
        address = _compare(visit.page)
        drill = [_drill_down(visit, address) for _ in range(REPEATS)]
        link = visit.page.url
        front = [_cold(Visit(browser, server), "/", "h1") for _ in range(REPEATS)]
        cold = [_cold(Visit(browser, server), link, "canvas") for _ in range(REPEATS)]
    reference = f"front page {statistics.median(front):.2f} s"
    yield _row("heat map cell to painted tensor, warm", drill, front, reference)
    yield _row("tensor permalink in a new browser", cold, front, reference)


def _row(what: str, times: list[float], front: list[float], reference: str) -> Row:
    middle = statistics.median(times)
    return Row(
        what,
        f"{middle:.2f} s, slowest {max(times):.2f} s",
        reference,
        f"{middle / statistics.median(front):.2f}",
    )


def _compare(page: Page) -> str:
    page.goto("/")
    page.locator(f".st-key-open-{SAMPLE} button").click()
    page.wait_for_url(re.compile("/overview"), timeout=120_000)
    page.locator("h1").first.wait_for(timeout=60_000)
    return page.url.replace("/overview", "/layers")


def _drill_down(visit: Visit, address: str) -> float:
    page = visit.page
    page.goto(address)
    mark = page.locator(".js-plotly-plot:has(.hm)").first.locator("text=◆").first
    mark.wait_for(state="attached", timeout=60_000)
    visit.settle()
    page.wait_for_timeout(500)
    box = mark.bounding_box()
    assert box is not None
    at = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*at)
    page.wait_for_timeout(300)
    start = time.perf_counter()
    page.mouse.click(*at)
    page.locator("canvas").first.wait_for(timeout=60_000)
    return time.perf_counter() - start


def _cold(visit: Visit, address: str, shown: str) -> float:
    start = time.perf_counter()
    visit.page.goto(address)
    visit.page.locator(shown).first.wait_for(timeout=60_000)
    took = time.perf_counter() - start
    visit.context.close()
    return took
