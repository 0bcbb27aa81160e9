"""Simple relations between what was expected and what was observed, fitted by least squares."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from analysis.findings.discrepancy import Discrepancy
from core.runs import Array

# Above this many elements a multiset is compared on an even sample of its order statistics.
_SORTED = 1 << 22


def factor(one: Discrepancy, axes: tuple[int, ...] | None = None) -> Array:
    """Variance-weighted slope of observed on expected, per slice that `axes` are summed over.

    Broadcasts against the output; 1 for a slice without a usable element.
    """
    weight = np.where(one.used, 1 / np.maximum(one.variance, np.finfo(float).tiny), 0.0)
    weight = _limited(weight)
    expected = np.where(one.used, one.expected, 0.0)
    observed = np.where(one.used, one.observed, 0.0)
    energy = np.sum(expected**2 * weight, axis=axes, keepdims=True)
    product = np.sum(expected * observed * weight, axis=axes, keepdims=True)
    return np.where(energy > 0, product / np.where(energy > 0, energy, 1.0), 1.0)


def offset(one: Discrepancy, axes: tuple[int, ...]) -> Array:
    """Mean error over `axes`, broadcast against the output; 0 where nothing is usable."""
    used = one.used
    count = np.sum(used, axis=axes, keepdims=True)
    total = np.sum(np.where(used, one.error, 0.0), axis=axes, keepdims=True)
    return np.where(count > 0, total / np.maximum(count, 1), 0.0)


def slope_on(one: Discrepancy, term: Array) -> float:
    """How much of `term` was added to the output: the error regressed on it; NaN for zero."""
    used = one.used & np.isfinite(term)
    weight = _limited(np.where(used, 1 / np.maximum(one.variance, np.finfo(float).tiny), 0.0))[used]
    energy = float(np.sum(term[used] ** 2 * weight))
    return float(np.sum(term[used] * one.error[used] * weight)) / energy if energy else float("nan")


def multipliers(one: Discrepancy, terms: Sequence[Array]) -> Array:
    """Least-squares multiplicities of `terms` whose sum the output should be, one per term."""
    used = one.used
    weight = np.sqrt(_limited(1 / np.maximum(one.variance[used], np.finfo(float).tiny)))
    columns = np.stack([term[used] * weight for term in terms], axis=1)
    solution, *_ = np.linalg.lstsq(columns, one.observed[used] * weight, rcond=None)
    return np.asarray(solution, np.float64)


def same_multiset(one: Discrepancy) -> bool:
    """Whether observed and expected hold the same values in some order, within rounding.

    Sorting is 1-Lipschitz, so the sorted arrays differ by no more than the rounding; equal to 3
    floors counts. NaN never matches.
    """
    used = one.valid
    a, b = np.sort(one.expected[used]), np.sort(one.observed[used])
    if a.size == 0 or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return False
    step = max(1, a.size // _SORTED)
    floor = float(np.mean(one.variance[used])) + 2.0**-104 * float(np.mean(a**2))
    return float(np.mean((a[::step] - b[::step]) ** 2)) <= 9 * floor


def reorderings(values: Array, head: int | None) -> Iterator[tuple[str, Array]]:
    """The values of a tensor in other orders of its axes, back in its shape.

    Every permutation of the axes whose result is read back as if nothing had been moved; with
    `head` (a head's width) the last axis is split into heads first, so that head and token may
    change places.
    """
    views = [values.shape]
    if head and values.shape[-1] % head == 0 and values.shape[-1] != head:
        views.append((*values.shape[:-1], values.shape[-1] // head, head))
    for view in views:
        split = values.reshape(view)
        for order in itertools.permutations(range(len(view))):
            if order == tuple(range(len(view))):
                continue
            moved = split.transpose(order)
            yield f"{view} → {order}", np.ascontiguousarray(moved).reshape(values.shape)
            if moved.shape == split.shape:
                continue
            back = split.reshape(moved.shape).transpose(np.argsort(order))
            yield f"{view} ← {order}", np.ascontiguousarray(back).reshape(values.shape)


def nearest_slices(one: Discrepancy, axis: int, width: int = 1) -> list[tuple[int, int, float]]:
    """For each block of `width` along an axis that is wrong: (block, the expected block it equals).

    The third number is R of that match. A block counts as wrong from 4 floors on and as matched
    to 3 floors or 5 % of its error; only valid elements of both enter.
    """
    count = one.expected.shape[axis] // width
    expected = _blocks(np.where(one.used, one.expected, 0.0), axis, count)
    observed = _blocks(np.where(one.used, one.observed, 0.0), axis, count)
    floor = _blocks(np.where(one.used, one.variance, 0.0), axis, count).sum(1)
    floor = floor + 2.0**-104 * float(np.mean(expected**2)) * expected.shape[1]
    own = ((observed - expected) ** 2).sum(1)
    found = []
    for block in np.nonzero(own > 16 * floor)[0]:
        distance = ((expected - observed[block]) ** 2).sum(1)
        other = int(np.argmin(distance))
        if other != block and distance[other] <= max(9 * floor[block], 0.0025 * own[block]):
            found.append((int(block), other, float(np.sqrt(distance[other] / floor[block]))))
    return found


def _blocks(values: Array, axis: int, count: int) -> Array:
    moved = np.moveaxis(values, axis, 0)
    usable = moved[: count * (moved.shape[0] // count)]
    return usable.reshape(count, -1)


def _limited(weight: Array) -> Array:
    """Weights capped at 100 times their mean, so that no near-zero element rules the fit."""
    positive = weight[weight > 0]
    return np.minimum(weight, 100 * float(np.mean(positive))) if positive.size else weight
