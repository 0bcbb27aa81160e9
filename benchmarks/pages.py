"""What a person waits for on a comparison of 100 000 pairs: every click warm, every link cold.

Times are taken inside the browser, from the click (or the start of the navigation) to the second
frame after the script has ended and what was asked for is drawn. The largest websocket message, the
errors of the console and the requests to other servers are counted along the way.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks import many_pairs
from benchmarks.acts import ACTS, Act, cold, warm
from benchmarks.row import Row
from tests.live_server import Server, Visit, chromium

REPEATS = 7
WARM_MS, COLD_MS, MESSAGE = 500, 2500, 2_000_000
KEPT = "PX_BENCH_PAIRS"  # a folder in which the comparison is kept from one run to the next


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of one act, warm and cold, the largest websocket message in bytes, and the
    milliseconds of processor time that the server spent on a page; the last depend least on what
    else the machine does.
    """

    warm: Sequence[float]
    cold: Sequence[float]
    message: int
    server: float


def measure() -> Iterator[Row]:
    """A line for each click and link, then all of them together."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(os.environ.get(KEPT) or folder).resolve()
        compared = many_pairs.comparison(place)
        yield from _served(place, compared)


def _served(place: Path, compared: str) -> Iterator[Row]:
    found: dict[str, Times] = {}
    errors: list[str] = []
    foreign: list[str] = []
    with Server(place, PX_FOLDERS=str(place)) as server, chromium() as browser:
        for act in ACTS:
            visits = [Visit(browser, server)]
            found[act.name] = _timed(act, compared, visits, server, browser)
            for visit in visits:
                errors += visit.errors
                foreign += visit.foreign
            yield _row(act, found[act.name])
    yield from _together(found.values(), errors, foreign)


def _timed(act: Act, compared: str, visits: list[Visit], server: Server, browser: Browser) -> Times:
    sizes: list[int] = [0]
    _listen(visits[0], sizes)
    clicks = warm(act, compared, visits[0], REPEATS)
    link = visits[0].page.url
    visits[0].context.close()
    links, before = [], server.cpu_s()
    for _ in range(REPEATS):
        visits.append(Visit(browser, server))
        _listen(visits[-1], sizes)
        links.append(cold(act, link, visits[-1]))
        visits[-1].context.close()
    return Times(clicks, links, max(sizes), 1000 * (server.cpu_s() - before) / REPEATS)


def _listen(visit: Visit, sizes: list[int]) -> None:
    visit.page.on(
        "websocket",
        lambda socket: socket.on("framereceived", lambda frame: sizes.append(len(frame))),
    )


def p95(times: Sequence[float]) -> float:
    """The 95th percentile, between the two values around it."""
    return statistics.quantiles(times, n=20, method="inclusive")[-1]


def _row(act: Act, times: Times) -> Row:
    return Row(
        f"{act.name}: click, permalink (median, p95)",
        f"{statistics.median(times.warm):.0f}, {p95(times.warm):.0f} ms; "
        f"{statistics.median(times.cold):.0f}, {p95(times.cold):.0f} ms",
        f"message {times.message / 1e6:.2f} MB, server {times.server:.0f} ms of processor",
    )


def _together(found: Sequence[Times], errors: list[str], foreign: list[str]) -> Iterator[Row]:
    found = list(found)
    clicks = p95([ms for times in found for ms in times.warm])
    links = p95([ms for times in found for ms in times.cold])
    largest = max(times.message for times in found)
    yield Row("any click to painted, p95", f"{clicks:.0f} ms", f"bar {WARM_MS} ms")
    yield Row("any permalink in a new browser, p95", f"{links:.0f} ms", f"bar {COLD_MS} ms")
    yield Row("largest websocket message", f"{largest / 1e6:.2f} MB", f"bar {MESSAGE / 1e6:g} MB")
    yield Row("errors in the console", str(len(errors)), "; ".join(errors[:2]) or "none")
    yield Row("requests to other servers", str(len(foreign)), "; ".join(foreign[:2]) or "none")
