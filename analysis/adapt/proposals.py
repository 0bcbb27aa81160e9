"""Which steps make two tensors comparable: proposed by their shapes, checked by their values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analysis.adapt.checks import RELATED, all_equal, relative_error
from analysis.adapt.lazy import Stored
from analysis.adapt.shapes import cut, into, whole
from analysis.adapt.steps import Plan
from core.adaptation import Adaptation, Operation, RunSide, Step
from core.runs import Run
from core.tensors import TensorInfo
from metrics import formats

# Steps that the shapes alone do not prove; without related values they are refused.
_CHECKED: frozenset[Operation] = frozenset({"transpose", "merge", "unmerge", "pad_slice"})
_CLEARLY = 0.5  # of the error of the plain way that another way must stay under

Members = Sequence[TensorInfo]


@dataclass(frozen=True, slots=True)
class Proposal:
    """Steps for a pair. `error` is the sample's relative L2 error, NaN where nothing was checked.

    `certain` is False where several ways fit the shapes and the values prefer none.
    """

    steps: tuple[Step, ...]
    error: float = math.nan
    certain: bool = True

    @property
    def signature(self) -> tuple[object, ...]:
        """What is done, whatever the shapes."""
        return tuple((step.side, step.operation) for step in self.steps)

    def adaptation(self, reference: Members, candidate: Members) -> Adaptation | None:
        """As a pair keeps it, given all tensors of each side; None when nothing has to be done."""
        if not self.steps:
            return None
        return Adaptation(self.steps, tuple(reference[1:]), tuple(candidate[1:]), self.error)


def is_plain(reference: Members, candidate: Members) -> bool:
    """Whether two sides are comparable as they stand, and no other way fits their shapes."""
    a, b = reference[0], candidate[0]
    if len(reference) > 1 or len(candidate) > 1 or a.shape != b.shape:
        return False
    return not _is_square_parameter(a)


def proposals(
    reference: Run, candidate: Run, ours: Members, theirs: Members, *, check: bool = False
) -> tuple[Proposal, ...]:
    """The ways to compare two sides that their shapes allow, the most likely one first.

    Empty when there is none. One way that needs no check is checked only on demand.
    """
    options = list(_options(reference, candidate, ours, theirs))
    options.sort(key=lambda option: len(_steps(option)))  # stable: the plainest way first
    if len(options) == 1 and not check and not _needs_check(options[0]):
        return (Proposal(_steps(options[0])),)
    ways = [(checked(option), _needs_check(option)) for option in options]
    return _ranked([way for way, in_doubt in ways if way.error <= RELATED or not in_doubt])


def plan_of(side: RunSide, run: Run, members: Members) -> Plan:
    """The start of a plan: the tensors of one side as they stand."""
    return Plan(side, [Stored(run.values, member) for member in members])


def _options(
    reference: Run, candidate: Run, ours: Members, theirs: Members
) -> Iterator[tuple[Plan, Plan]]:
    left, right = plan_of("reference", reference, ours), plan_of("candidate", candidate, theirs)
    square = _is_square_parameter(ours[0])
    ways = [
        (a, b)
        for a in whole(left, additive=_may_be_partial(left, ours))
        for b in whole(right, additive=_may_be_partial(right, theirs))
        if len(ours) == 1 or len(theirs) == 1 or _operations(a) == _operations(b)
    ]
    fitting = [
        (a, moved) for a, b in ways for moved in into(b, a.arrays[0].shape, transposable=square)
    ]
    yield from fitting
    if not fitting:
        yield from _padded(ways)


def _padded(ways: Sequence[tuple[Plan, Plan]]) -> Iterator[tuple[Plan, Plan]]:
    for a, b in ways:
        shorter = cut(b, a.arrays[0].shape)
        if shorter is not None:
            yield a, shorter
        longer = cut(a, b.arrays[0].shape)
        if longer is not None:
            yield longer, b


def _may_be_partial(plan: Plan, members: Members) -> bool:
    """Whether the tensors of several ranks may be summands: floats that are not all the same."""
    if len(members) == 1 or formats.kind(members[0].dtype) != "float":
        return False
    return len({m.shape for m in members}) == 1 and not all_equal(plan.arrays)


def _is_square_parameter(tensor: TensorInfo) -> bool:
    """Also where the dump does not say what a tensor is: a state saved as plain arrays."""
    may_be = tensor.slot == "parameter" or tensor.pass_ == "unknown"
    return may_be and len(tensor.shape) == 2 and tensor.shape[0] == tensor.shape[1] > 1


def _needs_check(option: tuple[Plan, Plan]) -> bool:
    return any(operation in _CHECKED for plan in option for operation in _operations(plan))


def _operations(plan: Plan) -> tuple[Operation, ...]:
    return tuple(step.operation for step in plan.steps)


def _steps(option: tuple[Plan, Plan]) -> tuple[Step, ...]:
    return (*option[0].steps, *option[1].steps)


def checked(option: tuple[Plan, Plan]) -> Proposal:
    """The steps of both sides, with the error of a sample after them."""
    (a,), (b,) = option[0].arrays, option[1].arrays
    return Proposal(_steps(option), relative_error(a, b))


def _ranked(ways: Sequence[Proposal]) -> tuple[Proposal, ...]:
    """The first way stays first unless another one fits the values clearly better."""
    if len(ways) < 2:
        return tuple(ways)
    first, *others = ways
    best = min(others, key=lambda p: math.inf if math.isnan(p.error) else p.error)
    plain = math.inf if math.isnan(first.error) else first.error
    if best.error <= RELATED and best.error < _CLEARLY * plain:
        return (best, *(p for p in ways if p is not best))
    if plain <= RELATED or not first.steps:
        return tuple(ways)
    return tuple(Proposal(p.steps, p.error, certain=False) for p in ways)
