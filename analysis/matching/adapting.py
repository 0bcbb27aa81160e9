"""What makes each pair comparable: the user's steps or dims, else steps proposed and checked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from analysis.adapt.dims import dims_of, steps_from_dims
from analysis.adapt.proposals import Proposal, is_plain, proposals
from analysis.matching.sides import Found, Sides
from core.comparison import Settings
from language import say

_UNCERTAIN = 0.7  # confidence is multiplied by it where no way fits the values better

_MANY = 3  # times as many pairs of a kind that took another way overrule one

Signature = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _Ways:
    """A pair and the ways to compare it, the most likely one first."""

    found: Found
    proposals: tuple[Proposal, ...]


def adapted(sides: Sides, found: Sequence[Found], settings: Settings) -> list[Found]:
    """The pairs with their adaptations.

    A pair whose values prefer no way takes the one that most pairs of its kind (same name in other
    layers) took; so does one that stands alone with its way: partial sums in one layer where all
    others hold replicas are a reduction that was left out, not another way to store a tensor. A
    pair of unlike shapes for which there is no way stays as it is and will say so.
    """
    ways = [_ways(sides, each, settings) for each in found]
    usual: dict[str, Counter[Signature]] = {}
    for each in ways:
        if each.proposals and each.proposals[0].certain:
            votes = usual.setdefault(_kind(each.found), Counter())
            votes[each.proposals[0].signature] += 1
    return [_chosen(each, usual) for each in ways]


def _ways(sides: Sides, found: Found, settings: Settings) -> _Ways:
    a, b = found.reference, found.candidate
    has_values = all(tensor.has_values for tensor in (*a.members, *b.members))
    if found.match.adaptation is not None or not has_values:
        return _Ways(found, ())
    rules = dims_of(settings.dims, a.members, b.members)
    runs = sides.reference, sides.candidate
    if rules is not None:
        return _Ways(found, (steps_from_dims(rules, *runs, a.members, b.members),))
    if is_plain(a.members, b.members):
        return _Ways(found, ())
    return _Ways(found, proposals(*runs, a.members, b.members))


def _chosen(ways: _Ways, usual: Mapping[str, Counter[Signature]]) -> Found:
    found, options = ways.found, ways.proposals
    if not options:
        return found
    chosen, sure, note = options[0], found.match.confidence, found.match.note
    votes = usual.get(_kind(found), Counter())
    common = max(options, key=lambda p: votes[p.signature])
    if not chosen.certain:
        chosen = common
        sure = sure if votes[chosen.signature] else sure * _UNCERTAIN
    elif votes[common.signature] >= _MANY * votes[chosen.signature]:
        note = say(
            "{note}; its values fit another way than in other layers", note=note
        ).removeprefix("; ")
        chosen = common
    adaptation = chosen.adaptation(found.reference.members, found.candidate.members)
    match = replace(found.match, adaptation=adaptation, confidence=sure, note=note)
    return replace(found, match=match)


def _kind(found: Found) -> str:
    """The name of a tensor with its numbers left out."""
    return re.sub(r"\d+", "*", found.reference.local)


def members(found: Found) -> Iterator[tuple[str, str]]:
    """Side and id of every tensor in a pair: one a side where nothing is adapted."""
    whole = found.match.adaptation is not None
    for side, bundle in (("reference", found.reference), ("candidate", found.candidate)):
        yield from ((side, m.id) for m in (bundle.members if whole else bundle.members[:1]))
