"""`python -m benchmarks screenshots`: every page, both themes, both languages, three widths.

Each picture shows the whole page. The names are `page-theme-language-width.png`.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks.row import Row
from benchmarks.served import addresses, sample
from language import LANGUAGES
from tests.live_server import Server, Visit, chromium

THEMES = ("light", "dark")
WIDTHS = (390, 820, 1440)
FOLDER = "PX_SCREENSHOTS"  # where the pictures go when no folder is named
_HEIGHT = 900
_DRAWN_MS = 900  # charts are drawn after the script has ended


def measure() -> Iterator[Row]:
    """The pictures into the folder that PX_SCREENSHOTS names, else into a new one."""
    folder = Path(os.environ.get(FOLDER) or tempfile.mkdtemp(prefix="px-screenshots-"))
    yield from taken(folder)


def taken(folder: Path, *, only: frozenset[str] = frozenset()) -> Iterator[Row]:
    """A line a page; `only` limits the pages."""
    folder.mkdir(parents=True, exist_ok=True)
    with sample() as (server, compared), chromium() as browser:
        for name, address in addresses(compared).items():
            if not only or name in only:
                pictures = [
                    _picture(browser, server, folder, name, address, theme, code, width)
                    for theme, code, width in itertools.product(THEMES, LANGUAGES, WIDTHS)
                ]
                odd = [line for picture in pictures for line in picture]
                yield Row(f"{len(pictures)} pictures of {name}", str(folder), "; ".join(odd[:3]))


def _picture(
    browser: Browser,
    server: Server,
    folder: Path,
    name: str,
    address: str,
    theme: str,
    code: str,
    width: int,
) -> list[str]:
    """Take one; what was odd about the visit."""
    look: Mapping[str, object] = {
        "viewport": {"width": width, "height": _HEIGHT}, "color_scheme": theme,
    }  # fmt: skip
    visit = Visit(browser, server, **look)
    visit.page.goto(f"{address}{'&' if '?' in address else '?'}lang={code}")
    visit.settle()
    visit.page.wait_for_timeout(_DRAWN_MS)
    main = visit.page.locator("[data-testid=stMain]")
    height = int(main.evaluate("(main) => main.scrollHeight"))
    visit.page.set_viewport_size({"width": width, "height": max(_HEIGHT, height)})
    visit.page.wait_for_timeout(_DRAWN_MS // 2)
    visit.page.screenshot(path=folder / f"{name}-{theme}-{code}-{width}.png")
    wide = int(main.evaluate("(main) => main.scrollWidth - main.clientWidth"))
    visit.context.close()
    return [*visit.errors, *([f"{wide} px too wide at {width}"] if wide > 0 else [])]
