"""The stages of matching, from the surest to the least sure; each takes what the others left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.matching.adapting import adapted, members
from analysis.matching.fingerprint import by_module, by_weights
from analysis.matching.fused import by_fusion
from analysis.matching.mapped import by_mapping, forbidden
from analysis.matching.named import by_name, exact, shifting, spellings
from analysis.matching.residual import with_residuals
from analysis.matching.sequence import by_sequence
from analysis.matching.sides import Bundle, Found, Sides, sides
from analysis.matching.similar import Samples
from analysis.matching.statistics import by_values
from core.comparison import Match, Settings
from core.runs import Run
from core.tensors import TensorInfo


@dataclass(frozen=True, slots=True)
class Matching:
    """Pairs in the reference's execution order, and what is left of each side."""

    pairs: tuple[tuple[TensorInfo, TensorInfo, Match], ...]
    unmatched_reference: tuple[TensorInfo, ...]
    unmatched_candidate: tuple[TensorInfo, ...]


def match(reference: Run, candidate: Run, settings: Settings | None = None) -> Matching:
    """Pair the tensors of two runs and say how each pair was found and made comparable.

    The user's mapping, equal ids, equal names without wrappers and roots, names by the table,
    fused modules, the sequence of calls inside each block, equal weights, similar values. What a
    later stage is sure of replaces what an earlier one only suggested. Values are read from what
    the names leave over, from square weights and from shards, in samples.
    """
    settings = settings or Settings()
    both = sides(reference, candidate, settings)
    cascade = _Cascade(both, settings)
    cascade.run()
    return _as_matching(both, cascade.adapted())


class _Cascade:
    """The state of the matching: what was found, and what is still free."""

    def __init__(self, both: Sides, settings: Settings) -> None:
        self.sides, self.settings = both, settings
        self.samples = Samples(both.reference, both.candidate)
        self.says_no = forbidden(settings.mapping)
        self.found: list[Found] = []
        self.guesses: list[Found] = []
        self.taken: set[tuple[str, str]] = set()

    def run(self) -> None:
        """All stages; those that read values only when something is left on both sides."""
        both = self.sides
        self.keep(by_mapping(both, *self.free(), self.settings.mapping))
        left, right = self.free()
        same = list(exact(left, right))
        if len(same) == len(left) == len(right):
            self.keep(same)
            return
        plain = spellings(both.left, both.right, by_rule=False)
        wary = shifting(*self.free(), plain)
        self.keep(exact(*self.free(wary)))
        self.keep(by_name(*self.free(wary), plain))
        if all(self.free(wary)):
            self.by_rules(wary)
        if all(self.free()):
            self.by_values()
        self.keep(self.guesses, suggestions=True)

    def by_rules(self, wary: set[str]) -> None:
        """The stages that know how frameworks name and fuse modules."""
        ruled = spellings(self.sides.left, self.sides.right, by_rule=True)
        self.keep(by_name(*self.free(wary), ruled))
        self.keep(by_fusion(self.sides, *self.free(wary), ruled), shared=True)

    def by_values(self) -> None:
        """The stages that look at sequences and values."""
        known = {f.reference.key: f.candidate.key for f in self.found}
        self.keep(by_sequence(self.sides.left, self.sides.right, known, self.samples))
        self.keep(by_weights(self.sides, *self.free(), self.samples))
        known_modules = [f for f in self.found if f.match.method != "sequence"]
        self.keep(by_module(*self.free(), known_modules))
        self.keep(by_values(*self.free(), self.samples))

    def free(self, without: Iterable[str] = ()) -> tuple[list[Bundle], list[Bundle]]:
        """What has no partner yet."""
        held = set(without)
        left, right = (
            [b for b in bundles if (side, b.key) not in self.taken and b.key not in held]
            for side, bundles in (("reference", self.sides.left), ("candidate", self.sides.right))
        )
        return left, right

    def keep(
        self, found: Iterable[Found], *, suggestions: bool = False, shared: bool = False
    ) -> None:
        """Take what a stage found. `shared`: a candidate may stand in several of its pairs."""
        mine: set[tuple[str, str]] = set()
        for each in list(found):
            ours, theirs = ("reference", each.reference.key), ("candidate", each.candidate.key)
            gone = self.taken if shared else mine
            if {ours, theirs} & self.taken or ours in mine or theirs in gone or self.says_no(each):
                continue
            if each.match.is_suggested and not suggestions:
                self.guesses.append(each)
                continue
            self.found.append(each)
            mine.update((ours, theirs))
            mine.update(members(each))
        self.taken |= mine

    def adapted(self) -> list[Found]:
        """The pairs with their adaptations, sums of a state and its residual included."""
        found = adapted(self.sides, self.found, self.settings)
        self.taken = {member for each in found for member in members(each)}
        alone = (
            [b for b in bundles if all(t.has_values for t in b.members)] for bundles in self.free()
        )
        better = {f.reference.key: f for f in with_residuals(self.sides, found, *alone)}
        return [better.get(f.reference.key, f) for f in found]


def _as_matching(both: Sides, found: Sequence[Found]) -> Matching:
    used = {member for each in found for member in members(each)}
    pairs = [(f.reference.lead, f.candidate.lead, f.match) for f in found]
    order = {tensor_id: n for n, tensor_id in enumerate(both.reference.tensors)}
    pairs.sort(key=lambda pair: order[pair[0].id])
    ours, theirs = both.reference.tensors, both.candidate.tensors
    return Matching(
        tuple(pairs),
        tuple(t for t in ours.values() if ("reference", t.id) not in used),
        tuple(t for t in theirs.values() if ("candidate", t.id) not in used),
    )
