"""Which call of the candidate is which call of the reference: by the pairs of their tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.replay.calls import CallKey, key_of
from analysis.replay.site import OperatorCall
from core.comparison import Pair


@dataclass(frozen=True, slots=True)
class CallPair:
    """The same call in both runs; one side is None where only the other run has it."""

    reference: OperatorCall | None
    candidate: OperatorCall | None


def paired_calls(
    reference: Mapping[CallKey, OperatorCall],
    candidate: Mapping[CallKey, OperatorCall],
    pair_of: Mapping[str, Pair],
) -> list[CallPair]:
    """Every call once, in the reference's order; then those that only the candidate has."""
    found, taken = [], set()
    for call in reference.values():
        key = _counterpart(call, pair_of)
        taken.add(key)
        found.append(CallPair(call, candidate.get(key) if key else None))
    alone = [c for k, c in candidate.items() if k not in taken]
    return found + [CallPair(None, call) for call in alone]


def _counterpart(call: OperatorCall, pair_of: Mapping[str, Pair]) -> CallKey | None:
    groups = (call.outputs, call.inputs, call.gradients_in, call.gradients_out)
    for tensor in (t for group in groups for t in group.values()):
        pair = pair_of.get(tensor.id)
        if pair is not None:
            return key_of(pair.candidate)
    return None
