"""Rows of a table to take away, as CSV and as a spreadsheet; nothing in them acts as a formula."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.numbers import count
from language import _
from report.workbook import sheet_of

SHEET_ROWS = 20_000  # a spreadsheet takes a millisecond a row to write
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would run


def downloads(rows: pd.DataFrame, order: pd.Index) -> None:
    """Both buttons; files are made when they are asked for, in the order shown."""
    st.download_button(
        "CSV", lambda: as_csv(rows.loc[order]), file_name="operators.csv", mime="text/csv",
        key="operators-csv", on_click="ignore",
        help=_("All rows of this filter, with every metric."),
    )  # fmt: skip
    held = _("All rows of this filter, with every metric.")
    if len(order) > SHEET_ROWS:
        held = _("The first {n} rows in this order; CSV has all.", n=count(SHEET_ROWS))
    st.download_button(
        "xlsx", lambda: as_sheet(rows.loc[order[:SHEET_ROWS]]), file_name="operators.xlsx",
        mime="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        key="operators-xlsx", on_click="ignore", help=held,
    )  # fmt: skip


def as_csv(rows: pd.DataFrame) -> str:
    """All rows and columns as CSV; text that a spreadsheet would run as a formula gets a quote."""
    safe = rows.copy()
    for column in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[column]):
            text = safe[column].astype(str)
            safe[column] = text.where(~text.str.startswith(_FORMULA), "'" + text)
    return safe.to_csv(index=False)


def as_sheet(rows: pd.DataFrame) -> bytes:
    """All rows and columns as an .xlsx file; undefined and infinite numbers as in CSV."""
    finite = rows.astype(object).where(rows.notna(), "")
    body = ([_plain(value) for value in row] for row in finite.itertuples(index=False))
    return sheet_of(_("Operators"), [list(rows.columns), *body])


def _plain(value: object) -> str | int | float:
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    return value if isinstance(value, str | int | float) else str(value)
