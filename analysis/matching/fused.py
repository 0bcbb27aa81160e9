"""One module against several: fused q|k|v and gate|up, in one piece, in groups or in shards."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from analysis.adapt.checks import RELATED
from analysis.adapt.proposals import Proposal, checked, plan_of
from analysis.adapt.shapes import into
from analysis.adapt.steps import Plan
from analysis.matching.named import Spelling
from analysis.matching.naming import common_argument, common_operator, counter_of, rules
from analysis.matching.sides import Bundle, Found, Sides
from core.comparison import Match
from core.tensors import TensorInfo
from language import say

_PROVED, _BY_SHAPE, _GUESS = 0.9, 0.6, 0.4
_SMALLEST_HEAD = 8  # channels; groups of fewer are not tried

Key = tuple[object, ...]
Named = dict[str, dict[Key, Bundle]]  # by last segment of the path, then by everything else
Members = tuple[TensorInfo, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """How the parts lie in the whole: along an axis, once or in `blocks` repeated groups.

    `part_axis` is the same axis as the parts have it: another one when they are `turned`, or have
    another number of axes. `lengths` are those of the parts.
    """

    axis: int
    part_axis: int
    turned: bool
    blocks: int
    lengths: tuple[int, ...]

    def ranges(self, part: int) -> list[int]:
        """Start and stop of a part in every block."""
        block = sum(self.lengths) // self.blocks
        start = sum(self.lengths[:part]) // self.blocks
        size = self.lengths[part] // self.blocks
        return [edge for b in range(self.blocks) for edge in _range(b * block + start, size)]


def by_fusion(
    sides: Sides,
    left: Sequence[Bundle],
    right: Sequence[Bundle],
    spelt: tuple[Spelling, Spelling],
) -> Iterator[Found]:
    """A whole on one side and all its parts on the other, by the table of names and by shape."""
    ours, theirs = _keyed(left, spelt[0]), _keyed(right, spelt[1])
    for fused in rules().fused:
        for whole, parts in _complete(theirs, ours, fused.whole, fused.parts):
            yield from _of_candidate(sides, whole, parts, say("part of {whole}", whole=fused.whole))
        for whole, parts in _complete(ours, theirs, fused.whole, fused.parts):
            yield from _of_reference(sides, whole, parts, " | ".join(fused.parts))


def cuts(whole: Bundle, parts: Sequence[Bundle]) -> Iterator[Cut]:
    """The ways in which the parts may lie in the whole, the plainest first; all shards joined."""
    shape, part_shape = whole.lead.shape, parts[0].lead.shape
    for axis, part_axis in _axes(whole.lead, part_shape):
        lengths = tuple(_length(part, part_axis) for part in parts)
        others = _without(shape, axis), *(_without(p.lead.shape, part_axis) for p in parts)
        if len(shape) == len(part_shape):
            fit = len(set(others)) == 1
        else:
            fit = len({math.prod(other) for other in others}) == 1
        if fit and sum(lengths) == _length(whole, axis):
            shards = len(whole.members)
            turned = axis != part_axis and len(shape) == len(part_shape)
            for groups in _groups(lengths, shards):
                yield Cut(axis, part_axis, turned, shards * groups, lengths)


def _axes(whole: TensorInfo, part_shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """Axes of the whole and of its parts along which it may be cut."""
    shape = whole.shape
    if len(shape) != len(part_shape):  # tokens in one axis against batch and tokens in two
        return [(len(shape) - 1, len(part_shape) - 1)] if shape and part_shape else []
    axes = [(n, n) for n in range(len(shape))]
    turned = len(shape) == 2 and whole.slot == "parameter"
    return [*axes, (0, 1), (1, 0)] if turned else axes


def _groups(lengths: Sequence[int], shards: int) -> Iterator[int]:
    """Into how many groups each shard may be cut: one, or one a head for q, k and v."""
    if all(length % shards == 0 for length in lengths):
        yield 1
    most = min(lengths) // (shards * _SMALLEST_HEAD) if len(lengths) == 3 else 0
    for groups in range(2, most + 1):
        if all(length % (shards * groups) == 0 for length in lengths):
            yield groups


def _of_candidate(
    sides: Sides, whole: Bundle, parts: Sequence[Bundle], note: str
) -> Iterator[Found]:
    """Each part of the reference against its stretch of the candidate's whole."""
    tensor = whole.lead
    if tensor.pass_ == "backward" and tensor.slot == "output":
        yield Found(
            _together(parts),
            whole,
            Match("normalised", _PROVED, say("sum of parts: {note}", note=note)),
        )
    elif tensor.pass_ == "forward" and tensor.slot == "input":
        for part in parts:
            yield Found(
                part,
                whole,
                Match("normalised", _PROVED, say("input of the whole: {note}", note=note)),
            )
    else:
        ways = list(cuts(whole, parts))
        for n, part in enumerate(parts):
            options = [_stretch(sides, part, whole, way, n) for way in ways]
            yield from _best(options, part, whole, note)


