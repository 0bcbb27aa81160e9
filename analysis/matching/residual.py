"""A hidden state and its residual on one side, their sum on the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from analysis.adapt.checks import SAME, relative_error
from analysis.adapt.proposals import Proposal, plan_of
from analysis.adapt.steps import side_array
from analysis.matching.sides import Bundle, Found, Sides
from core.adaptation import Adaptation, RunSide
from core.tensors import TensorInfo
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
    for each in found:
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
    if side == "candidate":
        b = Bundle((*b.members, *extra.members), b.place)
    else:
        a = Bundle((*a.members, *extra.members), a.place)
    run, members = (
        (sides.candidate, b.members) if side == "candidate" else (sides.reference, a.members)
    )
    if len({m.shape for m in members}) > 1 or len(members) != 2:
        return None
    proposal = Proposal(plan_of(side, run, members).then("sum", 2).steps)
    adaptation = proposal.adaptation(a.members, b.members)
    plain, summed = (_error(sides, a.lead, b.lead, way) for way in (Adaptation(()), adaptation))
    if not summed <= SAME or not summed < _CLEARLY * plain:
        return None
    adaptation = replace(adaptation, error=summed) if adaptation else None
    note = f"{found.match.note}; residual added".removeprefix("; ")
    return Found(a, b, replace(found.match, adaptation=adaptation, note=note))


def _error(sides: Sides, a: TensorInfo, b: TensorInfo, way: Adaptation | None) -> float:
    steps = way or Adaptation(())
    return relative_error(
        side_array(sides.reference, a, replace(steps, candidate_parts=()), "reference"),
        side_array(sides.candidate, b, replace(steps, reference_parts=()), "candidate"),
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
