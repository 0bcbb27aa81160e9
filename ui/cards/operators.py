"""The table of operators: sorted and paged on the server, each row a link to its tensor."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from analysis.views_rows import order_by
from analysis.views_traces import Along, along, traces
from charts.names import common_prefix, for_html, shorten
from charts.sparkline import sparkline
from charts.tokens import Theme
from core.numbers import cosine, count, error, times_floor
from core.words import word
from language import _, told
from metrics import METRICS
from ui import url
from ui.cards import notes
from ui.cards.downloads import downloads
from ui.cards.scope import OWN, Scope
from ui.frame import View
from ui.markup import anchor, heading, muted, name, table, verdict_word

Row = Mapping[Any, Any]
PAGE = 50
_TRACE, _NOTE = "trace", "note"  # columns that are not the table's and cannot be sorted by


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its head, the table's column, how a cell is written (HTML), and its help."""

    head: str
    key: str
    write: Callable[[Row], str]
    help: str = ""
    numeric: bool = False
    sorts: bool = True


def draw(view: View, scope: Scope) -> None:
    """Heading with pages and downloads, then one page of the sorted rows."""
    sort, up = url.get("sort") or "verdict", url.get("up") == "1"
    columns = _columns(view, scope)
    if sort not in {column.key for column in columns if column.sorts}:
        asked = for_html(sort)
        st.warning(
            _("The link sorts by `{column}`, which is not here. Sorted by verdict.", column=asked)
        )
        sort = "verdict"
    order = order_by(scope.held, sort, descending=not up)
    first = PAGE * (page(len(order)) - 1)
    with st.container(horizontal=True, vertical_alignment="center", key="operators-head"):
        aside = _("sorted by {column}", column=_words(columns, sort, up))
        st.html(heading(_("Operators"), aside, _pager(len(order))))
        downloads(view.table, order)
    if not len(order):
        st.html(muted(_("No tensor matches. Clear the filter to see all of them.")))
        return
    rows = _with_extras(view, scope, scope.held.loc[order[first : first + PAGE]])
    st.html(
        table(
            [_head(column, sort, up) for column in columns],
            ([column.write(row) for column in columns] for row in rows),
            numeric=[i for i, column in enumerate(columns) if column.numeric],
            label=_("Operators"),
        )
    )


