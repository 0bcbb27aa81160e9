"""The Plotly template, built from the token table once for light and once for dark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

from charts.tokens import DARK, LIGHT, Theme, colorscale

FONT = '"Source Sans", "Noto Sans CJK SC", "Microsoft YaHei", "PingFang SC", sans-serif'
MONO = '"Source Code Pro", "Noto Sans Mono CJK SC", "Cascadia Mono", Consolas, Menlo, monospace'

# Zoom is by drag; picture, table and reset live in our own menu.
CONFIG: dict[str, Any] = {"displayModeBar": False, "doubleClick": "reset", "scrollZoom": False}

PATH_HEIGHT = 266
HISTOGRAM_HEIGHT = 132


def heat_height(rows: int) -> int:
    """Pixels of a heat map with this many rows."""
    return 22 * rows + 60


def bars_height(bars: int) -> int:
    """Pixels of a chart of stacked horizontal bars."""
    return 30 * bars + 50


def _axis(theme: Theme) -> dict[str, Any]:
    return {
        "showgrid": False,
        "gridcolor": theme.line,
        "gridwidth": 1,
        "zeroline": False,
        "showline": False,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": theme.line_strong,
        "tickfont": {"size": 12, "color": theme.muted},
        "ticklabelstandoff": 2,
        "automargin": True,
        "title": {"standoff": 8, "font": {"size": 12, "color": theme.muted}},
    }


def _build(theme: Theme) -> go.layout.Template:
    axis = _axis(theme)
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 12, "color": theme.text},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": [theme.reference, theme.candidate, *theme.further],
            "margin": {"l": 52, "r": 8, "t": 8, "b": 40},
            "xaxis": axis,
            "yaxis": axis | {"showgrid": True},
            "showlegend": False,
            "bargap": 0.12,
            "hovermode": "closest",
            "hoverlabel": {
                "bgcolor": theme.surface_1,
                "bordercolor": theme.line_strong,
                "align": "left",
                "font": {"size": 12, "color": theme.text, "family": FONT},
            },
            "colorscale": {
                "sequential": colorscale(theme.ember),
                "diverging": colorscale(theme.signed),
            },
            "coloraxis": {"cmin": 0, "cmax": 3, "showscale": False},
            "uniformtext": {"mode": "show", "minsize": 11},
        }
    )


TEMPLATES: Mapping[str, go.layout.Template] = {t.mode: _build(t) for t in (LIGHT, DARK)}


def figure(theme: Theme, *, height: int) -> go.Figure:
    """An empty figure of the product's look; charts add traces to it."""
    return go.Figure(layout={"template": TEMPLATES[theme.mode], "height": height})


def message(theme: Theme, text: str, *, height: int) -> go.Figure:
    """An empty chart that says why, in the place and height of the chart."""
    drawn = figure(theme, height=height)
    drawn.update_xaxes(visible=False).update_yaxes(visible=False)
    drawn.add_annotation(
        text=text, showarrow=False, font={"size": 13, "color": theme.muted},
        x=0.5, y=0.5, xref="paper", yref="paper",
    )  # fmt: skip
    return drawn
