"""Suggestions: tensors without a partner whose values are nearly those of just one other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from analysis.adapt.checks import SAME
from analysis.matching.sides import Bundle, Found
from analysis.matching.similar import Samples
from core.comparison import Match
from core.numbers import error
from language import say
from metrics import formats

_SUGGESTED = 0.4
_MOST = 1000  # tensors left on a side; beyond, too much is unlike for a suggestion to help
_ALONE = 4.0  # times further the next best must be

Key = tuple[object, ...]


def by_values(left: Sequence[Bundle], right: Sequence[Bundle], samples: Samples) -> Iterator[Found]:
    """Pairs of one shape, pass and slot whose samples agree, when each is the other's only one."""
    if len(left) > _MOST or len(right) > _MOST:
        return
    ours, theirs = _groups(left), _groups(right)
    for key in ours.keys() & theirs.keys():
        best_l = {a.key: _only(a, theirs[key], samples) for a in ours[key]}
        claims: dict[str, int] = defaultdict(int)
        for found in best_l.values():
            if found is not None:
                claims[found.candidate.key] += 1
        for found in best_l.values():
            if found is not None and claims[found.candidate.key] == 1:
                yield found


def _only(a: Bundle, others: Sequence[Bundle], samples: Samples) -> Found | None:
    if samples.is_constant(0, a):
        return None
    near = sorted(((samples.distance(a, b), n) for n, b in enumerate(others)))
    apart = near[0][0]
    if apart > SAME or (len(near) > 1 and near[1][0] < _ALONE * max(apart, 1e-12)):
        return None
    note = say(
        "its values are nearly the same: relative error {apart} of a sample", apart=error(apart)
    )
    return Found(a, others[near[0][1]], Match("statistics", _SUGGESTED, note))


def _groups(bundles: Sequence[Bundle]) -> dict[Key, list[Bundle]]:
    groups: dict[Key, list[Bundle]] = defaultdict(list)
    for bundle in bundles:
        tensor = bundle.lead
        if tensor.size > 1 and formats.kind(tensor.dtype) == "float":
            key = (bundle.place, tensor.shape, tensor.pass_, tensor.slot)
            groups[key].append(bundle)
    return groups
