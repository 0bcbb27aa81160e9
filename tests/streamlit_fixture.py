"""Runs the app's script without a browser, on a workspace of the test's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.runtime import pages_manager
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def navigation_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps AppTest out of the legacy mode, in which pages beside app.py run without it."""
    original = pages_manager.PagesManager.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        pages_manager.PagesManager.uses_pages_directory = False

    monkeypatch.setattr(pages_manager.PagesManager, "__init__", init)


def open_page(name: str, **query: str) -> AppTest:
    """The page as a fresh session sees it that follows a link with this query."""
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30)
    for key, value in query.items():
        test.query_params[key] = value
    if name != "runs":
        test.switch_page(f"pages/{name}.py")
    return test.run()


def html_of(test: AppTest) -> str:
    """Everything the page shows as HTML, joined; style sheets left out."""
    return "\n".join(_bodies(test))


def asked_to_go(test: AppTest) -> str | None:
    """The address the page tells the browser to open, if any."""
    for element in test.get("bidi_component"):
        if element.proto.component_name.endswith("px_frame"):
            go = json.loads(element.proto.mixed.json or element.proto.json).get("go")
            return None if go is None else str(go["href"])
    return None


def _bodies(test: AppTest) -> Iterator[str]:
    for element in test.get("html"):
        body = str(element.proto.body)
        if not body.startswith("<style"):
            yield body
