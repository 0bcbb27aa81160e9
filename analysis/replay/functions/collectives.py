"""Collectives over the ranks of a run, from what each rank handed in."""

from __future__ import annotations

import numpy as np

from analysis.replay.functions.contraction import ROUNDING
from analysis.replay.registry import Answer, Answers, Attributes, Operands, function
from core.errors import CompareError
from core.runs import Array
from language import say


def _parts(given: Operands) -> list[Array]:
    if len(given.ranks) < 2 or len({p.shape for p in given.ranks}) != 1:
        raise CompareError(say("Not every rank's part was captured."))
    return list(given.ranks)


def _reduced(parts: list[Array]) -> Answer:
    """The sum; a ring rounds every partial sum to storage: C2 (n (n + 1) / 2 - 1) / n of energy."""
    n = len(parts)
    energy = sum(p**2 for p in parts)
    hops = (n * (n + 1) / 2 - 1) / n
    return Answer(value=np.asarray(sum(parts)), storage=ROUNDING * hops * energy)


@function("all_reduce", reduction=("sum", "mean"))
def all_reduce(given: Operands, attributes: Attributes) -> Answers:
    """The sum (or mean) over ranks, the same on each."""
    parts = _parts(given)
    made = _reduced(parts)
    scale = 1 / len(parts) if attributes["reduction"] == "mean" else 1.0
    return {"0": Answer(value=made.value * scale, storage=made.storage * scale**2)}


@function("all_gather", axis=("auto",))
def all_gather(given: Operands, attributes: Attributes) -> Answers:
    """The ranks' parts side by side: copies."""
    parts = _parts(given)
    shape = given.shapes["0"]
    grown = [n for n, (a, b) in enumerate(zip(parts[0].shape, shape, strict=False)) if a != b]
    axis = (grown[0] if grown else 0) if attributes["axis"] == "auto" else int(attributes["axis"])
    return {"0": Answer(value=np.concatenate(parts, axis).reshape(shape), exact=True)}


@function("reduce_scatter", rank=(0,))
def reduce_scatter(given: Operands, attributes: Attributes) -> Answers:
    """This rank's share of the sum over ranks, along the first axis that shrinks."""
    made = _reduced(_parts(given))
    shape = given.shapes["0"]
    axis = next(
        (n for n, (a, b) in enumerate(zip(made.value.shape, shape, strict=False)) if a != b), 0
    )
    mine = int(attributes["rank"])
    cut = [
        np.take(t, range(mine * shape[axis], (mine + 1) * shape[axis]), axis)
        for t in (made.value, np.asarray(made.storage))
    ]
    return {"0": Answer(value=cut[0], storage=cut[1])}
