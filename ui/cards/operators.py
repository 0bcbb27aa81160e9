"""The table of operators: sorted and paged on the server, each row a link to its tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from analysis.views_rows import sorted_by
from charts.names import common_prefix, for_html, shorten
from core.numbers import cosine, count, error, times_floor
from metrics import METRICS
from ui import url
from ui.cards.scope import OWN, Scope
from ui.markup import anchor, heading, muted, name, table, verdict_word

Row = Mapping[Any, Any]
PAGE = 50
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would run


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its head, the table's column, how a cell is written (HTML), and its help."""

    head: str
    key: str
    write: Callable[[Row], str]
    help: str = ""
    numeric: bool = False


def draw(scope: Scope) -> None:
    """Heading with pages and download, then one page of the sorted rows."""
    sort, up = url.get("sort") or "verdict", url.get("up") == "1"
    columns = _columns(scope)
    known = {column.key for column in columns}
    if sort not in known:
        st.warning(f"The link sorts by `{for_html(sort)}`, which is not here. Sorted by verdict.")
        sort = "verdict"
    rows = sorted_by(scope.held, sort, descending=not up)
    first = PAGE * (page(len(rows)) - 1)
    with st.container(horizontal=True, vertical_alignment="center", key="operators-head"):
        st.html(heading("Operators", f"sorted by {_words(columns, sort, up)}", _pager(len(rows))))
        _download(rows)
    if rows.empty:
        st.html(muted("No tensor matches. Clear the filter to see all of them."))
        return
    shown = rows.iloc[first : first + PAGE].to_dict("records")
    st.html(
        table(
            [_head(column, sort, up) for column in columns],
            ([column.write(row) for column in columns] for row in shown),
            numeric=[i for i, column in enumerate(columns) if column.numeric],
            label="Operators",
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


def as_csv(rows: pd.DataFrame) -> str:
    """All rows and columns as CSV; text that a spreadsheet would run as a formula gets a quote."""
    safe = rows.copy()
    for column in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[column]):
            text = safe[column].astype(str)
            safe[column] = text.where(~text.str.startswith(_FORMULA), "'" + text)
    return safe.to_csv(index=False)


def _columns(scope: Scope) -> Sequence[Column]:
    prefix = common_prefix([str(p) for p in scope.held["operator"].unique()])
    ulp = METRICS["ulp_p99"]
    added, total = "Error the operator adds itself, × floor", "Relative L2 error, × floor"
    common = f"under {prefix}" if prefix else ""
    return (
        Column("Verdict", "verdict", lambda r: verdict_word(r["verdict"])),
        Column("Operator", "operator", lambda r: _link(r, prefix), common),
        Column("Class", "module_class", lambda r: muted(str(r["module_class"]))),
        Column("Slot", "slot", lambda r: muted(str(r["slot"]))),
        Column("Shape", "elements", lambda r: muted(str(r["shape"]))),
        Column("Added", "added", _strong, added, True),
        Column("Total", "times_floor", lambda r: times_floor(r["times_floor"]), total, True),
        _metric("relative_l2", error),
        _metric("cosine_distance", cosine, head="Cosine"),
        Column(ulp.label, ulp.name, lambda r: whole(r["ulp_p99"]), ulp.help, True),
        Column("Match", "match", _match),
        Column("Problem", "problem", lambda r: for_html(str(r["problem"]), 60)),
    )  # fmt: skip


def _metric(key: str, write: Callable[[float], str], head: str = "") -> Column:
    metric = METRICS[key]

    def cell(row: Row) -> str:
        why = str(row["problem"]) or "undefined for this pair"
        text = write(row[key])
        return text if text != "–" else f'<span title="{for_html(why, 200)}">–</span>'

    return Column(head or metric.label, key, cell, metric.help, True)


def _link(row: Row, prefix: str) -> str:
    path = str(row["operator"])
    text = shorten(path.removeprefix(prefix) or path or "model", 56)
    return anchor(url.link("tensor", t=row["tensor"]), text, mono=True, title=path or "model")


def _strong(row: Row) -> str:
    text = times_floor(row["added"])
    return f"<b>{text}</b>" if row["verdict"] in ("fault", "watch") else text


def _match(row: Row) -> str:
    return name(
        str(row["match"]), title=str(row["match_note"]) or f"matched by {row['match']} name"
    )


def _head(column: Column, sort: str, up: bool) -> str:
    here = column.key == sort
    arrow = (" ↑" if up else " ↓") if here else ""
    turned = "1" if here and not up else None
    kept = {parameter: url.get(parameter) for parameter in OWN}
    href = url.link("layers", **(kept | {"sort": column.key, "up": turned}))
    return anchor(href, column.head + arrow, title=column.help)


def _words(columns: Sequence[Column], sort: str, up: bool) -> str:
    head = next(column.head for column in columns if column.key == sort)
    if sort == "verdict":
        return "verdict, then error added here" + (", mildest first" if up else "")
    return f"{head.lower()}, {'smallest' if up else 'largest'} first"


def _pager(total: int) -> str:
    at, last = page(total), max(1, -(-total // PAGE))
    first = PAGE * (at - 1)
    range_ = f"{count(first + 1)} to {count(min(first + PAGE, total))} of {count(total)}"
    kept = {parameter: url.get(parameter) for parameter in OWN}
    steps = [
        anchor(url.link("layers", **(kept | {"p": n})), word) if 1 <= n <= last else muted(word)
        for word, n in (("‹ previous", at - 1), ("next ›", at + 1))
    ]
    return f"<span>{range_ if total else 'none'}</span>" + (
        f"<span>{steps[0]}</span><span>{steps[1]}</span>" if last > 1 else ""
    )


def _download(rows: pd.DataFrame) -> None:
    st.download_button(
        "CSV", lambda: as_csv(rows), file_name="operators.csv", mime="text/csv",
        key="operators-csv", on_click="ignore",
        help="All rows of this filter, with every metric.",
    )  # fmt: skip
