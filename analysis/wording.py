"""The verdict in words: one sentence to read aloud, two lines that say why."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from core.comparison import Comparison, Judgement, Pair
from core.numbers import count, error, times_floor


def spoken(comparison: Comparison, judged: Judgement) -> Judgement:
    """The judgement with its sentence and detail filled in."""
    if judged.first_divergence is not None:
        sentence, detail = _parting(comparison, judged, judged.first_divergence)
    elif judged.verdict == "uncompared":
        sentence, detail = _too_little(comparison, judged)
    else:
        sentence, detail = _agreement(comparison, judged)
    return replace(judged, sentence=sentence, detail=detail)


def _by_statistics(comparison: Comparison) -> str:
    """What to say when dumps without values were compared; such pairs may hide an error."""
    known = sum(pair.summary is not None for pair in comparison.pairs)
    return f" {_pairs(known)} compared by statistics only, without values." if known else ""


def _how_far(value: float) -> str:
    if math.isnan(value):
        return "the checksums differ"
    if math.isinf(value):
        return "it differs where rounding cannot"
    return f"{times_floor(value)} the rounding floor"


def _parting(comparison: Comparison, judged: Judgement, first: int) -> tuple[str, str]:
    pair = comparison.pairs[first]
    verb = "part" if judged.verdict == "fault" else "drift apart"
    sentence = f"The two runs {verb} at {_place(pair)}: {_how_far(judged.times_floor[first])}."
    before = sum(v == "rounding" for v in judged.verdicts[:first])
    later = Counter(judged.verdicts[first + 1 :])
    parts = [
        _inputs(judged.inherited[first]),
        f"{_pairs(before)} before agree to rounding." if before else "",
        f"{_pairs(later['inherited'])} later inherit the error." if later["inherited"] else "",
        f"{_pairs(later['fault'])} later add error of their own." if later["fault"] else "",
        _by_statistics(comparison).strip(),
    ]
    return sentence, " ".join(p for p in parts if p)


def _pairs(number: int) -> str:
    return "1 pair" if number == 1 else f"{count(number)} pairs"


def _inputs(handed: float) -> str:
    if math.isnan(handed):
        return "What was handed to it is not recorded or not compared."
    if handed == 0:
        return "Its inputs are equal on both sides."
    return f"Its inputs agree to within {times_floor(handed)} the floor."


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


def _agreement(comparison: Comparison, judged: Judgement) -> tuple[str, str]:
    counts = Counter(judged.verdicts)
    more = f" {_pairs(counts['uncompared'])} could not be compared." if counts["uncompared"] else ""
    more += _by_statistics(comparison)
    tolerance = comparison.settings.tolerance
    if tolerance is not None:
        return "The two runs agree within the tolerance.", (
            f"No element of {_pairs(counts['rounding'])} differs by more than "
            f"{error(tolerance.atol)} plus {error(tolerance.rtol)} of the reference.{more}"
        )
    largest = max((t for t in judged.times_floor if not math.isnan(t)), default=math.nan)
    if largest == 0 and all(p.stats or not p.is_compared for p in comparison.pairs):
        return "The two runs are equal.", (
            f"Every value of {_pairs(counts['rounding'])} is the same on both sides.{more}"
        )
    return "The two runs agree to rounding.", (
        f"No pair exceeds {times_floor(largest)} the floor that its format and depth explain; "
        f"{_pairs(counts['rounding'])} compared.{more}"
    )


def _too_little(comparison: Comparison, judged: Judgement) -> tuple[str, str]:
    compared = sum(v != "uncompared" for v in judged.verdicts)
    total = len(comparison.pairs) + len(comparison.unmatched_reference)
    if compared == 0:
        sentence = "Nothing could be compared."
    else:
        sentence = f"Too little was compared for a verdict: {compared} of {total} tensors."
    return sentence, (
        f"{_pairs(len(comparison.pairs) - compared)} could not be compared; "
        f"{count(len(comparison.unmatched_reference))} tensors are in the reference only, "
        f"{count(len(comparison.unmatched_candidate))} in the candidate only."
    )
