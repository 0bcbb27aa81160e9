"""Findings in words: title, explanation and next steps, from the catalogue and the facts found."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping
from dataclasses import dataclass

from analysis.findings.catalogue import CATALOGUE
from core.findings import Fact, Finding, Hypothesis

_UNKNOWN_TITLE = "The operator is wrong; the cause is not known"
_UNKNOWN_MEANS = (
    "None of the known mechanisms explains the output from the operator's own inputs down to "
    "rounding."
)
_UNKNOWN_CHECK = ("Rerun the operator alone on the dumped inputs and compare with float64.",)
_SETUP_CHECK = "Compare again once the runs start alike: nothing after this point can be judged."
_FALLS = "The unexplained error falls from {before} to {after} times what rounding allows."
_SIZE = "The error is {before} times what rounding allows."
_MISSING = "—"


@dataclass(frozen=True, slots=True)
class Text:
    """A finding in words: one line, a paragraph, and what to do on the device."""

    title: str
    detail: str
    next_steps: tuple[str, ...]


def describe(finding: Finding) -> Text:
    """The words for a finding, from its best hypothesis; without one it says so."""
    if not finding.hypotheses:
        return Text(_UNKNOWN_TITLE, _UNKNOWN_MEANS, _UNKNOWN_CHECK)
    best = finding.hypotheses[0]
    entry = CATALOGUE[best.mechanism]
    sentences = [entry.means, *_sentences(entry.says, best.facts), *_strength(best)]
    steps = entry.check + ((_SETUP_CHECK,) if finding.verdict == "setup" else ())
    return Text(_filled(entry.title, best.facts), " ".join(sentences), steps)


def title_of(hypothesis: Hypothesis) -> str:
    """One line for a hypothesis, also for runners-up."""
    return _filled(CATALOGUE[hypothesis.mechanism].title, hypothesis.facts)


def _sentences(templates: tuple[str, ...], facts: Mapping[str, Fact]) -> list[str]:
    return [one.format(**facts) for one in templates if _names(one) <= facts.keys()]


def _strength(hypothesis: Hypothesis) -> list[str]:
    before, after = hypothesis.before, hypothesis.after
    if not math.isfinite(before):
        return []
    if not math.isfinite(after):
        return [_SIZE.format(before=f"{before:.3g}")]
    return [_FALLS.format(before=f"{before:.3g}", after=f"{after:.2g}")]


def _filled(template: str, facts: Mapping[str, Fact]) -> str:
    if _names(template) <= facts.keys():
        return template.format(**facts)
    plain = {name: facts.get(name, _MISSING) for name in _names(template)}
    return string.Template(_braceless(template)).safe_substitute(plain)


def _names(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def _braceless(template: str) -> str:
    parts = string.Formatter().parse(template)
    return "".join(text + (f"${{{name}}}" if name else "") for text, name, _, _ in parts)
