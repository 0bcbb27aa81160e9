"""The open finding in words: verdict, confidence, place, what is wrong, and where it may lie."""

from __future__ import annotations

import streamlit as st

from analysis.findings.texts import describe
from charts.names import for_html, shorten
from core.findings import Diagnosis, Finding
from core.numbers import count
from core.words import head, word
from language import _, listing, say, sentences, told
from ui import url
from ui.cards.findings.listed import confidence
from ui.markup import anchor, finding_word, heading, muted, name

_SAID = {
    ("fault", "candidate"): say("Fault in the candidate"),
    ("fault", "reference"): say("Fault in the reference"),
    ("fault", "both"): say("Fault in both sides"),
    ("watch", "candidate"): say("Watch in the candidate"),
    ("watch", "reference"): say("Watch in the reference"),
    ("watch", "both"): say("Watch in both sides"),
    ("setup", "candidate"): say("Setup in the candidate"),
    ("setup", "reference"): say("Setup in the reference"),
    ("setup", "both"): say("Setup in both sides"),
}
_NONE = {
    "rounding": say("No finding: rounding explains every difference."),
    "uncompared": say("Too little could be compared to find anything."),
}


def draw(finding: Finding) -> None:
    """The head of an open finding."""
    text = describe(finding)
    word = said_of(finding)
    sure = f'<span class="px-chip">{for_html(confidence(finding.confidence))}</span>'
    st.html(
        f'<div class="px-answer"><p class="px-line-up">{word}{sure}{_place(finding)}</p>'
        f'<h1>{for_html(text.title, 400)}</h1><p class="px-muted">{for_html(text.detail, 1200)}</p>'
        f"{_zone(finding)}</div>"
    )


def said_of(finding: Finding) -> str:
    """Verdict and side: `Fault in the candidate`."""
    said = _SAID.get((finding.verdict, finding.side), head(finding.verdict))
    return finding_word(finding.verdict, said)


def nothing(diagnosis: Diagnosis) -> None:
    """What stands in place of a finding when there is none: how much was checked."""
    said = _NONE.get(diagnosis.verdict, _("No finding."))
    st.html(
        f'<div class="px-answer"><p class="px-line-up">{finding_word(diagnosis.verdict)}</p>'
        f"<h1>{for_html(said)}</h1>"
        f'<p class="px-muted">{for_html(checked(diagnosis))}</p></div>'
    )


def checked(diagnosis: Diagnosis) -> str:
    """How many outputs were recomputed, in a sentence."""
    done, left = len(diagnosis.replays), len(diagnosis.not_replayed)
    said = _(
        "{done} outputs were recomputed in float64 from their own dumped inputs.", done=count(done)
    )
    if not left:
        return said
    rest = _("{left} could not be, and were judged by their statistics.", left=count(left))
    return told(sentences((said, rest)))


def next_steps(finding: Finding) -> None:
    """What to check on the device, numbered."""
    steps = "".join(f"<li>{for_html(step, 600)}</li>" for step in describe(finding).next_steps)
    if steps:
        st.html(f'{heading(_("Check next"))}<ol class="px-steps">{steps}</ol>')


def _place(finding: Finding) -> str:
    where = finding.operator or _("the model itself")
    link = anchor(url.link("tensor", t=finding.tensor), shorten(where, 60), mono=True, title=where)
    parts: list[str] = [word(finding.slot)]
    parts += [_("step {step}", step=finding.step)] if finding.step is not None else []
    parts += [_("rank {rank}", rank=finding.rank)] if finding.rank is not None else []
    return (link if finding.tensor else name(where)) + muted(listing(parts))


def _zone(finding: Finding) -> str:
    if not finding.zone:
        return ""
    names = listing((*finding.zone[:8], *(["…"] if len(finding.zone) > 8 else [])))
    said = _(
        "Not every operator was captured. The fault lies among {zone}: {names}.",
        zone=len(finding.zone),
        names=names,
    )
    return f'<p class="px-says">{for_html(said, 1500)}</p>'
