"""Detectors of sums kept in 16 bits: running sums and the partial sums of a split reduction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from analysis.findings.discrepancy import Discrepancy
from analysis.findings.inside.products import KINDS as PRODUCTS
from analysis.findings.inside.products import Product, product_of
from analysis.findings.registry import detector
from analysis.findings.rounding import (
    SIXTEEN_BIT,
    accumulator_bits,
    round_to,
    significand_bits,
)
from analysis.findings.scene import Scene
from analysis.findings.trials import Facts, Proposal, Sign, Trial
from metrics.formats import FORMATS

_BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_SPLITS = (2, 4, 8, 16, 32)
# Emulating an accumulator term by term costs K times the output; rows are sampled to this size.
_EMULATED = 1 << 26


def _narrower(dtype: str) -> list[str]:
    """16-bit formats with fewer significand bits than a run's own."""
    own = FORMATS[dtype].precision if dtype in FORMATS else 24
    return [name for name in SIXTEEN_BIT if FORMATS[name].precision < own]


@detector("lowprec_accum", "splitk_16bit", kinds=PRODUCTS)
def narrow_accumulator(scene: Scene) -> Iterator[Proposal]:
    """A running sum, or the sums of a split reduction, kept in 16 bits.

    Both are emulated in order of K. Where a kernel adds in another order, the error still reads as
    8 or 11 accumulator bits and grows like sqrt(K). Source: Fasi et al. 2021 on tensor cores;
    measured 7.8 to 8.0 bits for bfloat16.
    """
    product = product_of(scene)
    if product is None:
        return
    part, error = _sampled(product, scene.error)
    for name in SIXTEEN_BIT:
        for block in (b for b in _BLOCKS if b < part.length):
            predicted = round_to(part.accumulated(name, block), scene.dtype)
            facts: Facts = {"format": name, "block": block}
            yield Trial(
                mechanism="lowprec_accum", predicted=predicted, prior=0.6, facts=facts, on=error
            )
            if block * 32 >= part.length:
                facts = {"format": name, "splits": part.length // block}
                yield Trial(
                    mechanism="splitk_16bit", predicted=predicted, prior=0.5, facts=facts, on=error
                )
        yield from _splits(scene, part, error, name)
    yield from _accumulator_noise(scene, product)


def _splits(scene: Scene, part: Product, error: Discrepancy, name: str) -> Iterator[Proposal]:
    for count in _SPLITS:
        pieces = part.parts(count)
        if not pieces:
            continue
        rounded = [round_to(piece, name) for piece in pieces]
        chained = np.zeros(1)
        for piece in rounded:
            chained = round_to(chained + piece, name)
        facts: Facts = {"format": name, "splits": count}
        for total in (np.sum(rounded, 0), chained):
            yield Trial(
                mechanism="splitk_16bit",
                predicted=round_to(total + part.rest, scene.dtype),
                prior=0.65,
                facts=facts,
                on=error,
            )


def _sampled(product: Product, error: Discrepancy) -> tuple[Product, Discrepancy]:
    """As many rows as may be emulated, the most wrong ones."""
    x = product.x.reshape(-1, product.length)
    rows = max(1, _EMULATED // (product.length * product.w.shape[0]))
    flat = error.reshaped(lambda values: values.reshape(len(x), -1))
    if rows >= len(x):
        chosen = np.arange(len(x))
    else:
        chosen = np.argsort(-np.sum(flat.scaled**2, -1))[:rows]
    rest = np.broadcast_to(product.rest, (*product.x.shape[:-1], product.w.shape[0]))
    rest = rest.reshape(len(x), -1)[chosen]
    return replace(product, x=x[chosen], rest=rest), flat.part((chosen,))


def _accumulator_noise(scene: Scene, product: Product) -> Iterator[Proposal]:
    """Noise without structure whose size is that of a 16-bit accumulator."""
    error = scene.error.error[scene.error.used]
    energy = np.broadcast_to(product.energy(), scene.error.expected.shape)[scene.error.used]
    ratio = scene.error.ratio
    if error.size < 64 or ratio < 1.5 or _structured(scene.error):
        return
    bits = accumulator_bits(error, energy, product.length)
    if 5.5 < bits < 13 and significand_bits(scene.error.observed) > bits:
        name = "bfloat16" if bits < 9.5 else "float16"
        facts: Facts = {"bits": bits, "format": name}
        yield Sign(mechanism="lowprec_accum", confidence=0.5, facts=facts)
        yield Sign(mechanism="splitk_16bit", confidence=0.35, facts=facts)


def _structured(error: Discrepancy) -> bool:
    """Whether a few elements, rows or channels hold most of the error's energy."""
    energy = error.scaled**2
    total = energy.sum()
    if total == 0 or float(energy.max()) / total > 0.1:
        return True
    for axis in range(energy.ndim):
        share = np.sort(energy.sum(tuple(i for i in range(energy.ndim) if i != axis)))[::-1]
        if share.size >= 8 and share[: share.size // 8].sum() > 0.7 * total:
            return True
    return False
