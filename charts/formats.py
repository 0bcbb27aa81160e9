"""Heat map of the format lab: tensors against formats, coloured by loss beyond the format's own."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from analysis.lab import SCHEMES, Loss
from charts.names import for_html, shorten
from charts.template import figure, heat_height
from charts.tokens import Theme, colorscale
from core.numbers import error, share
from language import _

MOST_ROWS = 34
DECADES = 2.0  # 1x to 100x the loss that the format costs anyway


def beyond_ideal(loss: Loss) -> float:
    """Relative L2 loss as a multiple of what the format costs Gaussian data; inf out of range."""
    if math.isnan(loss.sqnr_db):
        return math.nan
    if loss.saturated:
        return math.inf
    return float(10 ** ((SCHEMES[loss.scheme].ideal_db - loss.sqnr_db) / 20))


def loss_map(rows: Sequence[tuple[str, Sequence[Loss]]], *, theme: Theme) -> go.Figure:
    """One row a tensor (its name and a loss for each scheme), one column a scheme."""
    chart = figure(theme, height=heat_height(len(rows)) + 24)
    value = np.array([[beyond_ideal(loss) for loss in losses] for _name, losses in rows])
    with np.errstate(divide="ignore"):
        shade = np.log10(np.clip(value, 1.0, 10**DECADES))
    names = [shorten(name, 30) for name, _losses in rows]
    hover = [[_said(name, loss) for loss in losses] for name, losses in rows]
    chart.add_heatmap(
        z=shade, customdata=hover, colorscale=colorscale(theme.ember), zmin=0, zmax=DECADES,
        showscale=False, xgap=2, ygap=2, hovertemplate="%{customdata}<extra></extra>",
        hoverongaps=False,
    )  # fmt: skip
    for row, column in np.argwhere(np.isinf(value)):
        chart.add_annotation(
            x=column, y=row, text="◆", showarrow=False, font={"size": 11, "color": theme.bg}
        )
    chart.update_xaxes(
        side="top", ticks="", tickvals=list(range(len(SCHEMES))),
        ticktext=[scheme.label.replace(" ", "<br>") for scheme in SCHEMES.values()],
    )  # fmt: skip
    chart.update_yaxes(
        autorange="reversed", tickvals=list(range(len(names))), showgrid=False, ticks="",
        ticktext=[for_html(name) for name in names],
    )  # fmt: skip
    chart.update_layout(margin={"t": 48, "b": 8})
    return chart


def _said(name: str, loss: Loss) -> str:
    scheme = SCHEMES[loss.scheme]
    lines = [
        f"<b>{for_html(name)}</b>",
        _(
            "{format}: SQNR {db}, at best {best}",
            format=scheme.label,
            db=db(loss.sqnr_db),
            best=db(scheme.ideal_db),
        ),
        _("relative L2 {value}", value=error(loss.relative_l2)),
        _("out of range {share}", share=share(loss.saturated, 1)),
        _("to zero {share}", share=share(loss.underflow, 1)),
    ]
    return "<br>".join(lines)


def db(value: float) -> str:
    """A level in decibels."""
    if math.isnan(value):
        return "–"
    return _("no error") if math.isinf(value) and value > 0 else f"{value:.1f} dB"
