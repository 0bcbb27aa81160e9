"""The inside of a module as an icicle: height = size of its parts, colour = error."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from analysis.views_tree import Node
from charts.heatmap import ADDED_LITTLE, Colour, Metric, position
from charts.names import for_html
from charts.template import figure, message
from charts.tokens import EMBER_DECADES, Theme, channels, colour_at, ember_position
from core.numbers import UNDEFINED, count, error, times_floor
from core.words import word
from language import _, told


def icicle(
    nodes: Sequence[Node],
    *,
    theme: Theme,
    height: int,
    colour: Colour = "both",
    metric: Metric | None = None,
) -> go.Figure:
    """Boxes of a subtree; the id of each is its module path, as a click reports it.

    Ember for what adds error and grey by total for the rest, as in the heat map; with a `metric`
    grey by its value, on the scale of the boxes shown.
    """
    if not nodes:
        return message(theme, _("Nothing of this kind lies here."), height=height)
    chart = figure(theme, height=height)
    raw = _greys(nodes, metric, theme) if metric and colour == "metric" else None
    fills = [_fill(node, theme, colour) for node in nodes]
    if raw is not None:
        fills = [r if node.leaf else fill for node, r, fill in zip(nodes, raw, fills, strict=True)]
    chart.add_icicle(
        ids=[node.path or "." for node in nodes],
        labels=[_label(node, metric) for node in nodes],
        parents=[_parent(node, nodes[0]) for node in nodes],
        values=[node.size for node in nodes],
        branchvalues="total",
        sort=False,
        tiling={"orientation": "h", "pad": 2},
        pathbar={"visible": False},
        marker={"colors": fills, "line": {"width": 0}},
        leaf={"opacity": 1},
        textposition="middle left",
        textfont={"size": 12, "color": [_ink(fill, theme) for fill in fills]},
        customdata=[_hover(node, metric) for node in nodes],
        hovertemplate=f"<b>%{{customdata[0]}}</b><br>%{{customdata[1]}}<br>{_('click to open')}"
        "<extra></extra>",
    )
    chart.update_layout(
        margin={"l": 0, "r": 0, "t": 4, "b": 8}, uniformtext={"mode": "hide", "minsize": 11}
    )
    return chart


def _parent(node: Node, root: Node) -> str:
    return "" if node is root else node.parent or "."


def _label(node: Node, metric: Metric | None) -> str:
    text = for_html(node.label, 40)
    if not node.leaf:
        return text
    if metric is not None:
        return f"{text}  {error(node.value)}"
    return f"{text}  {times_floor(node.total if math.isnan(node.added) else node.added)}"


def _greys(nodes: Sequence[Node], metric: Metric, theme: Theme) -> list[str]:
    """Fills by a raw metric; the surface where it is undefined."""
    places, _ends = position(np.array([node.value for node in nodes]), metric.ideal)
    return [
        theme.surface_2 if math.isnan(place) else colour_at(theme.inherited, place / EMBER_DECADES)
        for place in places.tolist()
    ]


def _fill(node: Node, theme: Theme, colour: Colour) -> str:
    """Ember for what adds error, grey for what carries it, the surface for what has parts."""
    if not node.leaf:
        return theme.surface_1
    if node.verdict == "uncompared":
        return theme.surface_2
    adds = not math.isnan(node.added) and node.added > ADDED_LITTLE
    found = node.verdict in ("fault", "watch")
    if found or (colour == "added" and adds):
        place = ember_position(node.added if adds else node.total)
        return colour_at(theme.ember, 1.0 if math.isnan(place) else place)
    place = ember_position(node.total) if colour == "both" else 0.0
    return colour_at(theme.inherited, 0.0 if math.isnan(place) else place)


def _ink(fill: str, theme: Theme) -> str:
    """Text or page colour, whichever stands out more."""

    def light(colour: str) -> float:
        red, green, blue = channels(colour)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    return max((theme.text, theme.bg), key=lambda ink: abs(light(ink) - light(fill)))


def _hover(node: Node, metric: Metric | None) -> tuple[str, str]:
    added = UNDEFINED
    if not math.isnan(node.added):
        added = _("{times} floor", times=times_floor(node.added))
    lines = [
        _(
            "total {times} floor, {verdict}",
            times=times_floor(node.total),
            verdict=told(word(node.verdict)),
        ),
        _("added here {amount}", amount=added),
        _("elements {n}", n=count(node.elements)),
    ]
    if node.inside > 1:
        lines[0] = _("{line}, worst of {n} operators", line=lines[0], n=count(node.inside))
    if metric is not None:
        lines[2] = f"{for_html(_(metric.label))} {error(node.value)}"
    return for_html(node.path or _("model")), "<br>".join(lines)
