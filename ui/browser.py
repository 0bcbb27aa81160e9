"""The frame's two browser components: in-app links and keys, and the copy-link button."""

from __future__ import annotations

import secrets
from pathlib import Path

import streamlit as st

import language
from language import _
from language.catalogue import LOCALES
from ui import tools, url

_HERE = Path(__file__).parent / "components"
_frame = st.components.v2.component("px_frame", js=(_HERE / "frame.js").read_text())
_copy = st.components.v2.component(
    "px_copy_link",
    html='<button type="button" aria-live="polite"></button>',
    css=(_HERE / "copy_link.css").read_text(),
    js=(_HERE / "copy_link.js").read_text(),
)


def frame() -> None:
    """Follows in-app links, goes where the script asked, completes the address, listens to keys."""
    carried = url.query(**url.carried())
    target = url.pending()
    _frame(
        key="frame",
        data={
            "pages": [page for page in url.PAGES if page != "runs"],
            "carried": carried,
            "kept": url.query(**url.chosen_language()),
            "lang": LOCALES[language.current()].replace("_", "-"),
            "keys": tools.keys(),
            "present": url.link("findings", present=1),
            "presenting": url.get("present") == "1",
            "help": {"title": _("Keys"), "close": _("Close"), "rows": tools.help_rows()},
            "query": carried if _incomplete() else "",
            "go": None if target is None else {"href": target, "id": secrets.token_hex(8)},
        },
        height=1,
    )


def _incomplete() -> bool:
    """Whether the address of a comparison's page says nothing, so that the last one stands in."""
    return not st.query_params and st.context.url is not None and not _on_runs()


def _on_runs() -> bool:
    path = (st.context.url or "").partition("?")[0].rstrip("/")
    return path.rsplit("/", 1)[-1] not in url.PAGES


def copy_link() -> None:
    """A button that copies the address of the view."""
    words = {"copy": _("Copy link"), "copied": _("Copied"), "failed": _("Copy failed")}
    _copy(key="copy-link", data=words, height=30, width=86)
