"""Coverage in words, for the command line, pages and reports."""

from __future__ import annotations

from collections.abc import Mapping

from core.coverage import Check, Coverage, Oddity
from core.numbers import count, share, size

_WORDS: Mapping[Check, str] = {
    "outputs_without_inputs": "outputs were captured without inputs",
    "layers_missing": "layers between captured ones are missing",
    "identical_layers": "outputs are bit for bit the same in several layers: stale buffers, "
    "as a captured graph leaves them, or modules that do nothing",
    "broken_chain": "a layer's input is not what the layer before put out: changed in place, or "
    "caught at the wrong moment",
    "duplicated_names": "names are used more than once in one step and rank",
    "only_nan": "tensors are NaN throughout",
    "constant": "tensors hold one value throughout",
    "replicas_differ": "ranks should hold the same and do not",
}


def shares_in_words(coverage: Coverage) -> str:
    """How much of the reference was compared: tensors, bytes, modules."""
    tensors, nbytes, modules = coverage.tensors, coverage.nbytes, coverage.modules
    return (
        f"{count(tensors.compared)} of {count(tensors.total)} tensors "
        f"({share(tensors.compared, tensors.total)}), "
        f"{size(nbytes.compared)} of {size(nbytes.total)}, "
        f"{count(modules.compared)} of {count(modules.total)} modules of the reference"
    )


def oddity_in_words(oddity: Oddity) -> str:
    """One oddity in a line, with the first places where it was seen."""
    more = oddity.count - len(oddity.places)
    places = ", ".join(oddity.places) + (f" and {count(more)} more" if more > 0 else "")
    return f"{oddity.side}: {_WORDS[oddity.check]} ({count(oddity.count)}): {places}"
