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
            "only_nan": _sides_that(comparison.pairs, side, _only_nan),
            "constant": _sides_that(comparison.pairs, side, _constant),
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


def _sides_that(pairs: Iterable[Pair], side: CheckedSide, is_odd: object) -> list[str]:
    places = []
    for pair in pairs:
        if pair.stats is not None and callable(is_odd):
            tensor = pair.reference if side == "reference" else pair.candidate
            stats = pair.stats.reference if side == "reference" else pair.stats.candidate
            if is_odd(tensor, stats, pair.stats.count):
                places.append(tensor.id)
    return places
