"""Pairs by their place in the sequence of calls inside each block, as in a diff."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.matching.naming import common_argument, common_operator
from analysis.matching.sides import Bundle, Found
from analysis.matching.similar import Samples
from core.comparison import Match
from language import say

_ALIKE, _ONLY_ORDER, _GUESS = 0.8, 0.6, 0.4
_ANCHOR, _VALUES, _TOKEN = 3, 2, 1  # what aligning two calls is worth
_MOST_CELLS = 1 << 22  # of the table of one block; larger blocks are left to later stages
_MOST_READS = 400  # pairs of calls of one block whose values are looked at

Token = tuple[object, ...]
Matched = Mapping[str, str]  # leads of the reference to leads of the candidate


@dataclass(frozen=True, slots=True)
class _Unit:
    """One call of a module or function: its bundles, and what it looks like without its name."""

    bundles: tuple[Bundle, ...]

    def token(self, *, with_class: bool) -> Token:
        made = [b for b in self.bundles if b.lead.slot in ("output", "value")] or self.bundles
        first = self.bundles[0].lead
        kind = first.module_class if with_class and not first.op else ""
        return (kind, common_operator(first.op), frozenset((_slot(b), b.lead.shape) for b in made))


def by_sequence(
    left: Sequence[Bundle], right: Sequence[Bundle], matched: Matched, samples: Samples
) -> Iterator[Found]:
    """Align the calls of each block; what is matched already holds the two sequences together.

    Blocks are the repeated layers, in order. A pair is sure when its values are related, less so
    when only its kind occurs equally often on both sides, and a suggestion otherwise.
    """
    ours, theirs = _blocks(left), _blocks(right)
    known, taken = dict(matched), set(matched.values())
    for key, units in ours.items():
        for with_class in (True, False):
            block = _Block(units, theirs.get(key, []), known, taken, samples, with_class)
            for found in list(block.pairs()):
                known[found.reference.key] = found.candidate.key
                taken.add(found.candidate.key)
                yield found


class _Block:
    """One block of both runs while its calls are aligned."""

    def __init__(
        self,
        ours: Sequence[_Unit],
        theirs: Sequence[_Unit],
        matched: Matched,
        taken: Set[str],
        samples: Samples,
        with_class: bool,
    ) -> None:
        self.ours, self.theirs, self.matched, self.samples = ours, theirs, matched, samples
        self.taken = taken
        self.tokens_l = [u.token(with_class=with_class) for u in ours]
        self.tokens_r = [u.token(with_class=with_class) for u in theirs]

    def pairs(self) -> Iterator[Found]:
        free_l, free_r = (
            Counter(t for t, u in zip(tokens, units, strict=True) if self._is_free(u))
            for tokens, units in ((self.tokens_l, self.ours), (self.tokens_r, self.theirs))
        )
        if not free_l.keys() & free_r.keys():
            return
        if len(self.ours) * len(self.theirs) > _MOST_CELLS:
            return
        for i, j in aligned(self._scores(free_l, free_r)):
            same_count = free_l[self.tokens_l[i]] == free_r[self.tokens_r[j]]
            yield from self._tensors(self.ours[i], self.theirs[j], same_count=same_count)

    def _is_free(self, unit: _Unit) -> bool:
        return not any(b.key in self.matched or b.key in self.taken for b in unit.bundles)

    def _scores(self, free_l: Counter[Token], free_r: Counter[Token]) -> NDArray[np.int32]:
        scores = np.zeros((len(self.ours), len(self.theirs)), np.int32)
        at = {b.key: j for j, unit in enumerate(self.theirs) for b in unit.bundles}
        places: dict[Token, list[int]] = defaultdict(list)
        for j, unit in enumerate(self.theirs):
            if self._is_free(unit):
                places[self.tokens_r[j]].append(j)
        look = sum(free_l[t] * free_r[t] for t in free_l) <= _MOST_READS
        for i, unit in enumerate(self.ours):
            for partner in {at.get(self.matched.get(b.key, "")) for b in unit.bundles} - {None}:
                scores[i, partner] = _ANCHOR
            if self._is_free(unit):
                for j in places[self.tokens_l[i]]:
                    alike = look and self._alike(unit, self.theirs[j])
                    scores[i, j] = _VALUES if alike else _TOKEN
        return scores

    def _alike(self, a: _Unit, b: _Unit) -> bool:
        pairs = [p for p in _by_slot(a, b) if p[0].lead.slot != "input"] or list(_by_slot(a, b))
        return bool(pairs) and self.samples.alike(*pairs[0])

    def _tensors(self, a: _Unit, b: _Unit, *, same_count: bool) -> Iterator[Found]:
        if not (self._is_free(a) and self._is_free(b)):
            return
        for x, y in _by_slot(a, b):
            alike = self.samples.alike(x, y)
            sure = _ALIKE if alike else _ONLY_ORDER if same_count else _GUESS
            if x.lead.slot == "parameter":
                sure = _GUESS  # equal weights can be told by their values, a stage later
            note = say("same place in the sequence of calls")
            if not alike:
                note = say("same place in the sequence of calls, values unrelated")
            yield Found(x, y, Match("sequence", sure, note))


def aligned(scores: NDArray[np.int32]) -> list[tuple[int, int]]:
    """The increasing pairs (i, j) of positive score whose sum is largest: a diff with weights."""
    best = np.zeros((scores.shape[0] + 1, scores.shape[1] + 1), np.int32)
    for i, row in enumerate(scores):
        either = np.maximum(best[i, 1:], best[i, :-1] + row)
        best[i + 1, 1:] = np.maximum.accumulate(either)
    pairs = []
    i, j = scores.shape
    while i and j:
        if best[i, j] == best[i - 1, j]:
            i -= 1
        elif best[i, j] == best[i, j - 1]:
            j -= 1
        else:
            pairs.append((i - 1, j - 1))
            i, j = i - 1, j - 1
    return pairs[::-1]


def _slot(bundle: Bundle) -> str:
    tensor = bundle.lead
    return f"{tensor.pass_}_{tensor.slot}.{common_argument(tensor.argument)}"


def _by_slot(a: _Unit, b: _Unit) -> Iterator[tuple[Bundle, Bundle]]:
    theirs = {(_slot(y), y.lead.shape): y for y in b.bundles}
    for x in a.bundles:
        if (_slot(x), x.lead.shape) in theirs:
            yield x, theirs[_slot(x), x.lead.shape]


def _blocks(bundles: Sequence[Bundle]) -> dict[object, list[_Unit]]:
    """The calls of each step, rank, pass and block; blocks are told by container and index."""
    containers: dict[str, int] = {}
    calls: dict[object, dict[object, list[Bundle]]] = defaultdict(lambda: defaultdict(list))
    for bundle in bundles:
        tensor = bundle.lead
        container, index = block_path(tensor.module)
        ordinal = containers.setdefault(container, len(containers)) if index is not None else -1
        key = (bundle.place, tensor.pass_ == "backward", ordinal, index)
        calls[key][tensor.module, tensor.op, tensor.call].append(bundle)
    return {key: [_Unit(tuple(u)) for u in units.values()] for key, units in calls.items()}


def block_path(module: str) -> tuple[str, int | None]:
    """The container of repeated blocks a module lies in, and which of them: `layers`, 3."""
    segments = module.split(".")
    for n, segment in enumerate(segments):
        if segment.isdecimal() and len(segment) < 7:
            return ".".join(segments[:n]), int(segment)
    return "", None
