"""Coverage in words, for the command line, pages and reports."""

from __future__ import annotations

from collections.abc import Mapping

from core.coverage import Check, Coverage, Oddity
from core.numbers import count, share, size
from core.words import word
from language import listing, say

_WORDS: Mapping[Check, str] = {
    "outputs_without_inputs": say("outputs were captured without inputs"),
    "layers_missing": say("layers between captured ones are missing"),
    "identical_layers": say(
        "outputs are bit for bit the same in several layers: stale buffers, as a captured "
        "graph leaves them, or modules that do nothing"
    ),
    "broken_chain": say(
        "a layer's input is not what the layer before put out: changed in place, or caught "
        "at the wrong moment"
    ),
    "duplicated_names": say("names are used more than once in one step and rank"),
    "only_nan": say("tensors are NaN throughout"),
    "constant": say("tensors hold one value throughout"),
    "replicas_differ": say("ranks should hold the same and do not"),
}


def shares_in_words(coverage: Coverage) -> str:
    """How much of the reference was compared: tensors, bytes, modules."""
    tensors, nbytes, modules = coverage.tensors, coverage.nbytes, coverage.modules
    return say(
        "{tensors} of {all_tensors} tensors ({part}), {bytes} of {all_bytes}, {modules} of "
        "{all_modules} modules of the reference",
        tensors=count(tensors.compared),
        all_tensors=count(tensors.total),
        part=share(tensors.compared, tensors.total),
        bytes=size(nbytes.compared),
        all_bytes=size(nbytes.total),
        modules=count(modules.compared),
        all_modules=count(modules.total),
    )


def oddity_in_words(oddity: Oddity) -> str:
    """One oddity in a line, with the first places where it was seen."""
    more = oddity.count - len(oddity.places)
    places = listing(oddity.places)
    if more > 0:
        places = say("{name} and {n} more", name=places, n=count(more))
    return say(
        "{side}: {what} ({n}): {places}",
        side=word(oddity.side),
        what=_WORDS[oddity.check],
        n=count(oddity.count),
        places=places,
    )
