"""Pairs that the user's mapping names, and pairs that it forbids."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from analysis.adapt.text import steps_from_text
from analysis.matching.sides import Bundle, Found, Sides
from core.comparison import MappingRow, Match
from language import say

_METHOD = Match("mapping", 1.0, say("given by the mapping"))

Bundles = Sequence[Bundle]


def by_mapping(
    sides: Sides, left: Bundles, right: Bundles, rows: Sequence[MappingRow]
) -> Iterator[Found]:
    """What the rows pair: single tensors first, then what lies in the modules they name.

    A name is a tensor id, an id without step and rank, or a module path; the latter two hold in
    every step and rank. CompareError when the steps of a row do not fit its tensors.
    """
    wanted = [row for row in rows if row.accept == "yes" and row.reference and row.candidates]
    if not wanted:
        return
    taken: set[str] = set()
    ours, theirs = _Index(left), _Index(right)
    for row in wanted:
        for a, b in _tensors(row, ours, theirs):
            if a.key not in taken:
                taken.add(a.key)
                yield _found(sides, row, a, b)
    modules = [row for row in wanted if not ours.holds(row.reference)]
    for row in modules:
        for a, b in _inside(row, [x for x in left if x.key not in taken], right):
            taken.add(a.key)
            yield Found(a, b, _METHOD)


def forbidden(rows: Sequence[MappingRow]) -> Callable[[Found], bool]:
    """Whether the rows say that two bundles must not be paired."""
    never = [row for row in rows if row.accept == "no"]

    def says_no(found: Found) -> bool:
        return any(
            (not row.reference or _names(row.reference, found.reference))
            and (not row.candidates or any(_names(c, found.candidate) for c in row.candidates))
            for row in never
        )

    return says_no if never else lambda _: False


class _Index:
    """The bundles of one side by their names."""

    def __init__(self, bundles: Bundles) -> None:
        self.bundles = bundles
        self._ids = {m.id: b for b in bundles for m in b.members}
        self._locals: dict[str, list[Bundle]] = defaultdict(list)
        for bundle in bundles:
            self._locals[bundle.local].append(bundle)

    def holds(self, name: str) -> bool:
        """Whether a name without stars is that of a tensor."""
        return name in self._ids or name in self._locals

    def fitting(self, pattern: str) -> Iterator[tuple[Bundle, tuple[str, ...]]]:
        """Bundles a pattern names, and what its stars stand for."""
        if "*" not in pattern:
            own = self._ids.get(pattern)
            yield from ((b, ()) for b in ([own] if own else self._locals.get(pattern, [])))
            return
        for bundle in self.bundles:
            stars = _fits(pattern, bundle)
            if stars is not None:
                yield bundle, stars

    def named(self, name: str, partner: Bundle) -> Bundle | None:
        """The bundle of this id, or of this local id at the place of its partner."""
        near = (b for b in self._locals.get(name, []) if b.place == partner.place)
        return self._ids.get(name) or next(near, None)


def _tensors(row: MappingRow, ours: _Index, theirs: _Index) -> Iterator[tuple[Bundle, Bundle]]:
    for a, stars in ours.fitting(row.reference):
        found = [theirs.named(_filled(name, stars), a) for name in row.candidates]
        there = list({b.key: b for b in found if b is not None}.values())
        if there and None not in found:
            members = tuple(m for b in there for m in b.members)
            yield a, Bundle(members, there[0].place)


def _inside(row: MappingRow, left: Bundles, right: Bundles) -> Iterator[tuple[Bundle, Bundle]]:
    """Tensors of one module against those of another, by what follows the module's path."""
    if len(row.candidates) > 1:
        return
    theirs: dict[object, list[Bundle]] = defaultdict(list)
    for b in right:
        theirs[_rest_key(b, b.lead.module)].append(b)
    for a in left:
        for end in range(len(a.lead.module.split(".")), 0, -1):
            segments = a.lead.module.split(".")
            head, rest = ".".join(segments[:end]), segments[end:]
            stars = _pattern(row.reference).fullmatch(head)
            if stars is None:
                continue
            module = ".".join([_filled(row.candidates[0], stars.groups()), *rest])
            partners = theirs.get(_rest_key(a, module), [])
            if len(partners) == 1:
                yield a, partners[0]
            break


def _found(sides: Sides, row: MappingRow, a: Bundle, b: Bundle) -> Found:
    if not row.adaptation:
        return Found(a, b, _METHOD)
    runs = sides.reference, sides.candidate
    proposal = steps_from_text(row.adaptation, *runs, a.members, b.members)
    adaptation = proposal.adaptation(a.members, b.members)
    return Found(a, b, replace(_METHOD, adaptation=adaptation))


def _fits(pattern: str, bundle: Bundle) -> tuple[str, ...] | None:
    """What the stars of a pattern stand for in a bundle's id, None when it does not fit."""
    for name in (*(m.id for m in bundle.members), bundle.local):
        match = _pattern(pattern).fullmatch(name)
        if match is not None:
            return tuple(match.groups())
    return None


def _names(pattern: str, bundle: Bundle) -> bool:
    segments = bundle.lead.module.split(".")
    around = (".".join(segments[:end]) for end in range(1, len(segments) + 1))
    inside = any(_pattern(pattern).fullmatch(module) for module in around)
    return inside or _fits(pattern, bundle) is not None


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    """`*` stands for one segment, or a part of one; several in a row are one."""
    return re.compile("([^./]+)".join(map(re.escape, re.split(r"\*+", pattern))))


def _filled(name: str, stars: tuple[str, ...]) -> str:
    kept = iter(stars)
    return re.sub(r"\*", lambda _: next(kept, "*"), name)


def _rest_key(bundle: Bundle, module: str) -> object:
    tensor = bundle.lead
    return (bundle.place, module, tensor.op, tensor.slot_label, tensor.call)
