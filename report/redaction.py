"""Names that leave under another name, so that a vendor sees the structure but not the model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from blake3 import blake3

from core.comparison import Comparison

_SEGMENT = re.compile(r"[^./:\s]+")
_KEPT_PROVENANCE = ("framework", "framework_version", "device", "dtype_policy", "format")
_KEPT_PREFIX = "math."


class Redactor:
    """Replaces every segment of a name that is not a number by a short keyed hash of it.

    The same name gives the same hash in every report made with the same key; without the key a hash
    cannot be told from any other, also by somebody who guesses names. `names` is the way back, for
    the owner of the model.
    """

    def __init__(self, key: bytes, comparison: Comparison) -> None:
        self._key = blake3(key).digest()
        self.names: dict[str, str] = {}
        self._known = sorted({*_names(comparison)}, key=len, reverse=True)

    def name(self, path: str) -> str:
        """A dotted path or a tensor id, numbers and separators kept."""
        return _SEGMENT.sub(lambda found: self._hashed(found[0]), path)

    def text(self, text: str) -> str:
        """A text in which every name of the runs is replaced, the longest first."""
        for known in self._known:
            if known in text:
                text = text.replace(known, self.name(known))
        return text

    def provenance(self, facts: Mapping[str, str]) -> dict[str, str]:
        """What a vendor needs to know of the software and the device; the rest stays here."""
        return {
            key: value
            for key, value in facts.items()
            if key in _KEPT_PROVENANCE or key.startswith(_KEPT_PREFIX)
        }

    def _hashed(self, segment: str) -> str:
        if segment.isdecimal():
            return segment
        hashed = f"x{blake3(segment.encode(), key=self._key).hexdigest()[:6]}"
        self.names[hashed] = segment
        return hashed


def _names(comparison: Comparison) -> Iterable[str]:
    """Every name of a comparison that might stand in a sentence."""
    for run in (comparison.reference, comparison.candidate):
        yield run.label
    for pair in comparison.pairs:
        for tensor in (pair.reference, pair.candidate):
            yield from (tensor.id, tensor.name, tensor.operator, tensor.module)
            yield tensor.module_class
