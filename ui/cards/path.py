"""The error path with its pickers: total or added, forward or backward, and as table."""

from __future__ import annotations

import streamlit as st

from charts import execution
from charts.path import Quantity, error_path, has_line, undrawn
from metrics import METRICS
from ui import chart, url
from ui.frame import View
from ui.markup import heading

_SHARES = {
    "total": Quantity("times_floor", "Times floor", in_floors=True),
    "added": Quantity("added", "Added here", in_floors=True),
}
_COLUMNS = ["verdict", "operator", "slot", "times_floor", "added", "relative_l2", "tensor"]


def draw(view: View) -> None:
    """Heading line with the pickers, the chart, what it leaves out; a click opens the tensor."""
    with st.container(horizontal=True, vertical_alignment="center", key="path-head"):
        head = st.empty()
        quantity = _quantity(view.metric)
        direction = _direction(view)
        rows = execution.on_path(view.rows, direction)
        columns = list(dict.fromkeys([*_COLUMNS, quantity.column]))
        chart.as_table(rows[columns], key="path-table")
    head.html(heading("Error along execution order", _aside(quantity), _keys(rows, quantity)))
    figure = error_path(
        rows, quantity, first=view.judgement.first_divergence, theme=view.theme
    )  # fmt: skip
    chart.clickable(figure, key="path", on_click=_open, alt=view.judgement.sentence)
    st.html(f'<p class="px-note">{undrawn(rows, quantity) or "&nbsp;"}</p>')


def _quantity(metric: str) -> Quantity:
    if metric in METRICS:
        return Quantity(metric, METRICS[metric].label, in_floors=False)
    labels = {"total": "Total", "added": "Added here"}
    return url.choose(
        "Error", _SHARES, key="show", labels=labels, style="segments", visible=False
    )  # fmt: skip


def _direction(view: View) -> execution.Direction:
    present = execution.directions(view.rows)
    if len(present) == 1:
        return present[0]
    labels = {"forward": "Forward", "backward": "Backward"}
    options: dict[str, execution.Direction] = {direction: direction for direction in present}
    return url.choose(
        "Direction", options, key="dir", labels=labels, style="segments", visible=False
    )  # fmt: skip


def _aside(quantity: Quantity) -> str:
    if quantity.in_floors:
        return "relative L2 as a multiple of the floor, log scale"
    unit = METRICS[quantity.column].unit
    return quantity.label if unit in ("", "1") else f"{quantity.label}, {unit}"


def _keys(rows, quantity: Quantity) -> str:  # type: ignore[no-untyped-def]
    line = '<span><i class="px-line"></i>repeated blocks</span>' if has_line(rows) else ""
    band = '<span><i class="px-band"></i>floor</span>' if quantity.in_floors else ""
    return f'{line}<span><i class="px-dot"></i>outputs</span>{band}'


def _open(customdata: list[str]) -> None:
    url.go_after("tensor", t=customdata[0])
