"""A server with a sample compared on it, and the address of every page."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Browser

from tests.live_server import Server, Visit, chromium
from ui.url import PAGES

SAMPLE = "decoder-fault"


@contextmanager
def sample() -> Iterator[tuple[Server, str]]:
    """The server, and the id of the comparison of a sample with a known fault."""
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder)) as server:
        with chromium() as browser:
            compared = compare(browser, server)
        yield server, compared


def compare(browser: Browser, server: Server, name: str = SAMPLE) -> str:
    """Open a sample as a person would; the id of the comparison."""
    visit = Visit(browser, server)
    visit.page.goto("/")
    visit.page.locator(f".st-key-open-{name} button").click(timeout=60_000)
    visit.page.wait_for_url(re.compile("/overview"), timeout=300_000)
    visit.settle()
    compared = parse_qs(urlsplit(visit.page.url).query)["c"][0]
    visit.context.close()
    return compared


def addresses(compared: str) -> Mapping[str, str]:
    """Every page by name, and the presentation of the findings."""
    found = {name: f"/{'' if name == 'runs' else name}?c={compared}" for name in PAGES}
    return found | {"runs": "/", "presenter": f"/findings?c={compared}&present=1"}
