"""The error path step by step: small multiples on one axis."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from charts.execution import Direction, directions, on_path
from charts.many import paths
from language import _
from ui import chart, url
from ui.frame import View
from ui.kept import kept
from ui.markup import heading

_MOST = 8


def draw(view: View) -> None:
    """One path for each step of this comparison; nothing for a run of one step."""
    steps = sorted(view.table["step"].dropna().unique())
    if len(steps) < 2:
        return
    shown = _shown(view.table, steps)
    aside = _("times floor, one axis for all")
    if len(shown) < len(steps):
        aside = _("the {n} of {total} steps with the largest error, times floor",
                  n=len(shown), total=len(steps))  # fmt: skip
    options: dict[str, Direction] = {name: name for name in directions(view.table)}
    labels = {"forward": _("Forward"), "backward": _("Backward")}
    with st.container(horizontal=True, vertical_alignment="center", key="steps-head"):
        st.html(heading(_("Step by step"), aside))
        way: Direction = next(iter(options.values()))
        if len(options) > 1:
            way = url.choose(
                _("Direction"), options, key="way", labels=labels, style="segments", visible=False
            )
    figure = kept(view, "steps", lambda: _figure(view, shown, way), way)

    def opened(point: list[str]) -> None:
        url.go_after("tensor", t=point[1])

    chart.clickable(figure, key="step-paths", on_click=opened,
                    alt=_("Error along execution order in each step"))  # fmt: skip


def _figure(view: View, shown: list[float], way: Direction) -> go.Figure:
    drawn = {
        _("step {n}", n=int(step)): on_path(view.table[view.table["step"] == step], way)
        for step in shown
    }
    held = {label: rows for label, rows in drawn.items() if len(rows)}
    return paths(held, theme=view.theme)


def _shown(table: pd.DataFrame, steps: list[float]) -> list[float]:
    """All steps, or those with the largest error, in their order."""
    worst = table.groupby("step")["times_floor"].max().fillna(0.0)
    return sorted(worst.nlargest(_MOST).index) if len(steps) > _MOST else steps
