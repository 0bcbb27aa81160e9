"""Detectors of right values in wrong places: rotary layout, order of axes, tiles, indices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from analysis.findings.discrepancy import Discrepancy
from analysis.findings.inside.attention import Attention, attention_of
from analysis.findings.inside.products import KINDS as PRODUCTS
from analysis.findings.inside.products import product_of
from analysis.findings.inside.rotation import rotation_of
from analysis.findings.profiles import TILES, first_power_of_two, wrong_slices
from analysis.findings.registry import detector
from analysis.findings.scene import Scene
from analysis.findings.search import best_value, nice
from analysis.findings.transforms import reorderings, same_multiset
from analysis.findings.trials import Facts, Proposal, Sign, Trial
from core.runs import Array
from language import say

_BASES = tuple(np.geomspace(1e2, 1e8, 61))
# Another order is a gross error; sorting tells it from other ones, and is skipped where the orders
# can simply be tried (padding may hold values that belong to no order).
_GROSS = 10.0
_ENUMERATED = 1 << 18
_NICE_BASES = (1e3, 1e4, 1.5e5, 1e5, 2.5e5, 5e5, 1e6, 5e6, 1e7)


@detector("rope_interleave", kinds={"rope"})
def rotary_layout(scene: Scene) -> Iterator[Proposal]:
    """Pairs of neighbours rotated instead of halves, or the reverse.

    Row norms and position 0 are right. Source: public threads on the two rotary styles.
    """
    model = rotation_of(scene)
    if model is not None:
        layout = say("half-a-head") if model.interleaved else say("adjacent")
        yield Trial(
            mechanism="rope_interleave",
            predicted=model.laid(not model.interleaved).output(),
            prior=0.75,
            facts={"layout": layout},
        )


@detector("rope_base", kinds={"rope"})
def rotary_base(scene: Scene) -> Iterator[Proposal]:
    """Frequencies of another base: fitted, and rounded to a published base where one is near.

    Position 0 and the highest frequency are right. Source: public threads on long-context
    configurations; 1e4, 5e5 and 1e6 are usual.
    """
    model = rotation_of(scene)
    if model is None:
        return

    def predict(base: float) -> Array:
        return model.based(base).output()

    found = best_value(predict, scene.error, _fine(model.base), steps=40)
    if found is None:
        return
    for base in {found, nice(found, _NICE_BASES, tolerance=0.005)}:
        yield Trial(
            mechanism="rope_base",
            predicted=predict(base),
            parameters=int(base == found),
            prior=0.7,
            facts={"base": base, "base_reference": model.base},
        )


def _fine(base: float) -> list[float]:
    """The grid of bases, denser around the one in use."""
    near = base * np.geomspace(0.8, 1.25, 21)
    return sorted({*_BASES, *_NICE_BASES, *(float(b) for b in near)})


@detector("weight_transposed", kinds=PRODUCTS)
def transposed(scene: Scene) -> Iterator[Proposal]:
    """The product with its weight's axes exchanged: wᵀ, or its memory read as the other shape.

    Source: public threads on converters and on layout flags of matrix products.
    """
    product = product_of(scene)
    if product is None:
        return
    rows, columns = product.w.shape
    others = [product.w.reshape(columns, rows).T]
    if rows == columns:
        others.append(product.w.T)
    for weight in others:
        yield Trial(
            mechanism="weight_transposed",
            predicted=product.output(w=np.ascontiguousarray(weight)),
            prior=0.75,
            facts={"place": say("kernel")},
        )


@detector("layout_reshape", "head_permuted")
def reordered_axes(scene: Scene) -> Iterator[Proposal]:
    """The same values in another order: axes, or heads and tokens, merged without a transpose.

    Sorted values agree; then orders are enumerated. Source: public threads on strides and views.
    """
    error = scene.error
    if not scene.whole or error.expected.ndim < 2 or error.ratio < _GROSS:
        return
    same = same_multiset(error)
    if not same and error.expected.size > _ENUMERATED:
        return
    model = attention_of(scene)
    widths = {model.value.shape[-1]} if model is not None and model.value is not None else set()
    last = error.expected.shape[-1]
    widths |= {w for w in (8, 16, 32, 64, 80, 96, 128) if last % w == 0 and last > w}
    for width in [None, *sorted(widths)]:
        for order, predicted in reorderings(error.expected, width):
            facts: Facts = {"order": order}
            yield Trial(mechanism="layout_reshape", predicted=predicted, prior=0.7, facts=facts)
    if same:
        yield Sign(mechanism="layout_reshape", confidence=0.55, facts={"order": say("not found")})


@detector("wrong_head", "gqa_repeat_order", kinds={"attention", "matmul"})
def head_groups(scene: Scene) -> Iterator[Proposal]:
    """Query heads that use another key head than theirs: each head's best key head is sought.

    One map for all, h mod n in place of h · n / H, is the order of repetition; single wrong heads
    are indices. Source: public threads on grouped attention.
    """
    model = attention_of(scene)
    if model is None or not model.groups or max(model.groups) == 0:
        return
    count = max(model.groups) + 1
    groups = _best_groups(model, scene.error, count)
    tiled = tuple(head % count for head in range(len(model.groups)))
    interleaved = tuple(head * count // len(model.groups) for head in range(len(model.groups)))
    wrong = [h for h, (a, b) in enumerate(zip(model.groups, groups, strict=True)) if a != b]
    if not wrong:
        return
    predicted = model.with_heads(groups).output()
    if groups in (tiled, interleaved):
        facts: Facts = {"order": ", ".join(map(str, groups))}
        yield Trial(mechanism="gqa_repeat_order", predicted=predicted, prior=0.8, facts=facts)
    facts = {"head": wrong[0], "other": groups[wrong[0]]}
    yield Trial(
        mechanism="wrong_head",
        predicted=predicted,
        parameters=len(wrong),
        prior=0.7,
        facts=facts,
    )


def _best_groups(model: Attention, error: Discrepancy, count: int) -> tuple[int, ...]:
    """For each query head the key head whose use explains it best."""
    observed = model.by_head(np.where(error.used, error.observed, 0.0))
    valid = model.by_head(error.used)
    left = []
    for shared in range(count):
        with_one = model.with_heads((shared,) * len(model.groups)).output()
        split = np.where(valid, model.by_head(with_one), 0.0)
        left.append(((observed - split) ** 2).sum((0, 2, 3)))
    return tuple(int(i) for i in np.argmin(np.stack(left), 0))


@detector("tile_tail", kinds=PRODUCTS)
def lost_tail(scene: Scene) -> Iterator[Proposal]:
    """The last tile of a product is missing: of K, not summed; of channels or rows, not stored.

    Tiles of 8 to 256; a partial tile speaks louder than a whole one. Source: public threads on
    shapes that are no multiple of the tile.
    """
    product = product_of(scene)
    if product is None:
        return
    for tile in TILES:
        start = (product.length - 1) // tile * tile
        if start:
            partial = 0.75 if product.length % tile else 0.45
            yield Trial(
                mechanism="tile_tail",
                predicted=product.part(0, start) + product.rest,
                prior=partial,
                facts={"axis": say("the reduction"), "start": start, "tile": tile},
            )
    for axis in range(scene.error.expected.ndim):
        yield from _unstored(scene, axis)


def _unstored(scene: Scene, axis: int) -> Iterator[Proposal]:
    expected = scene.error.expected
    length = expected.shape[axis]
    wrong = wrong_slices(scene.error.wrong(), axis, share=0.5)
    for tile in TILES:
        start = (length - 1) // tile * tile
        if start == 0:
            continue
        tail = np.arange(length).reshape([-1 if i == axis else 1 for i in range(expected.ndim)])
        predicted = np.where(tail >= start, 0.0, expected)
        facts: Facts = {"axis": say("axis {axis}", axis=axis), "start": start, "tile": tile}
        partial = 0.75 if length % tile else 0.5
        yield Trial(mechanism="tile_tail", predicted=predicted, prior=partial, facts=facts)
        if length % tile and wrong == list(range(start, length)):
            yield Sign(mechanism="tile_tail", confidence=0.8, facts=facts)


@detector("index_overflow")
def overflown_index(scene: Scene) -> Iterator[Proposal]:
    """Everything from a flat index 2^k on is wrong, everything before it right.

    Tried: zeros, and values read from 2^k earlier. Source: public threads on 32-bit offsets.
    """
    if not scene.whole:
        return
    power = first_power_of_two(scene.error.wrong(), scene.error.valid)
    if power is None:
        return
    flat = scene.error.expected.ravel()
    facts: Facts = {"index": power, "power": power.bit_length() - 1}
    wrapped = flat.copy()
    source = np.arange(power, flat.size) % power
    wrapped[power:] = flat[source]
    gone = np.where(np.arange(flat.size) < power, flat, 0.0)
    for predicted in (gone, wrapped):
        yield Trial(
            mechanism="index_overflow",
            predicted=predicted.reshape(scene.error.expected.shape),
            prior=0.8,
            facts=facts,
        )
    yield Sign(mechanism="index_overflow", confidence=0.72, facts=facts)
