"""Every page in Chinese: what it shows holds no English sentence."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import fakes
import memory_workspace
import pytest
from streamlit.testing.v1 import AppTest
from streamlit_fixture import navigation_mode, open_page

import language
from store import workspace
from ui import url

pytestmark = pytest.mark.usefixtures("navigation_mode")
__all__ = ["navigation_mode"]

WIDGETS = (
    "button", "selectbox", "markdown", "caption", "warning", "error", "info", "expander",
    "text_input", "text_area", "toggle", "checkbox", "download_button", "popover", "multiselect",
    "number_input", "button_group", "date_input",
)  # fmt: skip
SENTENCE = re.compile(r"[A-Za-z]{2,}[,;:.]? [a-z]{2,}")
# Labels that a dump brings, terms and titles that are English in Chinese texts too, and commands.
NAMES = re.compile(
    r"python cli\.py|pip install|reference run|candidate run|token ids|position ids|block table"
    r"|Accuracy and Stability|Divergence measures|Credit Risk|cuBLAS|HDF5|NumPy"
    r"|\bdump\b|\btop-k\b|\bbatch\b|\bstep [0-9]|\brank [0-9]|split-K|\bhead\b|x86 CPU"
)


@pytest.fixture(params=["decoder", "fake"])
def comparison(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    served: object
    if request.param == "decoder":
        served = memory_workspace.workspace_of(*memory_workspace.decoder())
        compared = served.compared.id
    else:
        served = fakes.FakeWorkspace(compared={"c0ffee": fakes.comparison()})
        compared = "c0ffee"
    monkeypatch.setattr(workspace, "default", lambda: served)
    yield compared
    language.use("en")


@pytest.mark.parametrize("name", list(url.PAGES))
def test_a_page_in_chinese_holds_no_english_sentence(name: str, comparison: str) -> None:
    page = open_page(name, c=comparison, lang="zh")
    shown = {html.unescape(text).strip() for text in texts(page)}
    assert [text for text in sorted(shown) if SENTENCE.search(NAMES.sub("", text))] == []
    assert any(re.search(r"[\u4e00-\u9fff]", text) for text in shown)


def texts(page: AppTest) -> Iterator[str]:
    """Everything of a page that people read or hear: HTML, its titles, labels, helps, options."""
    for element in page.get("html"):
        body = str(element.proto.body)
        if not body.startswith("<style"):
            yield from re.findall(r'(?:title|aria-label|alt)="([^"]*)"', body)
            yield from re.split(r"<[^>]*>", body)
    for kind in WIDGETS:
        for element in page.get(kind):
            for field in ("label", "body", "help", "placeholder", "text"):
                value = getattr(element.proto, field, "")
                yield value if isinstance(value, str) else ""
            for option in getattr(element.proto, "options", ()):
                yield option if isinstance(option, str) else str(getattr(option, "content", ""))
