"""Findings in words: title, explanation and next steps, from the catalogue and the facts found."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping
from dataclasses import dataclass

from analysis.findings.catalogue import CATALOGUE
from core.findings import Fact, Finding, Hypothesis
from language import say, sentences

_UNKNOWN_TITLE = say("The operator is wrong; the cause is not known")
_UNKNOWN_MEANS = say(
    "None of the known mechanisms explains the output from the operator's own inputs "
    "down to rounding."
)
_UNKNOWN_CHECK = (say("Rerun the operator alone on the dumped inputs and compare with float64."),)
_GROWN_TITLE = say("The error grows beyond rounding here; the cause is not known")
_GROWN_MEANS = say(
    "This was not recomputed, since what it was made of was not captured. Its error is {times} "
    "times what honest operators make of the errors seen before it."
)
_GROWN_CHECK = say(
    "Record inputs, parameters and outputs of {places}, and of all that lies between, in both "
    "runs, and compare again."
)
_PARTED_TITLE = say("Ranks that should hold the same values do not")
_PARTED_MEANS = say(
    "Ranks {rank} and {other_rank} of the {side} differ here by {times} times what rounding "
    "allows, while ranks that share such a tensor must agree to the last bit. Tensors like it: "
    "{places}."
)
_PARTED_CHECK = (
    say("Check the collective that makes the ranks equal (all-reduce, broadcast) and its group."),
    say("Check that all ranks were given the same weights, inputs and random seed."),
)
_SETUP_CHECK = say(
    "Compare again once the runs start alike: nothing after this point can be judged."
)
_FALLS = say("The unexplained error falls from {before} to {after} times what rounding allows.")
_SIZE = say("The error is {before} times what rounding allows.")


class _Missing(str):
    """A dash for a fact that nobody knows, however a template would write the number."""

    __slots__ = ()

    def __new__(cls) -> _Missing:
        return super().__new__(cls, "—")

    def __format__(self, _spec: str) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class Text:
    """A finding in words: one line, a paragraph, and what to do on the device."""

    title: str
    detail: str
    next_steps: tuple[str, ...]


def describe(finding: Finding) -> Text:
    """The words for a finding, from its best hypothesis; without one it says so."""
    if finding.facts.get("sign") == "replicas":
        times = f"{float(finding.facts['times']):.3g}"
        facts = {**finding.facts, "side": say(finding.side), "times": times}
        return Text(_PARTED_TITLE, _filled(_PARTED_MEANS, facts), _PARTED_CHECK)
    if finding.facts.get("sign") == "growth" and not finding.hypotheses:
        return _grown(finding)
    if not finding.hypotheses:
        return Text(_UNKNOWN_TITLE, _UNKNOWN_MEANS, _UNKNOWN_CHECK)
    best = finding.hypotheses[0]
    entry = CATALOGUE[best.mechanism]
    detail = sentences([say(entry.means), *_sentences(entry.says, best.facts), *_strength(best)])
    steps = (*map(say, entry.check), *((_SETUP_CHECK,) if finding.verdict == "setup" else ()))
    steps += (_to_record(finding),) if finding.zone else ()
    return Text(_filled(entry.title, best.facts), detail, steps)


def _grown(finding: Finding) -> Text:
    means = say(_GROWN_MEANS, times=f"{float(finding.facts['times']):.3g}")
    return Text(_GROWN_TITLE, means, (_to_record(finding),))


def _to_record(finding: Finding) -> str:
    """What would tell more: everything of the operators among which the fault lies."""
    ends = dict.fromkeys((finding.zone or (finding.operator,))[:: max(1, len(finding.zone) - 1)])
    return say(_GROWN_CHECK, places=" … ".join(ends))


def title_of(hypothesis: Hypothesis) -> str:
    """One line for a hypothesis, also for runners-up."""
    return _filled(CATALOGUE[hypothesis.mechanism].title, hypothesis.facts)


def _sentences(templates: tuple[str, ...], facts: Mapping[str, Fact]) -> list[str]:
    return [say(one, **_used(one, facts)) for one in templates if _names(one) <= facts.keys()]


def _strength(hypothesis: Hypothesis) -> list[str]:
    before, after = hypothesis.before, hypothesis.after
    if not math.isfinite(before):
        return []
    if not math.isfinite(after):
        return [say(_SIZE, before=f"{before:.3g}")]
    return [say(_FALLS, before=f"{before:.3g}", after=f"{after:.2g}")]


def _filled(template: str, facts: Mapping[str, Fact]) -> str:
    if _names(template) <= facts.keys():
        return say(template, **_used(template, facts))
    return say(template, **{name: facts.get(name, _Missing()) for name in _names(template)})


def _used(template: str, facts: Mapping[str, Fact]) -> dict[str, Fact]:
    return {name: facts[name] for name in _names(template)}


def _names(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}
