"""The tensors of each run as matching sees them: shards of one tensor together, steps aligned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from core.comparison import Match, Settings
from core.errors import CompareError
from core.runs import Run
from core.tensors import TensorInfo
from language import say

Numbering = Mapping[int | None, int | None]
Place = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class Bundle:
    """One tensor of one run, or all that the ranks hold of it, in the order of the ranks.

    `place` is the step and rank in the reference's numbers; merged ranks are None.
    """

    members: tuple[TensorInfo, ...]
    place: Place

    @property
    def lead(self) -> TensorInfo:
        """The member that stands for all."""
        return self.members[0]

    @property
    def key(self) -> str:
        """Unique in its side."""
        return self.lead.id

    @property
    def local(self) -> str:
        """Its id without step and rank."""
        return local_id(self.lead)


@dataclass(frozen=True, slots=True)
class Found:
    """Two bundles that belong together."""

    reference: Bundle
    candidate: Bundle
    match: Match


@dataclass(frozen=True, slots=True)
class Sides:
    """Both runs and their bundles, in execution order."""

    reference: Run
    candidate: Run
    left: tuple[Bundle, ...]
    right: tuple[Bundle, ...]


def local_id(tensor: TensorInfo) -> str:
    """The id of a tensor without its step and rank."""
    step = "" if tensor.step is None else f"step{tensor.step}/"
    rank = "" if tensor.rank is None else f"rank{tensor.rank}/"
    return tensor.id.removeprefix(step).removeprefix(rank)


def sides(reference: Run, candidate: Run, settings: Settings) -> Sides:
    """Both runs in bundles. Ranks are merged when the two runs have a different number of them.

    Raises CompareError when `settings.steps` is not understood.
    """
    ours, theirs = list(reference.tensors.values()), list(candidate.tensors.values())
    ranks = [{t.rank for t in tensors} for tensors in (ours, theirs)]
    merge = len(ranks[0]) != len(ranks[1]) or any("[" in rule.dims for rule in settings.dims)
    steps = step_numbering({t.step for t in theirs}, {t.step for t in ours}, settings.steps)
    shared = in_order(ranks[1], ranks[0])
    return Sides(
        reference,
        candidate,
        _bundled(ours, {}, {}, merge=merge),
        _bundled(theirs, steps, shared, merge=merge),
    )


def picked(reference: Run, candidate: Run, settings: Settings) -> tuple[Run, Run]:
    """Both runs with the steps and ranks that the settings ask for; all the same without any.

    Of the candidate those that are aligned with the reference's. Raises CompareError when the
    reference has none of them.
    """
    if not settings.only_steps and not settings.only_ranks:
        return reference, candidate
    ours, theirs = reference.tensors.values(), candidate.tensors.values()
    steps = step_numbering({t.step for t in theirs}, {t.step for t in ours}, settings.steps)
    ranks = in_order({t.rank for t in theirs}, {t.rank for t in ours})
    runs = _only(reference, settings, {}, {}), _only(candidate, settings, steps, ranks)
    if not runs[0].tensors:
        raise CompareError(
            say("{label} has no tensor of these steps and ranks.", label=reference.label),
            say("See the steps and ranks of a dump with the command inspect."),
        )
    return runs


def _only(run: Run, settings: Settings, steps: Numbering, ranks: Numbering) -> Run:
    def wanted(tensor: TensorInfo) -> bool:
        step, rank = steps.get(tensor.step, tensor.step), ranks.get(tensor.rank, tensor.rank)
        return (not settings.only_steps or step in settings.only_steps) and (
            not settings.only_ranks or rank in settings.only_ranks
        )

    return replace(run, tensors={n: t for n, t in run.tensors.items() if wanted(t)})


def step_numbering(theirs: set[int | None], ours: set[int | None], wanted: str) -> Numbering:
    """The reference's number for each step of the candidate; see `Settings.steps`."""
    if not wanted:
        return in_order(theirs, ours)
    if wanted == "number":
        return {}
    if wanted == "order":
        return dict(zip(_sorted(theirs), _sorted(ours), strict=False))
    try:
        offset = int(wanted)
    except ValueError as error:
        raise CompareError(
            say("Steps cannot be aligned by {wanted!r}.", wanted=wanted),
            say("Write number, order, or +1, -2 and so on."),
        ) from error
    return {step: None if step is None else step + offset for step in theirs}


def in_order(theirs: set[int | None], ours: set[int | None]) -> Numbering:
    """Their numbers to ours by order if they share none and are equally many; {} keeps them."""
    if theirs & ours or len(theirs) != len(ours):
        return {}
    return dict(zip(_sorted(theirs), _sorted(ours), strict=True))


def _sorted(numbers: Iterable[int | None]) -> list[int | None]:
    return sorted(numbers, key=lambda number: (number is not None, number))


def _bundled(
    tensors: Iterable[TensorInfo], steps: Numbering, ranks: Numbering, *, merge: bool
) -> tuple[Bundle, ...]:
    groups: dict[tuple[object, ...], list[TensorInfo]] = {}
    for tensor in tensors:
        rank = None if merge else ranks.get(tensor.rank, tensor.rank)
        place = (steps.get(tensor.step, tensor.step), rank)
        key = (place, local_id(tensor) if merge else tensor.id)
        groups.setdefault(key, []).append(tensor)
    return tuple(
        Bundle(tuple(sorted(members, key=_rank)), key[0])  # type: ignore[arg-type]
        for key, members in groups.items()
    )


def _rank(tensor: TensorInfo) -> int:
    return -1 if tensor.rank is None else tensor.rank
