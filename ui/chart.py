"""Charts on a page: drawn in the product's look, clickable, and always there as a table too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from charts.template import CONFIG
from language import _

_ROWS = 2000  # shown at once; the page Layers has all of them


def clickable(figure: go.Figure, *, key: str, on_click: Callable[[Any], None], alt: str) -> None:
    """A chart of points; a click calls `on_click` with the point's customdata, in a callback.

    For heat maps, whose clicks Streamlit does not report, see `ui.clicks`.
    """
    st.plotly_chart(
        figure,
        theme=None,
        key=key,
        config=CONFIG,
        alt=alt,
        selection_mode="points",
        on_select=lambda: _selected(key, on_click),
    )


def _selected(key: str, on_click: Callable[[Any], None]) -> None:
    points = st.session_state[key].selection.points
    if points:
        data = points[0].get("customdata")
        on_click(list(data.values()) if isinstance(data, dict) else data)


def as_table(rows: pd.DataFrame, *, key: str) -> None:
    """A button that opens the numbers behind a chart; they are sent only when it is open."""
    with st.popover(_("As table"), key=key, on_change="rerun") as opened:
        if opened.open:
            st.dataframe(rows.head(_ROWS), hide_index=True, key=f"{key}-rows", width=900)
            if len(rows) > _ROWS:
                st.caption(
                    _(
                        "The first {n:,} of {total:,} rows; Layers lists all.",
                        n=_ROWS,
                        total=len(rows),
                    )
                )
