"""A report as one HTML file: its charts move, and nothing is ever requested from anywhere."""

from __future__ import annotations

from pathlib import Path

from plotly.offline import get_plotlyjs

from charts.names import for_html
from charts.template import CONFIG
from language import current
from language.catalogue import LOCALES
from report.document import Chart, Part, Report, Section, Steps, Table, Text

_STYLE = (Path(__file__).parent / "report.css").read_text(encoding="utf-8")
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:"
)
_LONG = 4000  # characters; names are cut much earlier


def page(report: Report) -> str:
    """The document with its style, its charts and the program that draws them inside."""
    body = "".join(_section(section, n) for n, section in enumerate(report.sections))
    script = f"<script>{get_plotlyjs()}</script>" if _has_charts(report) else ""
    return (
        f'<!doctype html><html lang="{LOCALES[current()].replace("_", "-")}"><head>'
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{_text(report.title)}</title><style>{_STYLE}</style>{script}</head><body><main>"
        f'<p class="verdict {_text(report.kind)}">{_text(report.verdict)}</p>'
        f"<h1>{_text(report.sentence)}</h1>"
        f'<p class="detail">{_text(report.detail)}</p>{body}'
        f"<footer>{_text(report.title)} · {_text(report.footer)}</footer></main></body></html>"
    )


def _has_charts(report: Report) -> bool:
    return any(isinstance(part, Chart) for section in report.sections for part in section.parts)


def _section(section: Section, number: int) -> str:
    parts = "".join(_part(part, f"{number}-{n}") for n, part in enumerate(section.parts))
    tag = f"h{section.level}"
    return f"<section><{tag}>{_text(section.heading)}</{tag}>{parts}</section>"


def _part(part: Part, key: str) -> str:
    if isinstance(part, Text):
        return f"<p>{_text(part.text)}</p>"
    if isinstance(part, Steps):
        return f"<ol>{''.join(f'<li>{_text(item)}</li>' for item in part.items)}</ol>"
    if isinstance(part, Table):
        return _table(part)
    assert isinstance(part, Chart)
    drawn = part.figure.to_html(
        full_html=False, include_plotlyjs=False, div_id=f"chart-{key}", config=CONFIG
    )
    return f'<figure role="img" aria-label="{_text(part.alt)}">{drawn}</figure>'


def _table(table: Table) -> str:
    right = [' class="number"' if n in set(table.numeric) else "" for n in range(len(table.head))]
    head = "".join(
        f'<th scope="col"{look}>{_text(cell)}</th>'
        for cell, look in zip(table.head, right, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td{look}>{_text(cell)}</td>" for cell, look in zip(row, right, strict=True))
        + "</tr>"
        for row in table.rows
    )
    top = f"<thead><tr>{head}</tr></thead>" if any(table.head) else ""
    return f'<div class="scroll"><table>{top}<tbody>{rows}</tbody></table></div>'


def _text(text: str) -> str:
    return for_html(text, _LONG)
