"""The inside of a module as an icicle: height = elements, colour = error added."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from analysis.views_tree import Node
from charts.heatmap import ADDED_LITTLE
from charts.names import for_html
from charts.template import figure, message
from charts.tokens import Theme, channels, colour_at, ember_position
from core.numbers import UNDEFINED, count, times_floor


def icicle(nodes: Sequence[Node], *, theme: Theme, height: int) -> go.Figure:
    """Boxes of a subtree; the id of each is its module path, as a click reports it."""
    if not nodes:
        return message(theme, "Nothing of this kind lies here.", height=height)
    chart = figure(theme, height=height)
    fills = [_fill(node, theme) for node in nodes]
    chart.add_icicle(
        ids=[node.path or "." for node in nodes],
        labels=[_label(node) for node in nodes],
        parents=[_parent(node, nodes[0]) for node in nodes],
        values=[node.elements for node in nodes],
        branchvalues="total",
        sort=False,
        tiling={"orientation": "h", "pad": 2},
        pathbar={"visible": False},
        marker={"colors": fills, "line": {"width": 0}},
        leaf={"opacity": 1},
        textposition="middle left",
        textfont={"size": 12, "color": [_ink(fill, theme) for fill in fills]},
        customdata=[_hover(node) for node in nodes],
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<br>click to open<extra></extra>",
    )
    chart.update_layout(
        margin={"l": 0, "r": 0, "t": 4, "b": 8}, uniformtext={"mode": "hide", "minsize": 11}
    )
    return chart


def _parent(node: Node, root: Node) -> str:
    return "" if node is root else node.parent or "."


def _label(node: Node) -> str:
    text = for_html(node.label, 40)
    if not node.leaf:
        return text
    return f"{text}  {times_floor(node.total if math.isnan(node.added) else node.added)}"


def _fill(node: Node, theme: Theme) -> str:
    """Ember for what adds error, grey for what carries it, the surface for what has parts."""
    if not node.leaf:
        return theme.surface_1
    if node.verdict == "uncompared":
        return theme.surface_2
    if node.verdict in ("fault", "watch"):
        adds = not math.isnan(node.added) and node.added > ADDED_LITTLE
        place = ember_position(node.added if adds else node.total)
        return colour_at(theme.ember, 1.0 if math.isnan(place) else place)
    place = ember_position(node.total)
    return colour_at(theme.inherited, 0.0 if math.isnan(place) else place)


def _ink(fill: str, theme: Theme) -> str:
    """Text or page colour, whichever stands out more."""

    def light(colour: str) -> float:
        red, green, blue = channels(colour)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    return max((theme.text, theme.bg), key=lambda ink: abs(light(ink) - light(fill)))


def _hover(node: Node) -> tuple[str, str]:
    added = UNDEFINED if math.isnan(node.added) else f"{times_floor(node.added)} floor"
    worst = f", worst of {count(node.inside)} operators" if node.inside > 1 else ""
    lines = (
        f"total {times_floor(node.total)} floor, {node.verdict}{worst}",
        f"added here {added}",
        f"elements {count(node.elements)}",
    )
    return for_html(node.path or "model"), "<br>".join(lines)
