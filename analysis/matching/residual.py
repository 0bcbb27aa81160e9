"""A hidden state and its residual on one side, their sum on the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from analysis.adapt.checks import SAME
from analysis.adapt.proposals import checked, plan_of
from analysis.adapt.steps import Plan
from analysis.matching.sides import Bundle, Found, Sides
from core.adaptation import RunSide
from language import say
from metrics import formats

_CLEARLY = 0.25  # of the error without the residual that the sum must stay under

Key = tuple[object, ...]


def with_residuals(
    sides: Sides, found: Sequence[Found], left: Sequence[Bundle], right: Sequence[Bundle]
) -> Iterator[Found]:
    """The pairs that become one tensor when another one, left without a partner, is added.

    Only tensors of the same call, pass, slot and shape are tried, and only the values decide.
    """
    near_l, near_r = _by_call(left), _by_call(right)
    for each in found if near_l or near_r else ():
        if each.match.adaptation is not None or each.reference.lead.slot == "parameter":
            continue
        tries = [
            *(("candidate", b) for b in near_r.get(_call(each.candidate), [])),
            *(("reference", a) for a in near_l.get(_call(each.reference), [])),
        ]
        for side, extra in tries:
            summed = _summed(sides, each, side, extra)  # type: ignore[arg-type]
            if summed is not None:
                yield summed
                break


def _summed(sides: Sides, found: Found, side: RunSide, extra: Bundle) -> Found | None:
    a, b = found.reference, found.candidate
    if len(a.members) + len(b.members) + len(extra.members) > 3:
        return None
    plain = _plans(sides, a, b)
    if side == "candidate":
        b = Bundle((*b.members, *extra.members), b.place)
    else:
        a = Bundle((*a.members, *extra.members), a.place)
    ours, theirs = (p if len(p.arrays) == 1 else p.then("sum", 2) for p in _plans(sides, a, b))
    summed = checked((ours, theirs))
    if not summed.error <= SAME or not summed.error < _CLEARLY * checked(plain).error:
        return None
    note = say("{note}; residual added", note=found.match.note).removeprefix("; ")
    adaptation = summed.adaptation(a.members, b.members)
    return Found(a, b, replace(found.match, adaptation=adaptation, note=note))


def _plans(sides: Sides, a: Bundle, b: Bundle) -> tuple[Plan, Plan]:
    return (
        plan_of("reference", sides.reference, a.members),
        plan_of("candidate", sides.candidate, b.members),
    )


def _by_call(bundles: Sequence[Bundle]) -> dict[Key, list[Bundle]]:
    groups: dict[Key, list[Bundle]] = defaultdict(list)
    for bundle in bundles:
        if formats.kind(bundle.lead.dtype) == "float":
            groups[_call(bundle)].append(bundle)
    return groups


def _call(bundle: Bundle) -> Key:
    t = bundle.lead
    return (bundle.place, t.module, t.op, t.call, t.pass_, t.slot, t.shape)
