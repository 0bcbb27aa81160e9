"""The verdict in words: one sentence to read aloud, two lines that say why."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from core.comparison import Comparison, Judgement, Pair


def spoken(comparison: Comparison, judged: Judgement) -> Judgement:
    """The judgement with its sentence and detail filled in."""
    if judged.first_divergence is not None:
        sentence, detail = _parting(comparison, judged, judged.first_divergence)
    elif judged.verdict == "uncompared":
        sentence, detail = _too_little(comparison, judged)
    else:
        sentence, detail = _agreement(judged)
    return replace(judged, sentence=sentence, detail=detail)


def times_text(value: float) -> str:
    """`0.9×`, `3.4×`, `113×`, `6,874×`; words for a non-finite mismatch."""
    if math.isinf(value):
        return "beyond any rounding"
    return f"{value:.1f}×" if value < 10 else f"{value:,.0f}×"


def _how_far(value: float) -> str:
    if math.isinf(value):
        return "it differs where rounding cannot"
    return f"{times_text(value)} the rounding floor"


def _parting(comparison: Comparison, judged: Judgement, first: int) -> tuple[str, str]:
    pair = comparison.pairs[first]
    verb = "part" if judged.verdict == "fault" else "drift apart"
    sentence = f"The two runs {verb} at {_place(pair)}: {_how_far(judged.times_floor[first])}."
    before = sum(v == "rounding" for v in judged.verdicts[:first])
    later = Counter(judged.verdicts[first + 1 :])
    parts = [_inputs(judged.inherited[first]), f"{before} pairs before agree to rounding."]
    if later["inherited"]:
        parts.append(f"{later['inherited']} later pairs inherit the error.")
    if later["fault"]:
        parts.append(f"{later['fault']} more add error of their own.")
    return sentence, " ".join(p for p in parts if p)


def _inputs(handed: float) -> str:
    if math.isnan(handed):
        return "What was handed to it is not recorded or not compared."
    if handed == 0:
        return "Its inputs are equal on both sides."
    return f"Its inputs agree to within {times_text(handed)} the floor."


def _place(pair: Pair) -> str:
    tensor = pair.reference
    where = tensor.operator or tensor.module_class or "the model itself"
    if tensor.pass_ == "parameter":
        return f"the parameter {tensor.argument} of {where}"
    if tensor.pass_ in ("gradient", "update"):
        return f"the {tensor.pass_} of {tensor.argument} in {where}"
    if tensor.pass_ == "backward":
        return f"{where}, backwards"
    return f"the {tensor.slot} of {where}" if tensor.slot == "input" else where


def _agreement(judged: Judgement) -> tuple[str, str]:
    counts = Counter(judged.verdicts)
    largest = max((t for t in judged.times_floor if not math.isnan(t)), default=math.nan)
    sentence = "The two runs agree to rounding."
    detail = (
        f"No pair exceeds {times_text(largest)} the floor that its format and depth explain; "
        f"{counts['rounding']} pairs compared"
    )
    more = f", {counts['uncompared']} could not be compared." if counts["uncompared"] else "."
    return sentence, detail + more


def _too_little(comparison: Comparison, judged: Judgement) -> tuple[str, str]:
    compared = sum(v != "uncompared" for v in judged.verdicts)
    total = len(comparison.pairs) + len(comparison.unmatched_reference)
    if compared == 0:
        sentence = "Nothing could be compared."
    else:
        sentence = f"Too little was compared for a verdict: {compared} of {total} tensors."
    return sentence, (
        f"{len(comparison.pairs) - compared} pairs could not be compared; "
        f"{len(comparison.unmatched_reference)} tensors are in the reference only, "
        f"{len(comparison.unmatched_candidate)} in the candidate only."
    )
