"""Which outputs are not what their operator makes of its inputs, and on which side.

Every call is judged alone, on its own inputs, so that nothing downstream of a fault is accused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from analysis.localise.patterns import Pattern, patterns
from analysis.replay.engine import TRUSTED
from analysis.replay.registry import Attributes, Function
from analysis.replay.result import Output, Part, Replayed
from core.findings import Side

# 6750 honest operator records: R <= 1.27 and z <= 6.8 on kernels of two families, three models and
# four formats; experts and eager norms up to 1.4. A floor of few elements scatters by 1/sqrt(n).
RATIO = 1.6
WORST = 10.0
# Projections on a pattern scatter like a standard normal; of a few hundred patterns, none honest
# was beyond 6.
PATTERN = 9.0
# A pattern must explain this share of the judged error's energy: with 1e7 elements an honest bias
# of a thousandth of the floor is many standard deviations.
SHARE = 2e-3
# How far the amount of another formula may be from 1 (rounding scatters it).
_WHOLLY = 0.4
# Gradients have a floor of few Monte-Carlo samples: honest R <= 2.35.
GRADIENT_RATIO, GRADIENT_WORST = 2.5, 100.0
# How much worse than the other side an error must be: what both kernels do alike is a mode of both.
APART = 1.6
# The reference is trusted: it is accused only from this many times the limit on.
DOUBT = 2.0
# Every |z| below this is within the rounding of the result alone: sqrt(3), and a little.
_ONE_ROUNDING = 1.9


@dataclass(frozen=True, slots=True)
class Suspect:
    """One output that is wrong. `times` is by how much the deciding statistic exceeds its limit.

    `sign` names it: `nonfinite`, `exact`, `ratio`, `worst`, or a pattern.
    """

    replayed: Replayed
    output: Output
    side: Side
    sign: str
    times: float
    gradient: bool = False


def suspects(replayed: Iterable[Replayed]) -> list[Suspect]:
    """All wrong outputs in execution order, the first wrong output of every call."""
    found = []
    for each in replayed:
        for outputs, gradient in ((each.outputs, False), (each.gradients, True)):
            first = next((s for o in outputs if (s := _judged(each, o, gradient))), None)
            if first is not None:
                found.append(first)
    return found


def _judged(replayed: Replayed, output: Output, gradient: bool) -> Suspect | None:
    """The candidate is wrong where it leaves the floor and the reference does not, or less so."""
    left, right = output.reference, output.candidate
    attributes = replayed.fit.attributes if replayed.fit else {}
    if left is None and right is None:
        return None
    if left is not None and left.local.ratio > TRUSTED and not _infinite(left):
        return _reference_alone(replayed, output, gradient)
    if right is not None:
        found = _worse(right, left, gradient)
        if found is None and not gradient:
            found = _patterned(right, left, replayed.own, attributes)
        if found is not None:
            return Suspect(replayed, output, "candidate", *found, gradient)
    return _reference_alone(replayed, output, gradient) if left is not None else None


def _reference_alone(replayed: Replayed, output: Output, gradient: bool) -> Suspect | None:
    """The reference is wrong where the candidate follows the function and it does not.

    Only where the function was named and nothing was fitted to the reference: a fit to the wrong
    side would acquit it.
    """
    left, right = output.reference, output.candidate
    if left is None or right is None or (replayed.fit and replayed.fit.names):
        return None
    if right.local.ratio > RATIO or right.local.worst > WORST:
        return None
    found = _worse(left, right, gradient)
    if found is None or found[1] < DOUBT:
        return None
    return Suspect(replayed, output, "reference", *found, gradient)


def _infinite(part: Part) -> bool:
    return part.local.nonfinite > 0


def _worse(part: Part, other: Part | None, gradient: bool) -> tuple[str, float] | None:
    """The sign by which one side is wrong and the other is not, with its excess over the limit."""
    mine, theirs = part.local, other.local if other else None
    if mine.nonfinite:
        return None if theirs and theirs.nonfinite >= mine.nonfinite else ("nonfinite", math.inf)
    if math.isinf(mine.worst):
        return None if theirs and math.isinf(theirs.worst) else ("exact", math.inf)
    ratio, worst = (GRADIENT_RATIO, GRADIENT_WORST) if gradient else (RATIO, WORST)
    ratio += 2 / math.sqrt(max(1, _independent(part)))
    base = max(1.0, theirs.ratio if theirs else 1.0)
    if mine.ratio > ratio * base and mine.worst > _ONE_ROUNDING:
        return "ratio", mine.ratio / (ratio * base)
    peak = max(worst, APART * theirs.worst if theirs and math.isfinite(theirs.worst) else 0.0)
    if mine.worst > peak:
        return "worst", mine.worst / peak
    return None


def _independent(part: Part) -> int:
    """Errors that scatter on their own: elements, or rows where a row shares part of its error."""
    answer, count = part.side.answer, part.local.count
    if answer.common_compute or answer.common_storage:
        return max(1, count // max(1, int(part.side.actual.shape[-1])))
    return count


def _in_part(pattern: Pattern, function: Function | None) -> bool:
    """Whether a pattern is another listed formula, which is followed wholly or not at all."""
    listed = (v for values in function.options.values() for v in values) if function else ()
    return pattern.name in listed and abs(pattern.amount - 1) > _WHOLLY


def _patterned(
    part: Part, other: Part | None, function: Function | None, attributes: Attributes
) -> tuple[str, float] | None:
    theirs: dict[str, float] = {}
    best: tuple[str, float] | None = None
    for each in patterns(part, function, attributes):
        if abs(each.z) <= PATTERN or each.share < SHARE or _in_part(each, function):
            continue
        if not theirs and other is not None:
            for one in patterns(other, function, attributes):
                theirs[one.name] = max(abs(one.z), theirs.get(one.name, 0.0))
        limit = max(PATTERN, APART * theirs.get(each.name, 0.0))
        if abs(each.z) > limit and (best is None or abs(each.z) / limit > best[1]):
            best = each.name, abs(each.z) / limit
    return best
