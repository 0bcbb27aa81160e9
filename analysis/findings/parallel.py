"""Detectors of parallelism gone wrong: shards, partial sums, biases once per rank."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from analysis.findings.inside.products import KINDS as PRODUCTS
from analysis.findings.inside.products import product_of
from analysis.findings.registry import detector
from analysis.findings.scene import Scene
from analysis.findings.transforms import multipliers, slope_on
from analysis.findings.trials import Facts, Proposal, Trial
from core.runs import Array

SHARDS = (2, 4, 8, 16)


@detector("same_shard")
def repeated_shard(scene: Scene) -> Iterator[Proposal]:
    """All ranks computed the same shard: equal pieces along the channels where they must differ.

    Source: public threads on rank-independent slicing; pieces agree to rounding, not to the bit.
    """
    expected = scene.error.expected
    bias = scene.given.parameter("bias")
    own = [0.0] if bias is None or bias.shape != expected.shape[-1:] else [0.0, bias]
    for count in SHARDS:
        if expected.ndim < 2 or expected.shape[-1] % count or expected.shape[-1] < 2 * count:
            continue
        facts: Facts = {"shards": count}
        for kept in own:  # a bias may be cut rightly where the weight is not
            for shard, piece in enumerate(np.split(expected - kept, count, -1)):
                yield Trial(
                    mechanism="same_shard",
                    predicted=np.concatenate([piece] * count, -1) + kept,
                    prior=0.75,
                    facts={**facts, "shard": shard},
                )


@detector("missing_reduce", kinds=PRODUCTS | {"all_reduce"})
def missing_part(scene: Scene) -> Iterator[Proposal]:
    """The output is a sum of some of the parts of its reduction: integer least squares over parts.

    Multiplicity 0 is a rank that is missing, 2 one that counts twice. Verified on all-reduces of up
    to 64 ranks: multiplicities come out as integers.
    """
    product = product_of(scene)
    if product is None:
        return
    own_rank = 0.75 if scene.kind in ("row_linear", "all_reduce") else 0.45
    for count in SHARDS:
        parts = product.parts(count)
        if not parts or parts[0].size < 4 * count:
            continue
        rest = np.broadcast_to(product.rest, parts[0].shape)
        whole = _whole_multiplicities(scene, parts, rest)
        if whole is None:
            continue
        total = sum((m * p for m, p in zip(whole, parts, strict=True)), np.zeros(1))
        missing = [i for i, m in enumerate(whole) if m == 0]
        facts: Facts = {"shards": count, "missing": ", ".join(map(str, missing))}
        yield Trial(
            mechanism="missing_reduce",
            predicted=np.asarray(total + rest),
            parameters=1,
            prior=own_rank,
            facts=facts,
        )


def _whole_multiplicities(scene: Scene, parts: list[Array], rest: Array) -> list[int] | None:
    found = multipliers(scene.error, [*parts, rest] if rest.any() else parts)[: len(parts)]
    whole = [int(m) for m in np.rint(found)]
    odd = any(m != 1 for m in whole) and all(0 <= m <= 2 for m in whole) and any(whole)
    return whole if odd and 0 in whole else None


@detector("bias_times_tp", "bias_missing", kinds={"linear", "row_linear", "quant_linear"})
def bias(scene: Scene) -> Iterator[Proposal]:
    """Every token is off by a multiple of the bias: once per further rank, or minus once.

    Missing on one shard only: a contiguous run of channels, judged channel by channel. Source:
    public threads on tensor parallelism; k + 1 is the number of ranks.
    """
    parameter = scene.given.parameter("bias")
    if parameter is None:
        parameter = next((v for v in scene.given.floats[1:] if v.ndim == 1), None)
    if parameter is None or parameter.shape[-1] != scene.error.expected.shape[-1]:
        return
    added = np.broadcast_to(parameter.astype(np.float64), scene.error.expected.shape)
    times = slope_on(scene.error, added)
    if np.isfinite(times) and round(times) not in (0, -1):
        yield Trial(
            mechanism="bias_times_tp",
            predicted=scene.error.expected + round(times) * added,
            parameters=1,
            prior=0.75,
            facts={"times": round(times) + 1},
        )
    yield from _lost_bias(scene, parameter.astype(np.float64))


def _lost_bias(scene: Scene, bias: Array) -> Iterator[Proposal]:
    width = bias.size
    spans = {(0, width)} | {
        (i * width // n, (i + 1) * width // n)
        for n in (2, 4, 8)
        if width % n == 0
        for i in range(n)
    }
    spans |= {(0, width - width // n) for n in (4, 8)} | {(width // n, width) for n in (4, 8)}
    for start, stop in sorted(spans):
        lost = np.zeros(width)
        lost[start:stop] = bias[start:stop]
        yield Trial(
            mechanism="bias_missing",
            predicted=scene.error.expected - lost,
            prior=0.75,
            parameters=0 if stop - start == width else 2,
            facts={"start": start, "stop": stop - 1},
        )
