"""The verdict in words: one sentence to read aloud, two lines that say why."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from core.comparison import Comparison, Judgement, Pair
from core.numbers import count, error, times_floor
from language import say, say_many, sentences


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
    return _some(
        "{number} pair compared by statistics only, without values.",
        "{number} pairs compared by statistics only, without values.",
        sum(pair.summary is not None for pair in comparison.pairs),
    )


def _some(one: str, many: str, number: int) -> str:
    """A sentence about a number of pairs; nothing about none."""
    return say_many(one, many, number, number=count(number)) if number else ""


def _parting(comparison: Comparison, judged: Judgement, first: int) -> tuple[str, str]:
    pair, times = comparison.pairs[first], judged.times_floor[first]
    sentence = _parts if judged.verdict == "fault" else _drifts
    later = Counter(judged.verdicts[first + 1 :])
    parts = [
        _inputs(judged.inherited[first]),
        _some(
            "{number} pair before agrees to rounding.",
            "{number} pairs before agree to rounding.",
            sum(v == "rounding" for v in judged.verdicts[:first]),
        ),
        _some(
            "{number} later pair inherits the error.",
            "{number} pairs later inherit the error.",
            later["inherited"],
        ),
        _some(
            "{number} later pair adds error of its own.",
            "{number} pairs later add error of their own.",
            later["fault"],
        ),
        _by_statistics(comparison),
    ]
    return sentence(_place(pair), times), sentences(parts)


def _parts(place: str, times: float) -> str:
    if math.isnan(times):
        return say("The two runs part at {place}: the checksums differ.", place=place)
    if math.isinf(times):
        return say("The two runs part at {place}: it differs where rounding cannot.", place=place)
    return say(
        "The two runs part at {place}: {times} the rounding floor.",
        place=place,
        times=times_floor(times),
    )


def _drifts(place: str, times: float) -> str:
    if math.isnan(times):
        return say("The two runs drift apart at {place}: the checksums differ.", place=place)
    if math.isinf(times):
        return say(
            "The two runs drift apart at {place}: it differs where rounding cannot.", place=place
        )
    return say(
        "The two runs drift apart at {place}: {times} the rounding floor.",
        place=place,
        times=times_floor(times),
    )


def _inputs(handed: float) -> str:
    if math.isnan(handed):
        return say("What was handed to it is not recorded or not compared.")
    if handed == 0:
        return say("Its inputs are equal on both sides.")
    return say("Its inputs agree to within {times} the floor.", times=times_floor(handed))


def _place(pair: Pair) -> str:
    tensor = pair.reference
    where = tensor.operator or tensor.module_class or say("the model itself")
    if tensor.pass_ == "parameter":
        return say("the parameter {argument} of {where}", argument=tensor.argument, where=where)
    if tensor.pass_ == "gradient":
        return say("the gradient of {argument} in {where}", argument=tensor.argument, where=where)
    if tensor.pass_ == "update":
        return say("the update of {argument} in {where}", argument=tensor.argument, where=where)
    if tensor.pass_ == "backward":
        return say("{where}, backwards", where=where)
    return say("the input of {where}", where=where) if tensor.slot == "input" else where


def _agreement(comparison: Comparison, judged: Judgement) -> tuple[str, str]:
    counts = Counter(judged.verdicts)
    agreeing, largest = counts["rounding"], _largest(judged)
    tolerance = comparison.settings.tolerance
    if tolerance is not None:
        sentence = say("The two runs agree within the tolerance.")
        detail: str = say(
            "No element of {pairs} differs by more than {atol} plus {rtol} of the reference.",
            pairs=_pairs(agreeing),
            atol=error(tolerance.atol),
            rtol=error(tolerance.rtol),
        )
    elif largest == 0 and all(p.stats or not p.is_compared for p in comparison.pairs):
        sentence = say("The two runs are equal.")
        detail = say("Every value of {pairs} is the same on both sides.", pairs=_pairs(agreeing))
    else:
        sentence = say("The two runs agree to rounding.")
        detail = say(
            "No pair exceeds {times} the floor that its format and depth explain; {pairs} "
            "compared.",
            times=times_floor(largest),
            pairs=_pairs(agreeing),
        )
    left = _uncompared(counts["uncompared"])
    return sentence, sentences([detail, left, _by_statistics(comparison)])


def _pairs(number: int) -> str:
    return say_many("{number} pair", "{number} pairs", number, number=count(number))


def _uncompared(number: int) -> str:
    return _some(
        "{number} pair could not be compared.", "{number} pairs could not be compared.", number
    )


def _largest(judged: Judgement) -> float:
    return max((t for t in judged.times_floor if not math.isnan(t)), default=math.nan)


def _too_little(comparison: Comparison, judged: Judgement) -> tuple[str, str]:
    compared = sum(v != "uncompared" for v in judged.verdicts)
    total = len(comparison.pairs) + len(comparison.unmatched_reference)
    sentence = say("Nothing could be compared.")
    if compared:
        sentence = say(
            "Too little was compared for a verdict: {compared} of {total} tensors.",
            compared=compared,
            total=total,
        )
    return sentence, say(
        "{pairs} could not be compared; {ours} tensors are in the reference only, {theirs} in "
        "the candidate only.",
        pairs=_pairs(len(comparison.pairs) - compared),
        ours=count(len(comparison.unmatched_reference)),
        theirs=count(len(comparison.unmatched_candidate)),
    )
