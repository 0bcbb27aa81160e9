"""What a person waits for on the page Tensor when the tensor has 2 GB: from an address or an act in
the slice to the painted picture.
"""

from __future__ import annotations

import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
from playwright.sync_api import Page

from benchmarks.row import Row
from tests.live_server import Server, Visit, chromium

ROWS, COLUMNS = 1 << 15, 1 << 14  # float32: 2 GB a side
PLANTED = 20_000, 12_345  # the one element that differs by 3
REPEATS = 5
_BAND = 1024
_PATIENCE = 600_000  # ms
_MESSAGE = 2_000_000  # bytes, at most


def measure() -> Iterator[Row]:
    """Medians and the slowest of several, against opening the empty front page."""
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        _write(folder / "dumps")
        (folder / "server").mkdir()
        with Server(folder / "server", PX_FOLDERS=str(folder / "dumps")) as server:
            visit = Visit(browser, server)
            address, took = _compare(visit.page, folder / "dumps")
            front = [_opened(Visit(browser, server), "/", "h1") for _ in range(REPEATS)]
            first = _first(Visit(browser, server), address)
            cold = [_opened(Visit(browser, server), address, _EXACT) for _ in range(REPEATS)]
            acts, largest = _acts(Visit(browser, server), address)
    reference = f"front page {statistics.median(front):.2f} s"
    yield Row("compare 2 x 2 GB", f"{took:.1f} s", "", "")
    yield _row("first visit to a picture, every element still unread", [first[0]], front, reference)
    yield _row("first visit to block maxima of every element", [first[1]], front, reference)
    yield _row("permalink in a new browser", cold, front, reference)
    for what, times in acts.items():
        yield _row(what, times, front, reference)
    yield Row("largest message", f"{largest:,} B", f"at most {_MESSAGE:,} B",
              f"{largest / _MESSAGE:.2f}")  # fmt: skip


_ANY = ".slices[data-shown]"
_EXACT = '.slices[data-exact="true"]'


def _row(what: str, times: list[float], front: list[float], reference: str) -> Row:
    middle = statistics.median(times)
    ratio = f"{middle / statistics.median(front):.2f}"
    return Row(what, f"{middle:.2f} s, slowest {max(times):.2f} s", reference, ratio)


def _write(folder: Path) -> None:
    """Two runs of one tensor: rounding noise everywhere, one wrong element."""
    rng = np.random.default_rng(0)
    block = rng.standard_normal((_BAND, COLUMNS), dtype=np.float32)
    noise = block * np.float32(3e-8) * rng.standard_normal((_BAND, COLUMNS), dtype=np.float32)
    for side in ("a", "b"):
        (folder / side).mkdir(parents=True)
        with h5py.File(folder / side / "x.h5", "w") as file:
            data = file.create_dataset("net.big", (ROWS, COLUMNS), "f4")
            for top in range(0, ROWS, _BAND):
                band = np.roll(block, top // 7, axis=1) + (noise if side == "b" else 0)
                if side == "b" and top <= PLANTED[0] < top + _BAND:
                    band[PLANTED[0] - top, PLANTED[1]] += 3
                data[top : top + _BAND] = band


def _compare(page: Page, folder: Path) -> tuple[str, float]:
    page.set_default_timeout(_PATIENCE)
    page.goto("/")
    for side, name in (("reference", "a"), ("candidate", "b")):
        page.locator(f".st-key-server-{side} button").first.click()
        field = page.locator(f".st-key-path-{side} input")
        field.fill(str(folder / name))
        field.press("Enter")
        page.locator(f".st-key-slot-{side} .px-read").wait_for()
    start = time.perf_counter()
    page.locator(".st-key-compare button").click()
    page.wait_for_url(re.compile(r"/overview\?c="), timeout=_PATIENCE)
    took = time.perf_counter() - start
    return page.url.replace("/overview", "/tensor") + "&t=net.big", took


def _opened(visit: Visit, address: str, shown: str) -> float:
    start = time.perf_counter()
    visit.page.goto(address)
    visit.page.locator(shown).first.wait_for(timeout=_PATIENCE)
    took = time.perf_counter() - start
    visit.context.close()
    return took


def _first(visit: Visit, address: str) -> tuple[float, float]:
    start = time.perf_counter()
    visit.page.goto(address)
    visit.page.locator(_ANY).wait_for(timeout=_PATIENCE)
    glance = time.perf_counter() - start
    visit.page.locator(_EXACT).wait_for(timeout=_PATIENCE)
    exact = time.perf_counter() - start
    visit.context.close()
    return glance, exact


def _acts(visit: Visit, address: str) -> tuple[dict[str, list[float]], int]:
    """Seconds from each act to its picture, and the bytes of the largest message."""
    largest = [0]

    def heard(frame: bytes | str) -> None:
        largest[0] = max(largest[0], len(frame))

    page = visit.page
    page.on("websocket", lambda socket: socket.on("framereceived", heard))
    page.set_default_timeout(_PATIENCE)
    page.goto(address)
    page.locator(_EXACT).wait_for()
    visit.settle()
    page.locator(".slices").focus()
    times: dict[str, list[float]] = {"zoom in by the keyboard": [], "move by the keyboard": [],
                                     "whole slice": []}  # fmt: skip
    for _ in range(3):
        times["zoom in by the keyboard"] += [_pressed(visit, "+") for _step in range(4)]
        times["move by the keyboard"] += [
            _pressed(visit, key) for key in ("Shift+ArrowRight", "Shift+ArrowDown")
        ]
        times["whole slice"].append(_pressed(visit, "0"))
    visit.context.close()
    return times, largest[0]


def _pressed(visit: Visit, key: str) -> float:
    """Seconds until another part is painted."""
    page = visit.page
    before = page.locator(".slices").get_attribute("data-shown")
    start = time.perf_counter()
    page.keyboard.press(key)
    while page.locator(".slices").get_attribute("data-shown") == before:
        time.sleep(0.005)
    took = time.perf_counter() - start
    visit.settle()
    return took
