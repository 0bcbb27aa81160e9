"""What a boolean attention mask is made of, and the masks that a wrong part of it would give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Index = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskParts:
    """A mask (batch, 1, query, key) taken apart: diagonal, window and padding.

    A query at slot p sees keys j with p - window < j <= p + shift that are not padding. `places`
    are the slots of the queries; `window` 0 is none; `causal` False means every key.
    """

    places: Index
    padding: Mask
    causal: bool
    shift: int
    window: int

    def mask(self) -> Mask:
        """The mask these parts give."""
        distance = self.places[:, None] - np.arange(self.padding.shape[1])[None, :]
        allowed = np.ones(distance.shape, bool)
        if self.causal:
            allowed &= distance >= -self.shift
        if self.window:
            allowed &= distance < self.window
        return allowed[None, None] & self.padding[:, None, None, :]


def mask_parts(mask: Mask, places: Index | None = None) -> MaskParts | None:
    """The parts whose mask is `mask` exactly; None when it is of another make.

    Without `places` the queries are the last ones: query i of n sits at slot i + keys - n.
    """
    _, heads, rows, keys = mask.shape
    if heads != 1 and not (mask == mask[:, :1]).all():
        return None
    plain = mask[:, 0]
    slots = np.arange(rows) + keys - rows if places is None else places
    distance = slots[:, None] - np.arange(keys)[None, :]
    seen = plain.any(0)
    if not seen.any():
        return None
    shift = int(-distance[seen].min())
    reach = int(distance[seen].max())
    padding = _padding(plain, distance, shift, reach)
    # A diagonal that no key lies above is one even where every key may be seen (decoding).
    for causal in (shift == 0, shift != 0):
        for window in (0, reach + 1):
            parts = MaskParts(
                places=slots, padding=padding, causal=causal, shift=shift, window=window
            )
            if (parts.mask()[:, 0] == plain).all():
                return parts
    return None


def _padding(plain: Mask, distance: Index, shift: int, reach: int) -> Mask:
    """Keys of each sample that some query within reach may see; keys out of reach count as seen."""
    within = (distance >= -shift) & (distance <= reach)
    reachable = np.asarray(within.any(0))
    return np.asarray(plain.any(1)) | ~reachable[None, :]


def variations(parts: MaskParts) -> Iterator[tuple[str, dict[str, int], Mask]]:
    """Masks with one part changed: (mechanism, facts, mask)."""
    if not parts.padding.all():
        full = np.ones_like(parts.padding)
        yield "pads_attended", {}, replace(parts, padding=full).mask()
    if parts.causal:
        for shift in (1, -1, 2):
            changed = replace(parts, shift=parts.shift + shift)
            yield "causal_off_by_one", {"shift": shift}, changed.mask()
        yield from _other_corner(parts)
    if parts.window:
        yield from _other_windows(parts)


def _other_corner(parts: MaskParts) -> Iterator[tuple[str, dict[str, int], Mask]]:
    rows, keys = len(parts.places), parts.padding.shape[1]
    if rows == keys:
        return
    start = int(parts.places[0])
    moved = parts.places - start if start else parts.places + keys - rows
    yield "causal_alignment", {}, replace(parts, places=moved).mask()


def _other_windows(parts: MaskParts) -> Iterator[tuple[str, dict[str, int], Mask]]:
    for wider in (1, -1, 2, -2, 3, -3, 4, -4):
        if (window := parts.window + wider) > 0:
            facts = {"window": window, "window_reference": parts.window}
            yield "window_off_by_one", facts, replace(parts, window=window).mask()
    yield "window_off_by_one", {}, replace(parts, window=0).mask()
