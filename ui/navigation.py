"""Which pages there are, and the top of every screen."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

import language
from charts.tokens import LIGHT, THEMES, Theme
from language import told
from ui import url

ROOT = Path(__file__).resolve().parent.parent
_LOGO = """<svg xmlns="http://www.w3.org/2000/svg" width="22" height="22" viewBox="0 0 22 22" \
fill="none" stroke-width="2.4"><path d="M2 13h7l4 6h7" stroke="{line}"/>\
<path d="M2 13h7l4-9h7" stroke="{accent}"/>\
<circle cx="9" cy="13" r="2.6" fill="{accent}"/></svg>"""


def logo(theme: Theme) -> str:
    """The mark as SVG: two lines that run together, then part."""
    return _LOGO.format(accent=theme.accent, line=theme.line_strong)


def current_theme() -> Theme:
    """The token table of the mode the browser shows."""
    return THEMES.get(st.context.theme.type or "light", LIGHT)


def pages() -> list[st.Page]:
    """The pages whose script exists, Runs first and as the empty path."""
    return [
        st.Page(
            ROOT / "pages" / f"{name}.py",
            title=told(title),
            default=name == "runs",
            url_path=None if name == "runs" else name,
        )
        for name, title in url.PAGES.items()
        if (ROOT / "pages" / f"{name}.py").exists()
    ]


def run() -> None:
    """Sets up the browser tab, the logo and the navigation, and runs the page asked for."""
    language.use(url.language())
    st.set_page_config(
        page_title="Precision Explorer",
        page_icon=str(ROOT / "assets" / "favicon.png"),
        layout="wide",
    )
    st.logo(logo(current_theme()), size="medium")
    st.navigation(pages(), position="top").run()
