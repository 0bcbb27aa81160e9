"""The error path with its pickers: total or added, forward or backward, and as table."""

from __future__ import annotations

import pandas as pd
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
_COLUMNS = {
    "verdict": "Verdict", "operator": "Operator", "slot": "Slot", "times_floor": "× floor",
    "added": "Added here", "relative_l2": "Relative L2", "problem": "Not compared because",
    "tensor": "Tensor",
}  # fmt: skip


def draw(view: View) -> None:
    """Heading line with the pickers, the chart, what it leaves out; a click opens the tensor."""
    with st.container(horizontal=True, vertical_alignment="center", key="path-head"):
        head = st.empty()
        quantity = _quantity(view.metric)
        direction = _direction(view)
        rows = execution.on_path(view.rows, direction)
        chart.as_table(_numbers(rows, quantity), key="path-table")
    head.html(heading("Error along execution order", _aside(quantity), _keys(rows, quantity)))
    figure = error_path(
        rows, quantity, first=view.judgement.first_divergence, theme=view.theme
    )  # fmt: skip
    chart.clickable(figure, key="path", on_click=_open, alt=view.judgement.sentence)
    st.html(f'<p class="px-note">{undrawn(rows, quantity) or "&nbsp;"}</p>')


def _numbers(rows: pd.DataFrame, quantity: Quantity) -> pd.DataFrame:
    """The chart's numbers under their names in words; the shown metric included."""
    return rows[list(_COLUMNS | {quantity.column: ""})].rename(
        columns=_COLUMNS | ({} if quantity.in_floors else {quantity.column: quantity.label})
    )


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
    diverges = execution.direction_of(view.rows, view.judgement.first_divergence)
    return url.choose(
        "Direction",
        options,
        key="dir",
        labels=labels,
        default=diverges,
        style="segments",
        visible=False,
    )  # fmt: skip


def _aside(quantity: Quantity) -> str:
    if quantity.in_floors:
        return "relative L2 as a multiple of the floor, log scale"
    unit = METRICS[quantity.column].unit
    words = {"1": "", "data": ", in units of the data"}
    return f"{quantity.label}{words.get(unit, f', {unit}')}"


def _keys(rows: pd.DataFrame, quantity: Quantity) -> str:
    line = '<span><i class="px-line"></i>repeated blocks</span>' if has_line(rows) else ""
    band = '<span><i class="px-band"></i>floor</span>' if quantity.in_floors else ""
    return f'{line}<span><i class="px-dot"></i>outputs</span>{band}'


def _open(customdata: list[str]) -> None:
    url.go_after("tensor", t=customdata[0])
