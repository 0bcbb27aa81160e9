"""Detectors of what happened while running: unwritten blocks, races, old buffers, flipped bits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np

from analysis.findings.discrepancy import Discrepancy, Mask
from analysis.findings.inside.products import KINDS as PRODUCTS
from analysis.findings.inside.products import product_of
from analysis.findings.profiles import Block, aligned, bounding_block
from analysis.findings.registry import detector
from analysis.findings.scene import Scene
from analysis.findings.trials import Facts, Proposal, Sign, Trial
from analysis.replay.site import OperatorCall
from core.runs import Array
from core.tensors import TensorInfo
from loaders.dtypes import numpy_type

# Bits of an element, of the formats in which a flipped bit is looked for.
_BITS: Mapping[str, int] = MappingProxyType(
    {
        "bfloat16": 16,
        "float16": 16,
        "float32": 32,
        "float64": 64,
        "int8": 8,
        "float8_e4m3fn": 8,
        "float8_e5m2": 8,
    }
)

# A block counts as local when it is at most this share of the output and mostly wrong.
_LOCAL = 0.3
_FILLED = 0.3


def wrong_block(error: Discrepancy) -> Block | None:
    """The box of wrong elements, if they sit together: small, and filled by them."""
    for limit in (6.0, 10.0, 20.0):
        wrong = error.wrong(limit)
        block = bounding_block(wrong)
        if block is None:
            return None
        if block.filled > _FILLED:
            small = math.prod(block.shape) <= _LOCAL * wrong.size
            return block if small else None
    return None


@detector("race_partial", kinds=PRODUCTS)
def partial_tile(scene: Scene) -> Iterator[Proposal]:
    """A tile of a product holds the sum over only the first, or last, part of K.

    The length of the part is sought on the wrong block. Source: public threads on missing waits;
    tiles are aligned, inputs stable.
    """
    product, block = product_of(scene), wrong_block(scene.error)
    if product is None or block is None:
        return
    rows, columns = block.slices[:-1], block.slices[-1]
    x, w = product.x[rows], product.w[columns]
    target = scene.error.observed[block.slices]
    rest = np.broadcast_to(product.rest, scene.error.expected.shape)[block.slices]
    for backwards in (False, True):
        length, best = _best_part(x, w, target - rest, backwards=backwards)
        predicted = scene.error.expected.copy()
        predicted[block.slices] = best + rest
        facts: Facts = {
            "block": " × ".join(map(str, block.shape)),
            "part": length,
            "length": product.length,
        }
        yield Trial(
            mechanism="race_partial",
            predicted=predicted,
            parameters=5,
            prior=0.7,
            facts=facts,
        )


def _best_part(x: Array, w: Array, target: Array, *, backwards: bool) -> tuple[int, Array]:
    """How many terms of K, from one end, come nearest to the target, and their sum."""
    step = -1 if backwards else 1
    x, w = x[..., ::step], w[:, ::step]
    total = np.zeros(target.shape)
    best, length, left = total, 0, float(np.sum(target**2))
    for k in range(x.shape[-1] - 1):
        total = total + x[..., k, None] * w[:, k]
        distance = float(np.sum((target - total) ** 2))
        if distance < left:
            best, length, left = total, k + 1, distance
    return length, best


@detector("uninitialised", "race_partial", slots=("output", "gradient", "parameter"))
def unwritten_block(scene: Scene) -> Iterator[Proposal]:
    """A small box of elements holds values unrelated to the expected ones, all else is right.

    Values that scatter over decades were never written; values of the expected size may also be a
    tile read too early. Source: public threads; A/A repeats and NaN fill decide on the device.
    """
    error = scene.error
    block = wrong_block(error)
    if block is None or math.prod(block.shape) < 2 or scene.kind in ("quantise", "cache"):
        return
    inside = error.part(block.slices)
    expected, observed = inside.expected, inside.observed
    related = _correlation(expected[inside.used], observed[inside.used])
    tile = max(aligned(block, axis, size) for axis, size in enumerate(error.expected.shape))
    facts: Facts = {
        "block": " × ".join(map(str, block.shape)),
        "elements": int(math.prod(block.shape)),
        "tile": tile,
    }
    unrelated = 0.85 if abs(related) < 0.5 else 0.6
    yield Sign(mechanism="uninitialised", confidence=unrelated, facts=facts)
    if scene.kind in PRODUCTS:
        partial = 0.55 if related < 0.5 else 0.7
        yield Sign(mechanism="race_partial", confidence=partial, facts=facts)


def _correlation(a: Array, b: Array) -> float:
    size = float(np.sqrt((a @ a) * (b @ b))) if a.size else 0.0
    return float(a @ b) / size if size > 0 else 0.0


@detector("stale_buffer")
def stale_buffer(scene: Scene) -> Iterator[Proposal]:
    """The output equals the same operator's output of an earlier step, of either run.

    Source: public threads on captured graphs; the nearest step of the reference shows a plateau.
    """
    if not scene.whole or scene.kind in ("causal_mask", "cache"):
        return
    for call, tensor in _earlier_outputs(scene):
        predicted = np.asarray(call.value(tensor), np.float64)
        facts: Facts = {"step": -1 if call.step is None else call.step}
        yield Trial(mechanism="stale_buffer", predicted=predicted, prior=0.85, facts=facts)


def _earlier_outputs(scene: Scene) -> Iterator[tuple[OperatorCall, TensorInfo]]:
    for call in (*scene.site.calls_candidate, *scene.site.calls_reference):
        if call.operator != scene.call.operator or call.step == scene.call.step:
            continue
        tensor = call.outputs.get(scene.site.output)
        before = call.step is None or scene.call.step is None or call.step < scene.call.step
        if tensor is not None and tensor.shape == scene.tensor.shape and before:
            yield call, tensor


@detector("bit_flip", slots=("output", "gradient", "parameter", "input"))
def flipped_bit(scene: Scene) -> Iterator[Proposal]:
    """One element is off, and flipping one bit of it gives the expected value.

    Source: public threads on silent corruption; the pattern's xor has one bit set.
    """
    error = scene.error
    if scene.dtype not in _BITS or error.expected.size < 8:
        return
    wrong = error.wrong(8.0) & error.valid
    places = np.argwhere(wrong)
    if not 1 <= len(places) <= 3:
        return
    strongest = _strongest(error, wrong)
    expected, observed = error.expected[strongest], error.observed[strongest]
    tolerance = 4 * math.sqrt(max(float(error.variance[strongest]), 0.0))
    for bit, value in _flips(float(observed), scene.dtype):
        near = abs(value - expected) <= max(tolerance, 1e-12 * abs(expected))
        if near and abs(observed - expected) > 4 * tolerance:
            index = int(np.ravel_multi_index(strongest, error.expected.shape))
            facts: Facts = {"index": index, "bit": bit, "format": scene.dtype}
            yield Sign(mechanism="bit_flip", confidence=0.98, facts=facts)
            return


def _strongest(error: Discrepancy, wrong: Mask) -> tuple[int, ...]:
    size = np.where(wrong, np.abs(error.scaled), -1.0)
    size = np.where(wrong & ~np.isfinite(error.observed), np.inf, size)
    return tuple(int(i) for i in np.unravel_index(int(size.argmax()), size.shape))


def _flips(value: float, dtype: str) -> Iterator[tuple[int, float]]:
    """The value with each of its bits flipped, in its own format."""
    stored, pattern = numpy_type(dtype), np.dtype(f"uint{_BITS[dtype]}")
    with np.errstate(over="ignore", invalid="ignore"):
        single = np.array([value]).astype(np.float32 if dtype != "float64" else np.float64)
        bits = single.astype(stored).view(pattern)
        for bit in range(_BITS[dtype]):
            flipped = (bits ^ pattern.type(1 << bit)).view(stored)
            yield bit, float(flipped.astype(np.float64)[0])
