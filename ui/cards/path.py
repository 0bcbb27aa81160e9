"""The error path with its pickers: total or added, forward or backward, and as table."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from charts import execution
from charts.names import for_html
from charts.path import Quantity, error_path, has_line, undrawn
from language import _, told
from metrics import METRICS
from ui import chart, url
from ui.frame import View
from ui.kept import kept
from ui.markup import heading

_SHARES = {"total": "times_floor", "added": "added"}


def draw(view: View) -> None:
    """Heading line with the pickers, the chart, what it leaves out; a click opens the tensor."""
    with st.container(horizontal=True, vertical_alignment="center", key="path-head"):
        head = st.empty()
        quantity, slots, direction = _quantity(view.metric), _slots(), _direction(view)
        rows, keys, figure = kept(
            view, "path", lambda: _drawn(view, quantity, slots, direction), quantity
        )
        chart.as_table(_numbers(rows, quantity), key="path-table")
    title = _("Error along execution order")
    head.html(heading(title, _aside(quantity), keys))
    chart.clickable(figure, key="path", on_click=_open, alt=told(view.judgement.sentence))
    st.html(f'<p class="px-note">{undrawn(rows, quantity) or "&nbsp;"}</p>')


def _drawn(
    view: View, quantity: Quantity, slots: execution.Slots, direction: execution.Direction
) -> tuple[pd.DataFrame, str, go.Figure]:
    rows = execution.on_path(view.rows, direction, quantity.column, slots=slots)
    figure = error_path(
        rows, quantity, first=view.judgement.first_divergence, theme=view.theme
    )  # fmt: skip
    return rows, _keys(rows, quantity), figure


def _numbers(rows: pd.DataFrame, quantity: Quantity) -> pd.DataFrame:
    """The chart's numbers under their names in words; the shown metric included."""
    names = {
        "verdict": _("Verdict"), "operator": _("Operator"), "slot": _("Slot"),
        "times_floor": _("× floor"), "added": _("Added here"), "relative_l2": _("Relative L2"),
        "problem": _("Not compared because"), "tensor": _("Tensor"),
    }  # fmt: skip
    shown = rows[list(names | {quantity.column: ""})]
    return shown.rename(
        columns=names if quantity.in_floors else names | {quantity.column: quantity.label}
    )


def _quantity(metric: str) -> Quantity:
    if metric in METRICS:
        return Quantity(metric, _(METRICS[metric].label), in_floors=False)
    labels = {"total": _("Total"), "added": _("Added here")}
    column = url.choose(
        _("Error"), _SHARES, key="show", labels=labels, style="segments", visible=False
    )
    words = {"times_floor": _("Times floor"), "added": _("Added here")}
    return Quantity(column, words[column], in_floors=True)


def _slots() -> execution.Slots:
    options: dict[str, execution.Slots] = {"outputs": "outputs", "inputs": "inputs", "both": "both"}
    labels = {"outputs": _("outputs"), "inputs": _("inputs"), "both": _("inputs and outputs")}
    return url.choose(_("Tensors"), options, key="slots", labels=labels, visible=False, width=150)


def _direction(view: View) -> execution.Direction:
    present = execution.directions(view.rows)
    if len(present) == 1:
        return present[0]
    labels = {"forward": _("Forward"), "backward": _("Backward")}
    options: dict[str, execution.Direction] = {direction: direction for direction in present}
    diverges = execution.direction_of(view.rows, view.judgement.first_divergence)
    return url.choose(
        _("Direction"),
        options,
        key="dir",
        labels=labels,
        default=diverges,
        style="segments",
        visible=False,
    )  # fmt: skip


def _aside(quantity: Quantity) -> str:
    if quantity.in_floors:
        return _("relative L2 as a multiple of the floor, log scale")
    unit = METRICS[quantity.column].unit
    if unit == "data":
        return _("{metric}, in units of the data", metric=quantity.label)
    return quantity.label if unit == "1" else f"{quantity.label}, {unit}"


def _keys(rows: pd.DataFrame, quantity: Quantity) -> str:
    """The legend: the residual stream as a line, its branches as dots."""
    given = bool(rows["given"].any())
    keys = [
        ("px-line", _("residual stream"), has_line(rows)),
        (
            "px-dot",
            _("branch outputs") if has_line(rows) else _("outputs"),
            not rows["given"].all(),
        ),
        ("px-dot px-hollow", _("inputs"), given),
        ("px-band", _("floor"), quantity.in_floors),
    ]
    return "".join(
        f'<span><i class="{kind}"></i>{for_html(word)}</span>'
        for kind, word, shown in keys
        if shown
    )


def _open(customdata: list[str]) -> None:
    url.go_after("tensor", t=customdata[0])
