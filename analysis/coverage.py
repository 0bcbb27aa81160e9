"""How much of two runs was compared, and what about the dumps themselves is odd."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from analysis.dump_checks import Digests, chain_breaks, identical_layers, layer_gaps, silent_inputs
from core.comparison import Comparison, Pair
from core.coverage import CheckedSide, Coverage, ModuleCount, Oddity, Share
from core.runs import Run, nbytes
from core.stats import SideStats
from core.tensors import TensorInfo
from metrics import formats

_MOST_MODULES, _MOST_PLACES = 50, 8
SIDES: tuple[CheckedSide, CheckedSide] = ("reference", "candidate")


def coverage(
    reference: Run,
    candidate: Run,
    comparison: Comparison,
    digests: tuple[Digests, Digests] = ({}, {}),
) -> Coverage:
    """Shares of the reference that have statistics, and oddities of both dumps.

    `digests` are hashes of the values by tensor id, of each run; without them the checks that ask
    whether two buffers are the same find nothing.
    """
    tensors = list(reference.tensors.values())
    compared = [t for p in comparison.pairs if p.stats is not None for t in p.members("reference")]
    modules, seen = ({t.module for t in ts} for ts in (tensors, compared))
    runs = (reference, candidate)
    return Coverage(
        tensors=Share(len(compared), len(tensors)),
        nbytes=Share(sum(map(nbytes, compared)), sum(map(nbytes, tensors))),
        modules=Share(len(seen), len(modules)),
        suggested=sum(p.match.is_suggested for p in comparison.pairs),
        oddities=tuple(_oddities(runs, comparison, digests)),
        unmatched=_unmatched(comparison),
    )


def _oddities(
    runs: tuple[Run, Run], comparison: Comparison, digests: tuple[Digests, Digests]
) -> Iterator[Oddity]:
    dumps = tuple(list(run.tensors.values()) for run in runs)
    for n, side in enumerate(SIDES):
        tensors, other = dumps[n], 1 - n
        found: Mapping[str, Sequence[str]] = {
            "outputs_without_inputs": silent_inputs(tensors),
            "layers_missing": layer_gaps(tensors),
            "identical_layers": identical_layers(tensors, digests[n], dumps[other], digests[other]),
            "broken_chain": chain_breaks(tensors, digests[n], dumps[other], digests[other]),
            "duplicated_names": [t.id for t in tensors if _is_repeated(t)],
            "only_nan": _only_nan(comparison.pairs, side),
            "constant": _constant(comparison.pairs, side),
            "replicas_differ": _differing(comparison.pairs, side, digests[n]),
        }
        for check, places in found.items():
            if places:
                shown = tuple(places[:_MOST_PLACES])
                yield Oddity(check, side, len(places), shown)  # type: ignore[arg-type]


def _is_repeated(tensor: TensorInfo) -> bool:
    """Whether the dump used the name before: ids of later ones end in `~2` and so on."""
    stem, _, number = tensor.id.rpartition("~")
    return bool(stem) and number.isdecimal() and stem.endswith(tensor.name)


def _only_nan(pairs: Iterable[Pair], side: CheckedSide) -> list[str]:
    """Tensors of one side that are NaN throughout; adapted ones by their first part."""
    return [
        pair.members(side)[0].id
        for pair in pairs
        if pair.stats is not None and getattr(pair.stats, side).nan == pair.stats.count > 0
    ]


def _constant(pairs: Iterable[Pair], side: CheckedSide) -> list[str]:
    """Tensors of one side that hold one value throughout.

    Masks, ids and fresh parameters may do so; they are named only where the other side does not.
    """
    places = []
    for pair in pairs:
        if pair.stats is None or not _holds_one_value(getattr(pair.stats, side), pair.stats.count):
            continue
        other = pair.stats.candidate if side == "reference" else pair.stats.reference
        tensor = pair.members(side)[0]
        computed = formats.kind(tensor.dtype) == "float" and tensor.slot == "output"
        if computed or not _holds_one_value(other, pair.stats.count):
            places.append(tensor.id)
    return places


def _holds_one_value(stats: SideStats, count: int) -> bool:
    return stats.finite == count > 1 and stats.minimum == stats.maximum


def _differing(pairs: Iterable[Pair], side: CheckedSide, digests: Digests) -> list[str]:
    """Tensors that ranks should hold alike and do not, by their first replica."""
    return [
        group[0].id
        for pair in pairs
        for group in replicas_of(pair, side)
        if len({digests.get(tensor.id) for tensor in group}) > 1
    ]


def replicas_of(pair: Pair, side: CheckedSide) -> Iterator[tuple[TensorInfo, ...]]:
    """The tensors of one side that its first step takes for replicas."""
    steps = () if pair.adaptation is None else pair.adaptation.steps
    first = next((step for step in steps if step.side == side), None)
    if first is None or first.operation != "replicated":
        return
    members, size = pair.members(side), first.arguments[-1]
    for start in range(0, len(members), size):
        yield members[start : start + size]


def _unmatched(comparison: Comparison) -> tuple[ModuleCount, ...]:
    sides = zip(
        SIDES, (comparison.unmatched_reference, comparison.unmatched_candidate), strict=True
    )
    counts = [
        ModuleCount(side, module, count)
        for side, tensors in sides
        for module, count in Counter(t.module for t in tensors).items()
    ]
    counts.sort(key=lambda each: -each.tensors)
    return tuple(counts[:_MOST_MODULES])