def _of_reference(
    sides: Sides, whole: Bundle, parts: Sequence[Bundle], note: str
) -> Iterator[Found]:
    """The reference's whole against the candidate's parts, joined."""
    tensor, together = whole.lead, _together(parts)
    ends = (("backward", "output"), ("forward", "input"))
    if (tensor.pass_, tensor.slot) in ends:
        yield Found(whole, together, Match("normalised", _PROVED, note))
    else:
        options = [_rejoined(sides, whole, parts, way) for way in cuts(whole, parts)]
        yield from _best(options, whole, together, note)


def _stretch(sides: Sides, part: Bundle, whole: Bundle, way: Cut, n: int) -> Proposal:
    """A part of the reference and what the candidate's whole holds of it."""
    a = _joined(plan_of("reference", sides.reference, part.members), way.part_axis, part)
    b = _joined(plan_of("candidate", sides.candidate, whole.members), way.axis, whole)
    return _fitted(a, b.then("split", way.axis, *way.ranges(n)), way)


def _rejoined(sides: Sides, whole: Bundle, parts: Sequence[Bundle], way: Cut) -> Proposal:
    """The reference's whole with its groups in order, and the candidate's parts in one piece."""
    a = _joined(plan_of("reference", sides.reference, whole.members), way.axis, whole)
    if way.blocks > 1:
        ordered = [edge for n in range(len(parts)) for edge in way.ranges(n)]
        a = a.then("split", way.axis, *ordered)
    b = plan_of("candidate", sides.candidate, _together(parts).members)
    b = _joined(b, way.part_axis, parts[0]).then("concat", way.part_axis, len(parts))
    return _fitted(a, b, way)


def _fitted(a: Plan, b: Plan, way: Cut) -> Proposal:
    """The candidate's side in the shape of the reference's, checked."""
    if way.turned:
        return checked((a, b.then("transpose", 1, 0)))
    return checked((a, next(into(b, a.arrays[0].shape, transposable=False), b)))


def _joined(plan: Plan, axis: int, bundle: Bundle) -> Plan:
    shards = len(bundle.members)
    return plan if shards == 1 else plan.then("concat", axis, shards)


def _best(options: Sequence[Proposal], a: Bundle, b: Bundle, note: str) -> Iterator[Found]:
    if not options:
        return
    best = min(options, key=lambda p: math.inf if math.isnan(p.error) else p.error)
    related = best.error <= RELATED
    chosen = best if related else options[0]
    sure = _PROVED if related else _BY_SHAPE if len(options) == 1 else _GUESS
    adaptation = chosen.adaptation(a.members, b.members)
    yield Found(a, b, replace(Match("normalised", sure, note), adaptation=adaptation))


def _complete(
    wholes: Named, pieces: Named, whole: str, parts: Sequence[str]
) -> Iterator[tuple[Bundle, list[Bundle]]]:
    """The wholes all whose parts are there, with equally many shards of each."""
    for key, bundle in wholes.get(whole, {}).items():
        found = [pieces.get(part, {}).get(key) for part in parts]
        there = [b for b in found if b is not None]
        if len(there) == len(parts) and len({len(b.members) for b in there}) == 1:
            yield bundle, there


def _keyed(bundles: Sequence[Bundle], spelling: Spelling) -> Named:
    named: Named = defaultdict(dict)
    for bundle in bundles:
        tensor = bundle.lead
        *parent, last = spelling.path(tensor) or ("",)
        op = (common_operator(tensor.op), counter_of(tensor.op))
        slot = (tensor.pass_, tensor.slot, common_argument(tensor.argument))
        named[last].setdefault((bundle.place, tuple(parent), op, slot, tensor.call), bundle)
    return named


def _together(parts: Sequence[Bundle]) -> Bundle:
    return Bundle(tuple(m for part in parts for m in part.members), parts[0].place)


def _length(bundle: Bundle, axis: int) -> int:
    shapes = [m.shape for m in bundle.members]
    return sum(s[axis] for s in shapes) if all(axis < len(s) for s in shapes) else -1


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def _range(start: int, size: int) -> tuple[int, int]:
    return start, start + size
