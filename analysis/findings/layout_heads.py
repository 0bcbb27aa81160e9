"""Detectors of heads, rows and weights that stand in for others: permutations, stale weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from analysis.findings.discrepancy import Discrepancy
from analysis.findings.inside.attention import attention_of
from analysis.findings.inside.products import KINDS as PRODUCTS
from analysis.findings.inside.products import Product, product_of
from analysis.findings.registry import detector
from analysis.findings.scene import Scene
from analysis.findings.transforms import multipliers, nearest_slices
from analysis.findings.trials import Facts, Proposal, Trial
from analysis.replay.site import OperatorCall
from core.runs import Array
from language import say

WIDTHS = (8, 16, 32, 64, 80, 96, 128, 256)
# Partial products of every head with every head's weight: the square of this many.
_MOST_HEADS = 16
_LARGEST = 1 << 23  # elements of that least-squares problem


def head_widths(scene: Scene) -> list[int]:
    """Widths of a head that fit the last axis: from a neighbouring attention, else the usual."""
    last = scene.error.expected.shape[-1]
    seen = set(WIDTHS)
    for call in scene.site.calls_candidate:
        shapes = [t.shape for t in call.inputs.values() if len(t.shape) == 4]
        seen |= {shape[-1] for shape in shapes}
    return sorted(w for w in seen if last % w == 0 and last > w)


@detector("head_permuted", "wrong_head", kinds=PRODUCTS | {"attention", "matmul"})
def moved_heads(scene: Scene) -> Iterator[Proposal]:
    """Blocks of channels, a head wide, equal other blocks than their own.

    A one-to-one map is a permutation; a block that appears twice is a head reading another's data.
    Source: public threads on packed qkv; the map of nearest heads with its duplicates.
    """
    if scene.error.expected.ndim < 2:
        return
    scene, added = _without_bias(scene)
    model = attention_of(scene)
    axis = 1 if model is not None and model.layout in ("first", "scores", "weights") else -1
    widths = [1] if axis == 1 else head_widths(scene)
    for width in widths:
        moves = nearest_slices(scene.error, axis, width)
        if moves:
            yield from _moves(scene, axis, width, [(i, j) for i, j, _ in moves], added)
    if axis == -1:
        yield from _within_heads(scene, widths, added)


def _without_bias(scene: Scene) -> tuple[Scene, Array]:
    """The site less its bias, which stays in place when rows of the weight move."""
    bias = scene.given.parameter("bias")
    if bias is None or bias.shape[-1] != scene.error.expected.shape[-1]:
        return scene, np.zeros(1)
    added = bias.astype(np.float64)
    error = replace(
        scene.error, expected=scene.error.expected - added, observed=scene.error.observed - added
    )
    return replace(scene, error=error), added


def _moves(
    scene: Scene, axis: int, width: int, moves: Sequence[tuple[int, int]], added: Array
) -> Iterator[Proposal]:
    expected = scene.error.expected
    count = expected.shape[axis] // width
    order = list(range(count))
    for block, other in moves:
        order[block] = other
    index = np.concatenate([np.arange(o * width, (o + 1) * width) for o in order])
    predicted = np.take(expected, index, axis) + added
    permuted = len(set(order)) == count
    facts: Facts = {"order": ", ".join(map(str, order)), "width": width}
    if permuted:
        yield Trial(mechanism="head_permuted", predicted=predicted, prior=0.7, facts=facts)
    else:
        facts = {"head": moves[0][0], "other": moves[0][1]}
        yield Trial(
            mechanism="wrong_head",
            predicted=predicted,
            parameters=len(moves),
            prior=0.6,
            facts=facts,
        )


def _within_heads(scene: Scene, widths: Sequence[int], added: Array) -> Iterator[Proposal]:
    """Rows inside each head interleaved or de-interleaved, as conversions between rotary styles."""
    expected = scene.error.expected
    for width in [*widths, expected.shape[-1]]:
        if width % 2:
            continue
        split = expected.reshape(*expected.shape[:-1], -1, width)
        pairs = split.reshape(*split.shape[:-1], width // 2, 2).swapaxes(-1, -2)
        halves = split.reshape(*split.shape[:-1], 2, width // 2).swapaxes(-1, -2)
        for name, moved in (("de-interleaved", pairs), ("interleaved", halves)):
            yield Trial(
                mechanism="head_permuted",
                predicted=np.ascontiguousarray(moved).reshape(expected.shape) + added,
                prior=0.6,
                facts={
                    "order": say("rows {name} in blocks of {width}", name=name, width=width),
                    "width": width,
                },
            )


@detector("head_permuted", kinds=PRODUCTS)
def permuted_input(scene: Scene) -> Iterator[Proposal]:
    """The output projection multiplies each head with another head's columns.

    Least squares over the partial products of all pairs of heads; the multiplicities must come out
    as a permutation.
    """
    product = product_of(scene)
    if product is None:
        return
    for width in (w for w in WIDTHS if product.length % w == 0 and product.length > w):
        count = product.length // width
        if not 2 <= count <= _MOST_HEADS or scene.error.expected.size < 4 * count**2:
            continue
        order = _permutation(scene, product, width, count)
        if order is None or order == list(range(count)):
            continue
        index = np.concatenate([np.arange(o * width, (o + 1) * width) for o in order])
        facts: Facts = {"order": ", ".join(map(str, order)), "width": width}
        predicted = product.output(x=product.x[..., index])
        yield Trial(mechanism="head_permuted", predicted=predicted, prior=0.65, facts=facts)


def _permutation(scene: Scene, product: Product, width: int, count: int) -> list[int] | None:
    """For each block of the weight the block of the input it met; None when not one to one."""
    some = _some_columns(scene, product, count**2)
    if some is None:
        return None
    error, product = some
    blocks = [slice(i * width, (i + 1) * width) for i in range(count)]
    terms = [
        np.asarray(product.x[..., source] @ product.w[:, target].T)
        for target in blocks
        for source in blocks
    ]
    found = multipliers(error, terms).reshape(count, count)
    order = [int(i) for i in found.argmax(1)]
    sure = np.abs(found - np.eye(count)[order]).max() < 0.2
    return order if sure and len(set(order)) == count else None


@detector("stale_weight")
def stale_weight(scene: Scene) -> Iterator[Proposal]:
    """The output is what the weights of an earlier step give on this step's input.

    Source: public threads on weight synchronisation; lag -1 after each sync.
    """
    if not scene.given.parameters:
        return
    call: OperatorCall | None = scene.call.earlier
    for _ in range(4):
        if call is None:
            return
        old = {k: call.value(t) for k, t in call.parameters.items() if k in scene.given.parameters}
        same = all(np.array_equal(v, scene.given.parameters[k]) for k, v in old.items())
        predicted = None if same or not old else scene.replay(parameters=old)
        if predicted is not None:
            facts: Facts = {"step": -1 if call.step is None else call.step}
            yield Trial(mechanism="stale_weight", predicted=predicted, prior=0.75, facts=facts)
        call = call.earlier


def _some_columns(scene: Scene, product: Product, terms: int) -> tuple[Discrepancy, Product] | None:
    """As many output channels as keep the least squares small; None when none are left."""
    rows = product.x.size // product.length
    columns = min(len(product.w), _LARGEST // max(1, rows * terms))
    if columns < 4:
        return None
    chosen = np.linspace(0, len(product.w) - 1, columns).astype(int)
    part = replace(product, w=product.w[chosen], rest=np.zeros(1))
    rest = np.broadcast_to(product.rest, scene.error.expected.shape)
    error = scene.error
    fewer = replace(error, expected=error.expected - rest, observed=error.observed - rest).part(
        (..., chosen)
    )
    return fewer, part


def best_order(expected: Array, observed: Array, width: int) -> list[int] | None:
    """Which block of rows of `expected` each block of `observed` is; None when not all are found.

    Both (rows, …); exact equality up to 1e-6 of the block's size.
    """
    count = len(expected) // width
    if len(expected) % width or count < 2:
        return None
    a = expected.reshape(count, -1)
    b = observed.reshape(count, -1)
    distance = (a**2).sum(1)[None] + (b**2).sum(1)[:, None] - 2 * b @ a.T
    order = distance.argmin(1)
    size = np.maximum((b**2).sum(1), 1e-300)
    near = np.array([((b[i] - a[j]) ** 2).sum() for i, j in enumerate(order)]) <= 1e-6 * size
    return [int(i) for i in order] if near.all() else None
