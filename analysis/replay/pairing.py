"""Which call of the candidate is which call of the reference: by the pairs of their tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.replay.calls import CallKey, key_of
from analysis.replay.kinds import kind_of, of_one_family
from analysis.replay.site import OperatorCall
from core.comparison import Pair

# A match by place or by values alone is a guess, and a wrong one would blame an operator for being
# another. From here on a guess is good enough to judge by.
SURE = 0.75
_NAMED = frozenset({"mapping", "exact", "normalised"})


def is_sure(pair: Pair) -> bool:
    """Whether a pair is one tensor on both sides by its name, or as good as."""
    return pair.match.method in _NAMED or pair.match.confidence >= SURE


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
        if key is not None and _another_operator(call, candidate.get(key)):
            key = None
        taken.add(key)
        found.append(CallPair(call, candidate.get(key) if key else None))
    alone = [c for k, c in candidate.items() if k not in taken]
    return found + [CallPair(None, call) for call in alone]


def _another_operator(call: OperatorCall, other: OperatorCall | None) -> bool:
    """Whether two calls share a tensor but are different operators: a matmul, and attention."""
    if other is None or call.module == other.module:
        return False
    kinds = [kind_of(c.op or c.module_class) for c in (call, other)]
    return "unknown" not in kinds and kinds[0] != kinds[1] and not of_one_family(*kinds)


def _counterpart(call: OperatorCall, pair_of: Mapping[str, Pair]) -> CallKey | None:
    groups = (call.outputs, call.inputs, call.gradients_in, call.gradients_out)
    for tensor in (t for group in groups for t in group.values()):
        pair = pair_of.get(tensor.id)
        if pair is not None:
            return key_of(pair.candidate)
    return None
