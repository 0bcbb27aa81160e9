"""Adaptations as text: steps for mapping files, and words with shapes for people."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import get_args

from analysis.adapt.proposals import Members, Proposal, plan_of
from core.adaptation import Adaptation, Operation, Shape, Step
from core.errors import CompareError
from core.numbers import shape
from core.runs import Run
from core.words import word
from language import say

_STEP = re.compile(
    r"(?:(?P<side>reference|candidate)\s*:\s*)?(?P<name>\w+)\((?P<numbers>[\d, ]*)\)"
)
_HINT = say("Write for example: candidate: concat(0, 2); candidate: transpose(1, 0).")
_WORDS = {
    "transpose": say("axes in the order {numbers}"),
    "squeeze": say("axes of length 1 dropped"),
    "unsqueeze": say("axes of length 1 added"),
    "merge": say("adjacent axes merged"),
    "unmerge": say("an axis cut in several"),
    "concat": say("{size} parts joined along axis {axis}"),
    "sum": say("{size} parts added"),
    "replicated": say("one of {size} replicas"),
}


def adaptation_text(adaptation: Adaptation | None) -> str:
    """The steps of an adaptation as `steps_from_text` reads them; "" for none."""
    steps = () if adaptation is None else adaptation.steps
    return "; ".join(f"{s.side}: {s.operation}({', '.join(map(str, s.arguments))})" for s in steps)


def steps_from_text(
    text: str, reference: Run, candidate: Run, ours: Members, theirs: Members
) -> Proposal:
    """The steps a text names, with the shapes they meet; CompareError when they do not fit."""
    plans = [plan_of("reference", reference, ours), plan_of("candidate", candidate, theirs)]
    for part in filter(None, (p.strip() for p in text.split(";"))):
        match = _STEP.fullmatch(part)
        if match is None or match["name"] not in get_args(Operation):
            raise CompareError(say("{part!r} is no step of an adaptation.", part=part), _HINT)
        numbers = [int(n) for n in match["numbers"].replace(",", " ").split()]
        at = 0 if match["side"] == "reference" else 1
        try:
            plans[at] = plans[at].then(match["name"], *numbers)  # type: ignore[arg-type]
        except (ValueError, IndexError) as error:
            raise CompareError(
                say("The step {part!r} does not fit: {error}.", part=part, error=error), _HINT
            ) from error
    if any(len(plan.arrays) > 1 for plan in plans):
        raise CompareError(say("{text!r} leaves several tensors on one side.", text=text), _HINT)
    return Proposal((*plans[0].steps, *plans[1].steps))


def step_in_words(step: Step) -> str:
    """One step for people, with its shapes: `axes in the order 1, 0: 64 × 32 → 32 × 64`."""
    if step.operation in ("pad_slice", "split"):
        axis, *bounds = step.arguments
        ranges = ", ".join(f"{a}:{b}" for a, b in zip(bounds[::2], bounds[1::2], strict=True))
        what = say("{ranges} of axis {axis}", ranges=ranges, axis=axis)
    else:
        numbers = ", ".join(map(str, step.arguments))
        axis, size = step.arguments[0], step.arguments[-1]
        what = say(_WORDS[step.operation], numbers=numbers, axis=axis, size=size)
    return say(
        "{side}: {what}: {before} → {after}",
        side=word(step.side),
        what=what,
        before=_shapes(step.before),
        after=_shapes(step.after),
    )


def _shapes(shapes: Sequence[Shape]) -> str:
    same = len(set(shapes)) == 1 and len(shapes) > 1
    return (
        say("{n} of {shape}", n=len(shapes), shape=shape(shapes[0]))
        if same
        else ", ".join(map(shape, shapes))
    )
