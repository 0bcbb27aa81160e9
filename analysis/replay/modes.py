"""Modes of a whole run: TF32 everywhere is a setting of the run, not a fault of one operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from analysis.replay.fit import AT_FLOOR
from analysis.replay.local import local_error
from analysis.replay.noise import variance
from analysis.replay.operands import arithmetic
from analysis.replay.result import Output, Part, Replayed
from metrics import formats

# Formats that matrix engines round operands to where a run is in float32; narrower last.
MODES = ("tf32", "bfloat16")
_Under = Callable[[Part | None, str], Part | None]
# z of an honest element (numerics: at most 6.8 in 6750 records).
WORST = 10.0
# A mode is taken for the run's when so many of its matrix products need it, of at least so many.
MOST, SEVERAL = 0.6, 3


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
        explained = sum(_at_floor(p if not mode else remeasured(p, mode)) for p in products)
        if explained >= MOST * len(products):
            return mode
    return ""


def _at_floor(part: Part) -> bool:
    return part.local.ratio <= AT_FLOOR and part.local.worst <= WORST


def _is_product(part: Part) -> bool:
    """A matrix product of float32 operands, whatever its result is stored in (autocast: bf16)."""
    inputs = [t for t in part.side.call.inputs.values() if "float" in t.dtype]
    wide = bool(inputs) and all(t.dtype == "float32" for t in inputs)
    return wide and np.ndim(part.side.answer.operands) > 0


def remeasured(part: Part, mode: str) -> Part:
    """The same side with its floor under another format of matrix operands."""
    side = part.side
    floor = variance(side.answer, arithmetic(side.call, side.tensor, operands=mode))
    local = local_error(side.answer, side.actual, floor, part.valid, side.tensor.dtype)
    answer = replace(side.answer, fixed_weights=True)
    changed = replace(side, answer=answer, variance=floor, ratio=local.ratio, worst=local.worst)
    return Part(changed, local, part.valid)


def remeasured_gradient(part: Part, mode: str) -> Part:
    """The same gradient when operands are rounded to a mode's format: its spread grows with u²."""
    side = part.side
    units = [formats.format_of(dtype).unit_roundoff for dtype in (mode, side.tensor.dtype)]
    answer = replace(side.answer, steps=side.answer.steps * max(1.0, units[0] / units[1]) ** 2)
    floor = side.variance + answer.steps
    local = local_error(answer, side.actual, floor, part.valid, side.tensor.dtype)
    changed = replace(side, answer=answer, variance=floor, ratio=local.ratio, worst=local.worst)
    return Part(changed, local, part.valid)


def _in_mode(replayed: Replayed, reference: str, candidate: str) -> Replayed:
    return replace(
        replayed,
        outputs=tuple(_both(o, reference, candidate, _under) for o in replayed.outputs),
        gradients=tuple(_both(o, reference, candidate, _gradient) for o in replayed.gradients),
    )


def _both(output: Output, reference: str, candidate: str, under: _Under) -> Output:
    return replace(
        output,
        reference=under(output.reference, reference),
        candidate=under(output.candidate, candidate),
    )


def _under(part: Part | None, mode: str) -> Part | None:
    return remeasured(part, mode) if part is not None and mode and _is_product(part) else part


def _gradient(part: Part | None, mode: str) -> Part | None:
    wide = part is not None and part.side.tensor.dtype == "float32"
    return remeasured_gradient(part, mode) if part is not None and mode and wide else part
