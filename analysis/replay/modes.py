"""Modes of a whole run: TF32 everywhere is a setting of the run, not a fault of one operator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from analysis.replay.fit import AT_FLOOR
from analysis.replay.local import local_error
from analysis.replay.noise import variance
from analysis.replay.operands import arithmetic
from analysis.replay.result import Output, Part, Replayed

# Formats that matrix engines round operands to where a run is in float32; narrower last.
MODES = ("tf32", "bfloat16")
# A mode is taken for the run's when so many of its matrix products need it, of at least so many.
MOST, SEVERAL = 0.6, 4


def with_modes(replayed: Sequence[Replayed]) -> tuple[list[Replayed], dict[str, str]]:
    """The replays with each run's own mode in their floors, and the modes by side."""
    found = {
        "reference": _mode([o.reference for r in replayed for o in r.outputs]),
        "candidate": _mode([o.candidate for r in replayed for o in r.outputs]),
    }
    modes = {side: mode for side, mode in found.items() if mode}
    if not modes:
        return list(replayed), {}
    return [_in_mode(each, found["reference"], found["candidate"]) for each in replayed], modes


def _mode(parts: Iterable[Part | None]) -> str:
    """The format that most matrix products of one run in float32 round their operands to."""
    products = [p for p in parts if p is not None and _is_product(p)]
    if len(products) < SEVERAL:
        return ""
    for mode in ("", *MODES):
        explained = sum(_ratio(p, mode) <= AT_FLOOR for p in products)
        if explained >= MOST * len(products):
            return mode
    return ""


def _is_product(part: Part) -> bool:
    return part.side.tensor.dtype == "float32" and np.ndim(part.side.answer.operands) > 0


def _ratio(part: Part, mode: str) -> float:
    return part.local.ratio if not mode else remeasured(part, mode).local.ratio


def remeasured(part: Part, mode: str) -> Part:
    """The same side with its floor under another format of matrix operands."""
    side = part.side
    floor = variance(side.answer, arithmetic(side.call, side.tensor, operands=mode))
    local = local_error(side.answer, side.actual, floor, part.valid, side.tensor.dtype)
    changed = replace(side, variance=floor, ratio=local.ratio, worst=local.worst)
    return Part(changed, local, part.valid)


def _in_mode(replayed: Replayed, reference: str, candidate: str) -> Replayed:
    def changed(output: Output) -> Output:
        left, right = output.reference, output.candidate
        return replace(
            output,
            reference=_under(left, reference),
            candidate=_under(right, candidate),
        )

    return replace(replayed, outputs=tuple(changed(o) for o in replayed.outputs))


def _under(part: Part | None, mode: str) -> Part | None:
    return remeasured(part, mode) if part is not None and mode and _is_product(part) else part
