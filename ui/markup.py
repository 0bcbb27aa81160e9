"""Small pieces of HTML with the product's look; every name that goes in is made safe here.

Streamlit removes SVG and scripts from HTML, so `ui/style.css` draws the shapes.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Literal, cast

from charts.names import for_html
from charts.tokens import MARKS
from core.comparison import Verdict
from core.words import head

Side = Literal["reference", "candidate"]


def mark(verdict: Verdict) -> str:
    """A verdict's shape alone, where the word stands nearby."""
    arrow = "→" if verdict == "inherited" else ""
    return f'<i class="px-mark px-{verdict}" aria-hidden="true">{arrow}</i>'


def verdict_word(verdict: Verdict, word: str = "") -> str:
    """Shape + word + colour, always all three."""
    text = for_html(word or MARKS[verdict].word)
    return f'<span class="px-verdict px-{verdict}">{mark(verdict)}{text}</span>'


def finding_word(verdict: str, word: str = "") -> str:
    """The same for a finding or a diagnosis; settings rather than arithmetic carry a square."""
    if verdict in MARKS:
        return verdict_word(cast(Verdict, verdict), word)
    text = for_html(word or head(verdict))
    square = '<i class="px-mark px-setup" aria-hidden="true"></i>'
    return f'<span class="px-verdict px-setup">{square}{text}</span>'


def key(side: Side) -> str:
    """The side's line: slate and dashed for the reference, violet and solid for the candidate."""
    return f'<i class="px-key px-{side}" aria-hidden="true"></i>'


def anchor(href: str, text: str, *, mono: bool = False, title: str = "") -> str:
    """A link inside the app: the frame follows it without reloading the page."""
    kind = "px-go px-mono" if mono else "px-go"
    hover = f' title="{for_html(title)}"' if title else ""
    return f'<a class="{kind}" href="{html.escape(href)}"{hover}>{for_html(text)}</a>'


def name(text: str, *, title: str = "", limit: int = 120) -> str:
    """A name from a dump in mono, the full one on hover."""
    hover = for_html(title or text, 1000)
    return f'<span class="px-mono" title="{hover}">{for_html(text, limit)}</span>'


def muted(text: str) -> str:
    """Grey text."""
    return f'<span class="px-muted">{for_html(text, 1000)}</span>'


def heading(text: str, aside: str = "", keys: str = "") -> str:
    """A section's heading line: hairline, h2, a grey remark, legend keys (HTML) at the right."""
    aside = f'<span class="px-muted">{for_html(aside, 400)}</span>' if aside else ""
    keys = f'<span class="px-keys">{keys}</span>' if keys else ""
    return f'<div class="px-head"><h2>{for_html(text, 400)}</h2>{aside}{keys}</div>'


def figures(values: Iterable[tuple[str, str, str]]) -> str:
    """Figures in a row: label, value, and a small grey remark after it."""
    cells = (
        f"<div><dt>{for_html(label)}</dt><dd>{for_html(value)}"
        + (f" <small>{for_html(rest)}</small>" if rest else "")
        + "</dd></div>"
        for label, value, rest in values
    )
    return f'<dl class="px-figures">{"".join(cells)}</dl>'


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, numeric: Sequence[int] = (), label: str
) -> str:
    """A table of HTML cells; `numeric` columns are right-aligned under right-aligned heads.

    With every head empty the table has none.
    """
    right = [' class="px-num"' if i in numeric else "" for i in range(len(heads))]
    top = "".join(f'<th scope="col"{r}>{cell}</th>' for cell, r in zip(heads, right, strict=True))
    top = f"<thead><tr>{top}</tr></thead>" if any(heads) else ""
    body = "".join(
        f"<tr>{''.join(f'<td{r}>{cell}</td>' for cell, r in zip(row, right, strict=True))}</tr>"
        for row in rows
    )
    return (
        f'<div class="px-scroll" tabindex="0" role="region" aria-label="{for_html(label)}">'
        f'<table class="px-table">{top}<tbody>{body}</tbody></table></div>'
    )
