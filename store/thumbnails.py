"""Small pictures of the worst pairs, kept with a comparison whose dumps may be out of reach."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis import selection
from analysis.adapt.runs import adapted
from analysis.views import Images, SliceView, slice_view
from core.comparison import Comparison, Pair
from core.errors import LoadError, NotHereError
from core.runs import Run
from store import tables

NAME = "thumbnails.parquet"
COUNT = 20
SIDE = 128  # pixels, at most; each is the largest error of a block
_IMAGES = ("reference", "candidate", "error", "relative", "ulps")

Pixels = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """A slice of pair `number`; the images are flat, `width` pixels a row. Else as in SliceView."""

    number: int
    selection: str
    width: int
    rows: int
    columns: int
    block: tuple[int, ...]
    elements: int
    wrapped: bool
    complex: bool
    limits: tuple[float, ...]
    error_limit: float
    nonfinite: tuple[int, ...]
    worst: tuple[int, ...]
    reference: Pixels
    candidate: Pixels
    error: Pixels
    relative: Pixels
    ulps: Pixels
    flags: NDArray[np.uint8]

    @property
    def view(self) -> SliceView:
        """What the slice canvases draw."""
        flags = self.flags.reshape(-1, self.width)
        images = {name: getattr(self, name).reshape(flags.shape) for name in _IMAGES}
        return SliceView(
            images=Images(**images, flags=flags),
            rows=self.rows,
            columns=self.columns,
            block=(self.block[0], self.block[1]),
            elements=self.elements,
            wrapped=self.wrapped,
            complex=self.complex,
            limits=(self.limits[0], self.limits[1]),
            error_limit=self.error_limit,
            nonfinite=(self.nonfinite[0], self.nonfinite[1], self.nonfinite[2]),
            worst=(self.worst[0], self.worst[1]) if self.worst else None,
            seen=self.elements,
        )


def drawn(
    runs: tuple[Run, Run], comparison: Comparison, table: pd.DataFrame, count: int = COUNT
) -> list[Thumbnail]:
    """The slices through the worst elements of the pairs that are most times their floor."""
    known = table[table["times_floor"] > 0].sort_values("times_floor", ascending=False)
    found = []
    for number in known["pair"].head(count):
        pair = comparison.pairs[int(number)]
        try:
            found.append(_drawn(runs, int(number), pair))
        except (LoadError, NotHereError):
            continue  # the rest of the comparison says what could not be read
    return found


def write(folder: Path, thumbnails: Sequence[Thumbnail]) -> None:
    """Keep thumbnails in a comparison's folder."""
    tables.write(folder / NAME, thumbnails, Thumbnail)


def read(folder: Path) -> dict[int, Thumbnail]:
    """The thumbnails of a comparison by number of the pair; most have none."""
    path = folder / NAME
    return {t.number: t for t in tables.read(path, Thumbnail)} if path.exists() else {}


def _drawn(runs: tuple[Run, Run], number: int, pair: Pair) -> Thumbnail:
    stats, shape = pair.stats, pair.shape
    assert stats is not None
    at = stats.max_abs_error.index
    worst = tuple(int(i) for i in np.unravel_index(at, shape)) if at >= 0 and shape else None
    text = selection.default(shape, worst).text(shape)
    moments = stats.moments.reference
    seen = slice_view(
        *(runs if pair.adaptation is None else adapted(*runs, pair)),
        reference_id=pair.reference.id,
        candidate_id=pair.candidate.id,
        selection=text,
        dtype=stats.dtype,
        rms=float((moments.energy / moments.count).sqrt()) if moments.count else math.nan,
        height=SIDE,
        width=SIDE,
    )
    flat: dict[str, Any] = {name: getattr(seen.images, name).reshape(-1) for name in _IMAGES}
    facts = ("rows", "columns", "block", "elements", "wrapped", "complex", "limits", "error_limit")
    return Thumbnail(
        number=number,
        selection=text,
        width=seen.images.flags.shape[1],
        nonfinite=seen.nonfinite,
        worst=seen.worst or (),
        flags=seen.images.flags.reshape(-1),
        **{name: getattr(seen, name) for name in facts},
        **flat,
    )
