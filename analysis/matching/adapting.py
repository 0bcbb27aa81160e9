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

_UNCERTAIN = 0.7  # confidence is multiplied by it where no way fits the values better

Signature = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _Ways:
    """A pair and the ways to compare it, the most likely one first."""

    found: Found
    proposals: tuple[Proposal, ...]


def adapted(sides: Sides, found: Sequence[Found], settings: Settings) -> list[Found]:
    """The pairs with their adaptations.

    A pair whose values prefer no way takes the one that most pairs of its kind (same name in other
    layers) took. A pair of unlike shapes for which there is no way stays as it is and will say so.
    """
    ways = [_ways(sides, each, settings) for each in found]
    usual: dict[str, Counter[Signature]] = {}
    for each in ways:
        if len(each.proposals) > 1 and each.proposals[0].certain:
            votes = usual.setdefault(_kind(each.found), Counter())
            votes[each.proposals[0].signature] += 1
    return [_chosen(each, usual) for each in ways]


def _ways(sides: Sides, found: Found, settings: Settings) -> _Ways:
    a, b = found.reference, found.candidate
    if found.match.adaptation is not None:
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
    chosen, sure = options[0], found.match.confidence
    if not chosen.certain:
        votes = usual.get(_kind(found), Counter())
        chosen = max(options, key=lambda p: votes[p.signature])
        sure = sure if votes[chosen.signature] else sure * _UNCERTAIN
    adaptation = chosen.adaptation(found.reference.members, found.candidate.members)
    return replace(found, match=replace(found.match, adaptation=adaptation, confidence=sure))


def _kind(found: Found) -> str:
    """The name of a tensor with its numbers left out."""
    return re.sub(r"\d+", "*", found.reference.local)


def members(found: Found) -> Iterator[tuple[str, str]]:
    """Side and id of every tensor in a pair: one a side where nothing is adapted."""
    whole = found.match.adaptation is not None
    for side, bundle in (("reference", found.reference), ("candidate", found.candidate)):
        yield from ((side, m.id) for m in (bundle.members if whole else bundle.members[:1]))
