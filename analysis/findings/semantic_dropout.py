"""Detectors of dropout left active, on values and on attention weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from analysis.findings.discrepancy import Discrepancy
from analysis.findings.inside.attention import Attention, attention_of
from analysis.findings.registry import detector
from analysis.findings.scene import Scene
from analysis.findings.trials import Facts, Proposal, Sign, Trial
from core.runs import Array

# Attention rows with more keys than this are not searched for dropped weights.
_MOST_KEYS = 512
_MOST_ROWS = 4096


@detector("dropout_active", slots=("output",))
def dropped_values(scene: Scene) -> Iterator[Proposal]:
    """A share p of the values is exactly zero, and the others are larger by 1 / (1 - p).

    Share and factor must agree within 4 binomial standard errors. Source: public threads on
    train/eval mode; the pair of signs has no other cause.
    """
    error = scene.error
    alive = error.used & (np.abs(error.expected) > 4 * np.sqrt(np.maximum(error.variance, 0)))
    count = int(alive.sum())
    if count < 50 or scene.kind in ("quantise", "causal_mask", "cache"):
        return
    zero = alive & (error.observed == 0)
    share = float(zero.sum()) / count
    kept = alive & ~zero
    if not 0.002 < share < 0.9 or zero.sum() < 4:
        return
    size = np.abs(error.expected)
    if np.median(size[zero]) < 0.3 * np.median(size[alive]):
        return  # only small values are gone: they were flushed, not dropped
    weight = 1 / np.maximum(error.variance[kept], 1e-300)
    expected, observed = error.expected[kept], error.observed[kept]
    slope = float(np.sum(expected * observed * weight) / np.sum(expected**2 * weight))
    probability = 1 - 1 / slope if slope > 0 else 0.0
    if abs(probability - share) <= max(0.01, 4 * np.sqrt(share * (1 - share) / count)):
        predicted = np.where(zero, 0.0, error.expected * slope)
        facts: Facts = {"probability": probability}
        yield Trial(mechanism="dropout_active", predicted=predicted, prior=0.8, facts=facts)


@detector("dropout_active", kinds={"attention", "matmul"})
def dropped_weights(scene: Scene) -> Iterator[Proposal]:
    """Dropout on attention weights: rows are 1 / (1 - p) too large but for the keys they lost.

    Rows without a lost key fix the factor; in the others each lost key is found by matching its
    contribution. Accepted when that explains the output to its floor and losses are as frequent as
    the factor says.
    """
    model = attention_of(scene)
    if model is None or model.value is None:
        return
    weights = model.probabilities()
    if weights.shape[-1] > _MOST_KEYS or weights[..., 0].size > _MOST_ROWS:
        return
    rows = _by_row(model, scene.error)
    growth = _growth(rows)
    if growth is None:
        return
    values = model.value[:, list(model.groups)]
    kept = _without_lost(weights, values, rows, growth)
    lost = int((kept != weights).sum())
    share = lost / max(1, int((weights > 1e-4).sum()))
    probability = 1 - 1 / growth
    if lost and abs(share - probability) < 0.3 * probability + 0.01:
        yield Trial(
            mechanism="dropout_active",
            predicted=model.output(kept * growth),
            parameters=lost,
            prior=0.7,
            facts={"probability": probability},
        )
        if share > 0.002:
            yield from _dropout_sign(rows, growth, probability)


def _by_row(model: Attention, error: Discrepancy) -> Discrepancy:
    return error.reshaped(model.by_head)


def _row_slopes(rows: Discrepancy) -> tuple[Array, Array]:
    """Slope of each row, and R of what its own slope leaves."""
    energy = np.maximum((rows.expected**2).sum(-1), 1e-300)
    slope = (rows.expected * rows.observed).sum(-1) / energy
    left = ((rows.observed - slope[..., None] * rows.expected) ** 2).sum(-1)
    floor = np.maximum(rows.variance.sum(-1), 1e-300)
    return slope, np.sqrt(left / floor)


def _growth(rows: Discrepancy) -> float | None:
    """The factor 1 / (1 - p) on rows that lost nothing; None when no such factor stands out."""
    slope, left = _row_slopes(rows)
    usable = rows.valid.all(-1) & (np.abs(slope) > 0.5) & (left < 3)
    if usable.sum() < 8:
        return None
    energy = (rows.expected**2).sum(-1)
    sure = np.sqrt(rows.variance.mean(-1) / np.maximum(energy, 1e-300))
    weight = 1 / sure[usable] ** 2
    center = float(np.median(slope[usable]))
    near = np.abs(slope[usable] - center) < np.maximum(0.01, 4 * sure[usable])
    if near.sum() < 8:
        return None
    growth = float(np.average(slope[usable][near], weights=weight[near]))
    spread = float(1 / np.sqrt(weight[near].sum()))
    return growth if growth > 1 + max(0.002, 4 * spread) else None


def _without_lost(weights: Array, values: Array, rows: Discrepancy, growth: float) -> Array:
    """The weights with those keys at zero whose loss explains each row best, greedily."""
    kept = weights.copy()
    floor = np.maximum(rows.variance.sum(-1), 1e-300) / growth**2
    for _ in range(weights.shape[-1]):
        left = rows.observed / growth - np.matmul(kept, values)
        gain = _gain(kept, values, left)
        best = gain.argmax(-1)
        top = np.take_along_axis(gain, best[..., None], -1)[..., 0]
        open_rows = rows.valid.all(-1) & (top > 9 * floor / left.shape[-1])
        open_rows &= (left**2).sum(-1) > 2 * floor
        if not open_rows.any():
            break
        where = np.nonzero(open_rows)
        kept[(*where, best[where])] = 0.0
    return kept


def _gain(kept: Array, values: Array, left: Array) -> Array:
    """How much of each row's remaining energy goes when a key is dropped from it."""
    size = (values**2).sum(-1)[..., None, :]
    along = np.matmul(left, values.swapaxes(-1, -2))
    return np.asarray(-2 * kept * along - kept**2 * size)


def _dropout_sign(rows: Discrepancy, growth: float, probability: float) -> Iterator[Proposal]:
    """Most rows that lost nothing carry exactly the growth: a sign even if some are unexplained."""
    slope, left = _row_slopes(rows)
    usable = rows.valid.all(-1) & (left < 3)
    near = np.abs(slope[usable] - growth) < 0.01
    if near.sum() > 0.5 * usable.sum() and near.sum() >= 16:
        facts: Facts = {"probability": probability}
        yield Sign(mechanism="dropout_active", confidence=0.7, facts=facts)