def page(rows: int, size: int = PAGE) -> int:
    """The page the address asks for, from 1; the nearest there is."""
    asked = url.get("p") or "1"
    last = max(1, -(-rows // size))
    return min(max(1, int(asked) if asked.isdecimal() else 1), last)


def whole(value: float) -> str:
    """A count that metrics carry as a float: grouped below a million."""
    return count(int(value)) if 0 <= value < 1e6 else error(value)


def _with_extras(view: View, scope: Scope, shown: pd.DataFrame) -> list[dict[Any, Any]]:
    """The rows with their trace and the word of the newest note."""
    rows = shown.to_dict("records")
    over = along(view.table, scope.stack)
    said = view.workspace.annotations(view.comparison.id)
    held = view.table[view.table["slot"].isin(shown["slot"].unique())]
    lines = (
        traces(held, shown, over=over, stack=scope.stack, column="times_floor")
        if over is not None
        else [()] * len(rows)
    )
    for row, line in zip(rows, lines, strict=True):
        row[_TRACE] = line
        row[_NOTE] = notes.status_of(said, str(row["operator"])) if said else ""
    return rows


def _columns(view: View, scope: Scope) -> Sequence[Column]:
    prefix = common_prefix([str(path) for path in scope.held["operator"].unique()])
    ulp = METRICS["ulp_p99"]
    added, total = (
        _("Error the operator adds itself, × floor"),
        _("Relative L2 error, × floor"),
    )
    common = _("under {prefix}", prefix=prefix) if prefix else ""
    columns = [
        Column(_("Verdict"), "verdict", lambda r: verdict_word(r["verdict"])),
        Column(_("Operator"), "operator", lambda r: _link(r, prefix), common),
        *_place_columns(view),
        Column(_("Class"), "module_class", lambda r: muted(str(r["module_class"]))),
        Column(_("Slot"), "slot", lambda r: muted(str(r["slot"]))),
        Column(_("Shape"), "elements", lambda r: muted(str(r["shape"]))),
        Column(_("Added"), "added", _strong, added, True),
        Column(_("Total"), "times_floor", lambda r: times_floor(r["times_floor"]), total, True),
        *_trace_column(view, scope),
        _metric("relative_l2", error),
        _metric("cosine_distance", cosine, head=_("Cosine")),
        Column(_(ulp.label), ulp.name, lambda r: whole(r["ulp_p99"]), told(ulp.help), True),
        Column(_("Match"), "match", _match),
        Column(_("Problem"), "problem", lambda r: for_html(str(r["problem"]), 60)),
        Column(_("Note"), _NOTE, lambda r: for_html(r[_NOTE]), sorts=False),
    ]
    shown = {column.key for column in columns}
    if view.metric in METRICS and view.metric not in shown:
        columns.insert(-6, _metric(view.metric, error))
    return columns


def _place_columns(view: View) -> list[Column]:
    """Step and rank, where rows of several are listed."""
    heads = {"step": _("Step"), "rank": _("Rank")}
    return [
        Column(heads[key], key, lambda r, key=key: _whole_number(r[key]), numeric=True)  # type: ignore[misc]
        for key in ("step", "rank")
        if view.rows[key].nunique() > 1
    ]


def _whole_number(value: float) -> str:
    return "–" if pd.isna(value) else str(int(value))


def _trace_column(view: View, scope: Scope) -> list[Column]:
    over: Along | None = along(view.table, scope.stack)
    if over is None:
        return []
    head = _("Total, by step") if over == "step" else _("Total, by layer")
    explained = _("Total error of the same tensor at every step, × floor, log scale")
    if over == "layer":
        explained = _("Total error of the same tensor in every layer, × floor, log scale")
    return [Column(head, _TRACE, lambda r: _spark(r[_TRACE], view.theme), explained, sorts=False)]


def _spark(values: Sequence[float], theme: Theme) -> str:
    if len(values) < 2:
        return muted("–")
    drawn = b64encode(sparkline(values, theme, width=80, height=18).encode()).decode()
    known = [value for value in values if value == value]  # not NaN
    low, high = (times_floor(end(known)) if known else "–" for end in (min, max))
    alt = _("{low} to {high} over {n}", low=low, high=high, n=len(values))
    return (
        f'<img class="px-trace" alt="{for_html(alt)}" title="{for_html(alt)}" width="80" '
        f'height="18" src="data:image/svg+xml;base64,{drawn}">'
    )


def _metric(key: str, write: Callable[[float], str], head: str = "") -> Column:
    metric = METRICS[key]

    def cell(row: Row) -> str:
        why = str(row["problem"]) or _("undefined for this pair")
        text = write(row[key])
        return text if text != "–" else f'<span title="{for_html(why, 200)}">–</span>'

    return Column(head or _(metric.label), key, cell, told(metric.help), True)


def _link(row: Row, prefix: str) -> str:
    path = str(row["operator"])
    text = shorten(path.removeprefix(prefix) or path or _("model"), 56)
    return anchor(url.link("tensor", t=row["tensor"]), text, mono=True, title=path or _("model"))


def _strong(row: Row) -> str:
    text = times_floor(row["added"])
    return f"<b>{text}</b>" if row["verdict"] in ("fault", "watch") else text


def _match(row: Row) -> str:
    method = told(word(str(row["match"])))
    return name(
        method, title=str(row["match_note"]) or _("matched by {method} name", method=method)
    )


def _head(column: Column, sort: str, up: bool) -> str:
    if not column.sorts:
        return f'<span title="{for_html(column.help, 200)}">{for_html(column.head)}</span>'
    here = column.key == sort
    arrow = (" ↑" if up else " ↓") if here else ""
    turned = "1" if here and not up else None
    kept = {parameter: url.get(parameter) for parameter in OWN}
    href = url.link("layers", **(kept | {"sort": column.key, "up": turned}))
    return anchor(href, column.head + arrow, title=column.help)


def _words(columns: Sequence[Column], sort: str, up: bool) -> str:
    if sort == "verdict":
        mildest = _("verdict, then error added here, mildest first")
        return mildest if up else _("verdict, then error added here")
    head = next(column.head for column in columns if column.key == sort)
    if up:
        return _("{column}, smallest first", column=head.lower())
    return _("{column}, largest first", column=head.lower())


def _pager(total: int) -> str:
    at, last = page(total), max(1, -(-total // PAGE))
    first = PAGE * (at - 1)
    said = _(
        "{first} to {last} of {total}",
        first=count(first + 1),
        last=count(min(first + PAGE, total)),
        total=count(total),
    )
    kept = {parameter: url.get(parameter) for parameter in OWN}
    steps = [
        anchor(url.link("layers", **(kept | {"p": n})), word) if 1 <= n <= last else muted(word)
        for word, n in ((_("‹ previous"), at - 1), (_("next ›"), at + 1))
    ]
    return f"<span>{for_html(said if total else _('none'))}</span>" + (
        f"<span>{steps[0]}</span><span>{steps[1]}</span>" if last > 1 else ""
    )
