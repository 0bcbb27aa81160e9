"""Which tensor of the candidate is which tensor of the reference, and how we know."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from core.comparison import Match
from core.runs import Run
from core.tensors import TensorInfo

# Path segments that frameworks wrap around a model; they carry no meaning wherever they stand.
WRAPPERS = frozenset({"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})

_UNIQUE, _REPEATED = 0.95, 0.8
_DEEPEST_ROOT = 3

Key = tuple[object, ...]
Numbering = Mapping[int | None, int | None]


@dataclass(frozen=True, slots=True)
class Matching:
    """Pairs in the reference's execution order, and what is left of each side."""

    pairs: tuple[tuple[TensorInfo, TensorInfo, Match], ...]
    unmatched_reference: tuple[TensorInfo, ...]
    unmatched_candidate: tuple[TensorInfo, ...]


@dataclass(frozen=True, slots=True)
class _Names:
    """How one side's names are brought to the common form."""

    root: tuple[str, ...] = ()
    steps: Numbering | None = None
    ranks: Numbering | None = None

    def key(self, tensor: TensorInfo) -> Key:
        where = tensor.module if tensor.pass_ != "unknown" else tensor.name
        path = normalised(where)
        if path[: len(self.root)] == self.root:
            path = path[len(self.root) :]
        step = self.steps.get(tensor.step) if self.steps else tensor.step
        rank = self.ranks.get(tensor.rank) if self.ranks else tensor.rank
        return (step, rank, path, tensor.op, tensor.slot_label, tensor.call)


def normalised(path: str) -> tuple[str, ...]:
    """Segments of a module path with `/` read as `.` and wrapper modules left out."""
    segments = path.replace("/", ".").split(".")
    return tuple(s for s in segments if s and s not in WRAPPERS)


def match(reference: Run, candidate: Run) -> Matching:
    """Pair by exact id, then by normalised name.

    The normalised name is the module path without wrapper segments and without a root the other
    side lacks, the operator, the slot and the call; class names and class counters are ignored.
    Names that repeat are paired by occurrence with less confidence. Steps (ranks) that are
    numbered differently but equally many are paired in order.
    """
    exact = {t: candidate.tensors[t] for t in reference.tensors if t in candidate.tensors}
    found = {t: (other, Match("exact")) for t, other in exact.items()}
    taken = {other.id for other in exact.values()}
    left = [t for t in reference.tensors.values() if t.id not in found]
    right = [t for t in candidate.tensors.values() if t.id not in taken]
    for a, b, how in _by_name(left, right, *_common_names(reference, candidate)):
        found[a.id] = (b, how)
        taken.add(b.id)
    pairs = ((a, *found[a.id]) for a in reference.tensors.values() if a.id in found)
    return Matching(
        tuple(pairs),
        tuple(t for t in reference.tensors.values() if t.id not in found),
        tuple(t for t in candidate.tensors.values() if t.id not in taken),
    )


def _by_name(
    left: Iterable[TensorInfo], right: Iterable[TensorInfo], names_l: _Names, names_r: _Names
) -> Iterable[tuple[TensorInfo, TensorInfo, Match]]:
    lefts, rights = _grouped(left, names_l), _grouped(right, names_r)
    for key in lefts.keys() & rights.keys():
        ours, theirs = lefts[key], rights[key]
        unique = len(ours) == len(theirs) == 1
        for n, (a, b) in enumerate(zip(ours, theirs, strict=False)):
            note = _what_differs(a, b) if unique else f"name repeats: occurrence {n} on both sides"
            yield a, b, Match("normalised", _UNIQUE if unique else _REPEATED, note)


def _grouped(tensors: Iterable[TensorInfo], names: _Names) -> dict[Key, list[TensorInfo]]:
    groups: dict[Key, list[TensorInfo]] = defaultdict(list)
    for tensor in tensors:
        groups[names.key(tensor)].append(tensor)
    return groups


def _what_differs(a: TensorInfo, b: TensorInfo) -> str:
    if a.name == b.name:
        return f"step or rank {_place(a)} against {_place(b)}"
    if a.module_class != b.module_class and a.module == b.module:
        return (
            f"class {a.module_class or 'not recorded'} against {b.module_class or 'not recorded'}"
        )
    return "name spelt differently"


def _place(tensor: TensorInfo) -> str:
    return f"{tensor.step}/{tensor.rank}"


def _common_names(reference: Run, candidate: Run) -> tuple[_Names, _Names]:
    ours, theirs = list(reference.tensors.values()), list(candidate.tensors.values())
    steps = _numbering([t.step for t in theirs], [t.step for t in ours])
    ranks = _numbering([t.rank for t in theirs], [t.rank for t in ours])
    root_r, root_c = _roots(_paths(ours), _paths(theirs))
    return _Names(root_r), _Names(root_c, steps, ranks)


def _numbering(theirs: list[int | None], ours: list[int | None]) -> Numbering | None:
    """Map their numbers to ours by order when both have equally many; None: leave as they are."""
    a, b = (sorted(set(n), key=lambda x: (x is not None, x)) for n in (theirs, ours))
    return dict(zip(a, b, strict=True)) if a != b and len(a) == len(b) else None


def _paths(tensors: Iterable[TensorInfo]) -> set[tuple[str, ...]]:
    return {normalised(t.module) for t in tensors} - {()}


def _roots(
    ours: set[tuple[str, ...]], theirs: set[tuple[str, ...]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Leading segments that all names of one side share and the other lacks, like `model.`."""
    best = len(ours & theirs)
    roots: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    for side, (mine, other) in enumerate(((ours, theirs), (theirs, ours))):
        for root in _shared_roots(mine):
            hits = len({p[len(root) :] for p in mine} & other)
            if hits > best:
                best, roots = hits, ((root, ()) if side == 0 else ((), root))
    return roots


def _shared_roots(paths: set[tuple[str, ...]]) -> Iterable[tuple[str, ...]]:
    if not paths:
        return
    first = min(paths)
    for depth in range(1, min(_DEEPEST_ROOT, len(first)) + 1):
        # The root module itself may stand alone beside its children.
        if all(p[:depth] == first[:depth] or len(p) < depth for p in paths):
            yield first[:depth]
