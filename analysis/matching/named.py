"""Pairs whose names agree: as they stand, without wrappers and roots, or by the table of names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.matching.naming import (
    base_operator,
    common_argument,
    common_operator,
    common_path,
    counter_of,
    normalised,
)
from analysis.matching.sides import Bundle, Found
from core.comparison import Match
from core.tensors import TensorInfo
from language import say

_UNIQUE, _BY_RULE, _REPEATED = 0.95, 0.9, 0.8
_DEEPEST_ROOT = 3

Key = tuple[object, ...]
Segments = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spelling:
    """How one side's names are brought to the form both sides share.

    `root` are leading segments that the other side lacks; `by_rule`: the table of names is applied.
    """

    root: Segments = ()
    by_rule: bool = False

    def path(self, tensor: TensorInfo) -> Segments:
        """Module path, or the whole name of a tensor whose role is unknown."""
        where = tensor.module if tensor.pass_ != "unknown" else tensor.name
        path = common_path(where) if self.by_rule else normalised(where)
        return path[len(self.root) :] if path[: len(self.root)] == self.root else path

    def key(self, bundle: Bundle) -> Key:
        """Equal on both sides for what belongs together."""
        tensor = bundle.lead
        op, slot = (tensor.op, tensor.slot_label)
        if self.by_rule:
            op = f"{common_operator(op)}_{counter_of(op)}"
            slot = f"{tensor.pass_}_{tensor.slot}.{common_argument(tensor.argument)}"
        return (bundle.place, self.path(tensor), op, slot, tensor.call)


def spellings(
    left: Iterable[Bundle], right: Iterable[Bundle], *, by_rule: bool
) -> tuple[Spelling, Spelling]:
    """The spelling of each side, roots found from all names of both."""
    plain = Spelling(by_rule=by_rule)
    ours, theirs = ({plain.path(b.lead) for b in side} - {()} for side in (left, right))
    roots = _roots(ours, theirs)
    return Spelling(roots[0], by_rule), Spelling(roots[1], by_rule)


def exact(left: Sequence[Bundle], right: Sequence[Bundle]) -> Iterator[Found]:
    """Equal ids; with another step or rank the match says so and is normalised."""
    known = {(b.place, b.local): b for b in right}
    for a in left:
        b = known.get((a.place, a.local))
        if b is None:
            continue
        if a.lead.step == b.lead.step and (a.place[1] is None or a.lead.rank == b.lead.rank):
            yield Found(a, b, Match("exact"))
        else:
            yield Found(a, b, Match("normalised", _UNIQUE, _what_differs(a.lead, b.lead)))


def by_name(
    left: Sequence[Bundle], right: Sequence[Bundle], spelt: tuple[Spelling, Spelling]
) -> Iterator[Found]:
    """Equal keys; names that repeat are paired by occurrence, with less confidence."""
    lefts, rights = _grouped(left, spelt[0]), _grouped(right, spelt[1])
    sure = _BY_RULE if spelt[0].by_rule else _UNIQUE
    for key, ours in lefts.items():
        theirs = rights.get(key, [])
        unique = len(ours) == len(theirs) == 1
        for n, (a, b) in enumerate(zip(ours, theirs, strict=False)):
            note: str = say("name repeats: occurrence {n} on both sides", n=n)
            if unique:
                note = _what_differs(a.lead, b.lead, by_rule=spelt[0].by_rule)
            yield Found(a, b, Match("normalised", sure if unique else _REPEATED, note))


def shifting(
    left: Iterable[Bundle], right: Iterable[Bundle], spelt: tuple[Spelling, Spelling]
) -> set[str]:
    """Leads of functional calls whose counters cannot be trusted.

    Where one side calls a function more often in a module, its `add_1` need not be the other's;
    these calls are paired by sequence.
    """
    ours, theirs = _calls(left, spelt[0]), _calls(right, spelt[1])
    return {
        lead
        for key in ours.keys() & theirs.keys()
        if len(ours[key]) != len(theirs[key])
        for side in (ours, theirs)
        for leads in side[key].values()
        for lead in leads
    }


def _calls(bundles: Iterable[Bundle], spelling: Spelling) -> Mapping[Key, Mapping[str, list[str]]]:
    calls: dict[Key, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for bundle in bundles:
        tensor = bundle.lead
        if tensor.op:
            key = (bundle.place, spelling.path(tensor), base_operator(tensor.op), tensor.call)
            calls[key][tensor.op].append(bundle.key)
    return calls


def _grouped(bundles: Iterable[Bundle], spelling: Spelling) -> dict[Key, list[Bundle]]:
    groups: dict[Key, list[Bundle]] = defaultdict(list)
    for bundle in bundles:
        groups[spelling.key(bundle)].append(bundle)
    return groups


def _what_differs(a: TensorInfo, b: TensorInfo, *, by_rule: bool = False) -> str:
    if a.name == b.name:
        return say(
            "step or rank {step}/{rank} against {step2}/{rank2}",
            step=a.step,
            rank=a.rank,
            step2=b.step,
            rank2=b.rank,
        )
    if by_rule:
        return say("names agree by the table of names")
    if a.module_class != b.module_class and a.module == b.module:
        return say(
            "class {module_class} against {module_class2}",
            module_class=a.module_class or say("not recorded"),
            module_class2=b.module_class or say("not recorded"),
        )
    return say("name spelt differently")


def _roots(ours: set[Segments], theirs: set[Segments]) -> tuple[Segments, Segments]:
    """Leading segments that all names of one side share and the other lacks, like `model.`."""
    best = len(ours & theirs)
    roots: tuple[Segments, Segments] = ((), ())
    for side, (mine, other) in enumerate(((ours, theirs), (theirs, ours))):
        for root in _shared_roots(mine):
            hits = len({p[len(root) :] for p in mine} & other)
            if hits > best:
                best, roots = hits, ((root, ()) if side == 0 else ((), root))
    return roots


def _shared_roots(paths: set[Segments]) -> Iterable[Segments]:
    """Leading segments that most names share; a model's head may stand beside its trunk."""
    counts: dict[Segments, int] = defaultdict(int)
    for path in paths:
        for depth in range(1, min(_DEEPEST_ROOT, len(path)) + 1):
            counts[path[:depth]] += 1
    return [root for root, count in counts.items() if 2 * count > len(paths) or len(paths) == 1]
