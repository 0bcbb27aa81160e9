"""The list of findings, worst first; each a link that opens it beside the list."""

from __future__ import annotations

import html
from collections.abc import Sequence

import streamlit as st

from analysis.findings.texts import describe
from charts.names import common_prefix, for_html, shorten
from charts.tokens import MARKS
from core.errors import NotHereError
from core.findings import Diagnosis, Finding
from core.numbers import share
from core.words import head
from language import _, say, told
from ui import url
from ui.markup import finding_word, heading, muted, verdict_word

_MEANINGS = (
    ("fault", say("adds what rounding cannot explain, or is non-finite on one side")),
    ("watch", say("adds somewhat above the floor")),
    ("setup", say("the two runs were given different inputs, masks or weights")),
    ("inherited", say("off, because its inputs are")),
    ("rounding", say("within the floor")),
)


def chosen(diagnosis: Diagnosis) -> Finding | None:
    """The finding the address names, else the first; NotHereError for one that is not here."""
    asked = url.get("f")
    if asked is None:
        return diagnosis.findings[0] if diagnosis.findings else None
    for finding in diagnosis.findings:
        if finding.id == asked:
            return finding
    raise NotHereError(
        _("This comparison has no finding {asked!r}.", asked=asked),
        _("Findings are numbered anew when the analysis changes; open Findings from the top."),
    )


def draw(diagnosis: Diagnosis, open_: Finding | None) -> None:
    """The list, then what each verdict means."""
    findings = diagnosis.findings
    aside = _("{n}, worst first", n=len(findings)) if findings else _("none")
    keys = "<kbd>j</kbd><kbd>k</kbd>" if len(findings) > 1 else ""
    prefix = common_prefix([f.operator for f in findings])
    items = "".join(_item(f, prefix, is_open=f is open_) for f in findings)
    rows = "".join(
        f"<div><dt>{_word(verdict)}</dt><dd>{for_html(meaning, 200)}</dd></div>"
        for verdict, meaning in _MEANINGS
    )
    nav = (
        f'<nav class="px-findings" aria-label="{for_html(_("Findings"))}">{items}</nav>'
        if items
        else ""
    )
    st.html(
        f"{heading(_('Findings'), aside, keys)}{nav}"
        f'<h3 class="px-small">{for_html(_("What each verdict means"))}</h3>'
        f'<dl class="px-legend">{rows}</dl>'
    )


def _item(finding: Finding, prefix: str, *, is_open: bool) -> str:
    text = describe(finding)
    place = finding.operator.removeprefix(prefix) or finding.operator or _("the model itself")
    facts = f"{told(head(finding.side))} · {confidence(finding.confidence)}"
    here = ' aria-current="true"' if is_open else ""
    href = html.escape(url.link("findings", f=finding.id))
    return (
        f'<a class="px-go px-finding" href="{href}"{here}>'
        f'<span class="px-finding-head">{finding_word(finding.verdict)}'
        f"{muted(finding.id)}</span><b>{for_html(text.title, 200)}</b>"
        f'<span class="px-mono" title="{for_html(finding.operator, 1000)}">'
        f"{for_html(shorten(place, 34))}</span>{muted(facts)}</a>"
    )


def confidence(value: float) -> str:
    """How sure a finding or a hypothesis is, in words."""
    return _("confidence {share}", share=share(value, 1))


def _word(verdict: str) -> str:
    return verdict_word(verdict) if verdict in MARKS else finding_word(verdict)  # type: ignore[arg-type]


def others(findings: Sequence[Finding], open_: Finding) -> tuple[Finding | None, Finding | None]:
    """The findings before and after an open one."""
    at = list(findings).index(open_)
    before = findings[at - 1] if at else None
    return before, findings[at + 1] if at + 1 < len(findings) else None
