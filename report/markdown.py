"""A report as Markdown: text and tables, for an issue tracker or a chat."""

from __future__ import annotations

import re

from report.document import Chart, Part, Report, Section, Steps, Table, Text

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|$~])")


def markdown(report: Report) -> str:
    """The document; charts become their description, names cannot act as markup."""
    head = [
        f"# {_safe(report.title)}",
        f"**{_safe(report.verdict)}** {_safe(report.sentence)}",
        _safe(report.detail),
    ]
    body = [line for section in report.sections for line in _section(section)]
    return "\n\n".join([*head, *body, f"---\n{_safe(report.footer)}"]) + "\n"


def _section(section: Section) -> list[str]:
    return [f"{'#' * section.level} {_safe(section.heading)}", *map(_part, section.parts)]


def _part(part: Part) -> str:
    if isinstance(part, Text):
        return _safe(part.text)
    if isinstance(part, Steps):
        return "\n".join(f"{n}. {_safe(item)}" for n, item in enumerate(part.items, start=1))
    if isinstance(part, Table):
        return _table(part)
    assert isinstance(part, Chart)
    return f"*{_safe(part.alt)}*"


def _table(table: Table) -> str:
    rules = ["---:" if n in set(table.numeric) else "---" for n in range(len(table.head))]
    lines = [table.head, rules, *table.rows]
    return "\n".join(
        f"| {' | '.join(cell if line is rules else _safe(cell) for cell in line)} |"
        for line in lines
    )


def _safe(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
