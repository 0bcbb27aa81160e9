"""The one style sheet outside the theme file, with the tokens of the current mode as variables."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from pathlib import Path

import streamlit as st

from charts.tokens import THEMES, Theme

SHEET = Path(__file__).parent / "style.css"


def apply(theme: Theme) -> None:
    """Puts the style sheet on the page; draws nothing."""
    st.html(f"<style>{_sheet(theme.mode)}</style>")


@cache
def _sheet(mode: str) -> str:
    theme = THEMES[mode]
    values = {f.name: getattr(theme, f.name) for f in fields(theme) if f.name != "mode"}
    tokens = (
        f"--px-{name.replace('_', '-')}:{value};"
        for name, value in values.items()
        if isinstance(value, str)
    )
    return f":root{{{''.join(tokens)}}}\n{SHEET.read_text(encoding='utf-8')}"
