"""Clicks on heat maps and icicles, which Streamlit's own charts do not report or not usefully."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from charts.template import CONFIG

_JS = Path(__file__).parent / "components" / "clicks.js"
_bridge = st.components.v2.component("px_clicks", js=_JS.read_text(encoding="utf-8"))


def heatmap(figure: go.Figure, *, key: str, alt: str, on_cell: Callable[[int, int], None]) -> None:
    """A heat map; a click calls `on_cell(row, column)` with positions in its z, in a callback."""

    def clicked(click: Any) -> None:
        if isinstance(click, dict) and "row" in click:
            on_cell(int(click["row"]), int(click["col"]))

    _chart(figure, key=key, alt=alt, clicked=clicked)


def icicle(figure: go.Figure, *, key: str, alt: str, on_box: Callable[[str], None]) -> None:
    """An icicle; a click calls `on_box(id)`, in a callback."""

    def clicked(click: Any) -> None:
        if isinstance(click, dict) and "id" in click:
            on_box(str(click["id"]))

    _chart(figure, key=key, alt=alt, clicked=clicked)


def _chart(figure: go.Figure, *, key: str, alt: str, clicked: Callable[[Any], None]) -> None:
    bridge = f"{key}-clicks"
    with st.container(gap=None):
        st.plotly_chart(figure, theme=None, key=key, config=CONFIG, alt=alt)
        _bridge(
            key=bridge,
            data={"target": key},
            on_click_change=lambda: clicked(st.session_state[bridge].get("click")),
            height=1,
        )
