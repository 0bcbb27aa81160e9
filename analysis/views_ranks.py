"""Rank by layer: where the ranks of a parallel run part from the reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.dump_checks import block_places
from core.comparison import Comparison, Judgement
from core.tensors import TensorInfo


@dataclass(frozen=True, slots=True)
class RankLayers:
    """The worst times_floor of each rank in each layer, `worst` of shape (ranks, layers).

    `layers` are the repeated blocks and the modules outside them, in execution order; `pairs` is
    the index of the pair that is worst, -1 where a rank has none there. NaN where nothing was
    compared. A pair merged from several ranks counts for each rank of the reference it came from.
    """

    ranks: tuple[int | None, ...]
    layers: tuple[str, ...]
    worst: NDArray[np.float64]
    pairs: NDArray[np.int64]


def rank_layers(
    comparison: Comparison, judgement: Judgement, *, step: int | None = None
) -> RankLayers:
    """The table of all ranks by all layers, of one step of the reference or of all."""
    cells: dict[tuple[int | None, str], tuple[float, int]] = {}
    ranks: dict[int | None, None] = {}
    layers: dict[str, None] = {}
    for n, pair in enumerate(comparison.pairs):
        if step is not None and pair.reference.step != step:
            continue
        layer = _layer(pair.reference)
        layers[layer] = None
        value = judgement.times_floor[n]
        for tensor in pair.members("reference"):
            ranks[tensor.rank] = None
            held = cells.get((tensor.rank, layer), (math.nan, -1))
            if not math.isnan(value) and not held[0] >= value:
                cells[tensor.rank, layer] = (value, n)
    return _table(sorted(ranks, key=lambda r: -1 if r is None else r), list(layers), cells)


def _table(
    ranks: Sequence[int | None],
    layers: Sequence[str],
    cells: dict[tuple[int | None, str], tuple[float, int]],
) -> RankLayers:
    worst = np.full((len(ranks), len(layers)), np.nan)
    pairs = np.full(worst.shape, -1, np.int64)
    for i, rank in enumerate(ranks):
        for j, layer in enumerate(layers):
            worst[i, j], pairs[i, j] = cells.get((rank, layer), (math.nan, -1))
    return RankLayers(tuple(ranks), tuple(layers), worst, pairs)


def _layer(tensor: TensorInfo) -> str:
    """The outermost repeated block a tensor lies in, else its module's first two segments."""
    for container, index, _ in block_places(tensor.module):
        return f"{container}.{index}".lstrip(".")
    return ".".join(tensor.module.split(".")[:2])
