"""What a report is made of, before it is HTML, Markdown or a workbook."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

Cell = str | int | float


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Steps:
    """A numbered list."""

    items: Sequence[str]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a head; numbers are given as they are shown on the pages.

    `numeric` columns are right-aligned. A workbook asks for `exact` instead of the shown rows where
    it is given: the same cells with numbers in full, and of rows that are too many to show.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: Sequence[int] = ()
    exact: Callable[[], Iterable[Sequence[Cell]]] | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure with its description in words."""

    figure: go.Figure
    alt: str


Part = Text | Steps | Table | Chart


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it. `level` 3 is a part of the section before."""

    heading: str
    parts: Sequence[Part]
    level: int = 2


@dataclass(frozen=True, slots=True)
class Report:
    """The whole document. `kind` is the verdict's id, `verdict` its word.

    `leaves` says, line by line, what is in it.
    """

    title: str
    kind: str
    verdict: str
    sentence: str
    detail: str
    sections: Sequence[Section]
    leaves: Sequence[str]
    footer: str
