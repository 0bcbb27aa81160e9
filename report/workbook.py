"""A report as a spreadsheet: a sheet for each of its tables, numbers in full."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.styles import Font

from report.document import Cell, Report, Section, Table

_FORBIDDEN = re.compile(r"[\[\]:*?/\\]")
_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_NAME_LENGTH = 31


def workbook(report: Report) -> bytes:
    """The workbook as the bytes of an .xlsx file. Text stays text: nothing can act as a formula."""
    book = Workbook(write_only=True)
    first = book.create_sheet(_sheet_name(report.title, set()))
    for line in (report.title, report.verdict, report.sentence, report.detail, report.footer):
        first.append([_cell(first, line)])
    names = {first.title}
    for section in report.sections:
        for part in section.parts:
            if isinstance(part, Table):
                _sheet(book, section, part, names)
    made = io.BytesIO()
    book.save(made)
    return made.getvalue()


def sheet_of(heading: str, rows: Iterable[Sequence[Cell]]) -> bytes:
    """One sheet as the bytes of an .xlsx file, its first row bold. Text stays text."""
    book = Workbook(write_only=True)
    sheet = book.create_sheet(_sheet_name(heading, set()))
    for number, row in enumerate(rows):
        cells = [_cell(sheet, value) for value in row]
        for cell in cells if number == 0 else ():
            cell.font = Font(bold=True)
        sheet.append(cells)
    made = io.BytesIO()
    book.save(made)
    return made.getvalue()


def _sheet(book: Workbook, section: Section, table: Table, names: set[str]) -> None:
    sheet = book.create_sheet(_sheet_name(section.heading, names))
    names.add(sheet.title)
    bold = [_cell(sheet, cell) for cell in table.head]
    for cell in bold:
        cell.font = Font(bold=True)
    sheet.append(bold)
    for row in table.exact() if table.exact else table.rows:
        sheet.append([_cell(sheet, value) for value in row])


def _cell(sheet: object, value: Cell) -> WriteOnlyCell:
    cell = WriteOnlyCell(sheet, value=_ILLEGAL.sub("", value) if isinstance(value, str) else value)
    if isinstance(value, str):
        cell.data_type = "s"  # a name that starts with "=" is a name
    return cell


def _sheet_name(heading: str, taken: set[str]) -> str:
    """A name that Excel accepts and that no other sheet has."""
    base = _FORBIDDEN.sub(" ", heading)[:_NAME_LENGTH].strip() or "Table"
    name, number = base, 2
    while name in taken:
        suffix = f" {number}"
        name, number = base[: _NAME_LENGTH - len(suffix)] + suffix, number + 1
    return name
