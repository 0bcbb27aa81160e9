"""Distributions one above the other through the layers, and their quantiles through the steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from analysis.views_ridges import SHARES, Ridges
from charts.histograms import tick
from charts.names import for_html
from charts.template import figure, message
from charts.tokens import Theme, faded
from core.numbers import error
from language import _

MOST = 40  # ridges: more than that are an even choice, with the chosen one
_ROW = 15
_OVERLAP = 1.6  # a ridge may reach into the row above


def ridge_height(rows: int) -> int:
    """Pixels that so many ridges take."""
    return 60 + _ROW * max(rows, 8)


def ridgeline(
    found: Ridges | None,
    *,
    names: Sequence[str],
    tensors: Sequence[str],
    chosen: str,
    theme: Theme,
) -> go.Figure:
    """One line a tensor, first at the top: the reference filled, the candidate over it."""
    height = ridge_height(len(names))
    if found is None:
        return message(theme, _("No value is finite."), height=height)
    chart = figure(theme, height=height)
    middle = (found.edges[:-1] + found.edges[1:]) / 2
    top = np.maximum(found.reference.max(axis=1), found.candidate.max(axis=1))
    for k in range(len(names)):
        size = _OVERLAP / float(top[k]) if top[k] > 0 else 0.0
        hover = [[tensors[k], for_html(names[k])]] * middle.size
        base = np.full(middle.size, float(-k))
        chart.add_scatter(x=middle, y=base, mode="lines", line={"width": 0}, hoverinfo="skip")
        chart.add_scatter(
            x=middle, y=base + size * found.reference[k], mode="lines", fill="tonexty",
            fillcolor=faded(theme.reference, 0.35), line={"width": 0}, hoverinfo="skip",
        )  # fmt: skip
        chart.add_scatter(
            x=middle, y=base + size * found.candidate[k], mode="lines", customdata=hover,
            line={
                "color": theme.candidate,
                "width": 2.5 if tensors[k] == chosen else 1,
            },
            hovertemplate="<b>%{customdata[1]}</b><br>" + _("click to show it")
            + "<extra></extra>",
        )  # fmt: skip
    every = max(1, -(-len(names) // 20))
    at = list(range(0, len(names), every))
    chart.update_yaxes(
        tickvals=[-k for k in at], ticktext=[for_html(names[k], 24) for k in at],
        range=[-len(names) + 0.4, _OVERLAP + 0.2], showgrid=False,
    )  # fmt: skip
    if found.ticks:
        chart.update_xaxes(
            tickvals=[at for at, _value in found.ticks],
            ticktext=[tick(value) for _at, value in found.ticks],
        )
    chart.update_xaxes(range=[float(found.edges[0]), float(found.edges[-1])])
    return chart


def quantile_bands(
    reference: np.ndarray, candidate: np.ndarray, *, names: Sequence[str], title: str, theme: Theme,
    height: int,
) -> go.Figure:  # fmt: skip
    """1 to 99 % and 25 to 75 % of the reference as bands, its median; the candidate's as lines."""
    if not np.isfinite(reference).any() and not np.isfinite(candidate).any():
        return message(theme, _("No value is finite."), height=height)
    chart = figure(theme, height=height)
    x = list(range(len(names)))
    for low, high, opacity in ((0, 4, 0.18), (1, 3, 0.3)):
        chart.add_scatter(x=x, y=reference[:, low], mode="lines", line={"width": 0},
                          hoverinfo="skip")  # fmt: skip
        chart.add_scatter(
            x=x, y=reference[:, high], mode="lines", line={"width": 0}, fill="tonexty",
            fillcolor=faded(theme.reference, opacity), hoverinfo="skip",
        )  # fmt: skip
    for k, share in enumerate(SHARES):
        for side, values, colour, dash in (
            (_("reference"), reference, theme.reference, "dash"),
            (_("candidate"), candidate, theme.candidate, "solid"),
        ):
            if side == _("reference") and share != 0.5:
                continue
            chart.add_scatter(
                x=x, y=values[:, k], mode="lines+markers" if len(x) < 3 else "lines",
                line={"color": colour, "dash": dash, "width": 1.5 if share == 0.5 else 1},
                customdata=[[names[i], f"{100 * share:g} %", error(float(v))]
                            for i, v in enumerate(values[:, k])],
                hovertemplate=f"<b>%{{customdata[0]}}</b><br>{side} %{{customdata[1]}} "
                "%{customdata[2]}<extra></extra>",
            )  # fmt: skip
    every = max(1, -(-len(names) // 10))
    chart.update_xaxes(
        tickvals=x[::every], ticktext=[for_html(n, 12) for n in names[::every]], title_text=title
    )
    return chart
