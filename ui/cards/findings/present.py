"""The presenter: one finding a screen, large enough for the back of a meeting room."""

from __future__ import annotations

import math

import plotly.graph_objects as go
import streamlit as st

from analysis.findings.texts import describe
from analysis.views_findings import replay_of
from charts import execution
from charts.names import for_html, shorten
from charts.path import Quantity, error_path
from charts.template import CONFIG
from core.findings import Diagnosis, Finding
from core.numbers import times_floor
from language import _, say, told
from ui import url
from ui.cards.findings.answer import said_of
from ui.cards.findings.listed import others
from ui.frame import View
from ui.markup import anchor, finding_word, key

_HEIGHT = 420
_QUANTITY = Quantity("times_floor", say("Times floor"), in_floors=True)


def is_on() -> bool:
    """Whether the address asks for the presenter."""
    return url.get("present") == "1"


def draw(view: View, diagnosis: Diagnosis, finding: Finding | None) -> None:
    """Verdict, sentence, the path, three figures, and where the keys lead."""
    with st.container(key="present"):
        title = told(view.judgement.sentence) if finding is None else describe(finding).title
        word = finding_word(diagnosis.verdict) if finding is None else said_of(finding)
        st.html(
            f'<div class="px-big"><p>{word}<span class="px-keys">{_sides(view)}</span></p>'
            f"<h1>{for_html(title, 400)}</h1></div>"
        )
        st.plotly_chart(_path(view), theme=None, key="present-path", config=CONFIG, alt=title)
        if finding is not None:
            st.html(f'<dl class="px-big-figures">{_figures(diagnosis, finding)}</dl>')
        st.html(f'<div class="px-big-foot">{_foot(diagnosis, finding)}</div>')


def _sides(view: View) -> str:
    sides = (("reference", view.comparison.reference), ("candidate", view.comparison.candidate))
    return "".join(f"<span>{key(side)}{for_html(run.label, 30)}</span>" for side, run in sides)  # type: ignore[arg-type]


def _path(view: View) -> go.Figure:
    first = view.judgement.first_divergence
    rows = execution.on_path(view.rows, execution.direction_of(view.rows, first))
    return enlarged(error_path(rows, _QUANTITY, first=first, theme=view.theme))


def enlarged(figure: go.Figure) -> go.Figure:
    """A chart with type and marks for a distance of five metres."""
    figure.update_layout(height=_HEIGHT, margin={"l": 80, "b": 64})
    for axis in (figure.layout.xaxis, figure.layout.yaxis):
        axis.tickfont.size = axis.title.font.size = 18
    for annotation in figure.layout.annotations:
        annotation.font.size = 20 if annotation.font.size > 12 else 18
    for trace in figure.data:
        if trace.marker.size is not None:
            trace.marker.size = trace.marker.size * 1.6
        if trace.line.width is not None:
            trace.line.width = 3
    return figure


def _figures(diagnosis: Diagnosis, finding: Finding) -> str:
    replay, best = replay_of(diagnosis, finding), next(iter(finding.hypotheses), None)
    values = []
    if replay is not None:
        values.append((replay.ratio_candidate, _("the rounding floor, candidate"), True))
        values.append((replay.ratio_reference, _("reference, replayed in float64"), False))
    if best is not None and not math.isnan(best.after):
        values.append((best.after, _("left once the cause is modelled"), False))
    return "".join(
        f"<div><dt>{for_html(label)}</dt><dd{' class=px-over' if hot else ''}>"
        f"{times_floor(value)}</dd></div>"
        for value, label, hot in values
    )


def _foot(diagnosis: Diagnosis, finding: Finding | None) -> str:
    leave = anchor(url.link("findings", f=None if finding is None else finding.id), _("esc: leave"))
    if finding is None:
        return f"<span></span>{leave}"
    at = diagnosis.findings.index(finding) + 1
    place = f'<span class="px-mono">{for_html(shorten(finding.operator, 60))}</span>'
    before, after = others(diagnosis.findings, finding)
    count = _("finding {at} of {total}", at=at, total=len(diagnosis.findings))
    return (
        f"{place}<span>{_step(before, '←')}{count}{_step(after, '→')}{leave}</span>"
        f"{_walk(diagnosis, finding)}"
    )


def _step(finding: Finding | None, arrow: str) -> str:
    if finding is None:
        return f"<kbd>{arrow}</kbd>"
    return anchor(url.link("findings", f=finding.id, present=1), arrow)


def _walk(diagnosis: Diagnosis, finding: Finding) -> str:
    """The findings in order, hidden; the frame's arrow keys walk them as they do a list."""
    items = []
    for each in diagnosis.findings:
        href = for_html(url.link("findings", f=each.id, present=1), 2000)
        here = " aria-current=true" if each is finding else ""
        items.append(f'<a class="px-go px-finding" href="{href}"{here}></a>')
    return f"<span hidden>{''.join(items)}</span>"
