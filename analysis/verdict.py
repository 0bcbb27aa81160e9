"""Rounding or fault, and where it starts: what the error of each pair says given its inputs.

From the statistics of outputs and inputs alone, for comparisons without their dumps; where the
dumps are there, a diagnosis by replay decides. Every page, command and report asks `judge` and
nothing else here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from analysis import summaries, wording
from analysis.floor import floors
from core.comparison import Comparison, Judgement, Pair, Verdict
from core.findings import Diagnosis, FloorKind
from core.tensors import TensorInfo
from metrics import METRICS

# How many times the floor a pair may show before rounding no longer explains it.
LIMIT = 6.0
# And how many it may show after inputs that do not explain them, which is stronger evidence.
JUMP = 4.0
# An honest operator hands on at most this multiple of its inputs' error (the 99th percentile of
# measured gains is 2.6 for a linear layer and 3.2 for softmax).
GAIN = 3.0
# Under this share of compared tensors a comparison never passes plainly.
THIN_COVERAGE = 0.5

_ORDER: Sequence[Verdict] = ("fault", "watch")


class _Flow:
    """What is known while walking in execution order: who is off already, and who made what."""

    def __init__(self) -> None:
        self._places: set[tuple[int | None, int | None]] = set()
        self._around: set[tuple[object, ...]] = set()  # calls of modules that hold what is off
        self._made: dict[tuple[object, ...], Verdict] = {}

    def explains(self, tensor: TensorInfo) -> bool:
        """Whether an earlier pair of the same step and rank is off, for this one to inherit."""
        return (tensor.step, tensor.rank) in self._places

    def holds_child_of(self, tensor: TensorInfo) -> bool:
        """Whether something inside the same module is already off."""
        return _call(tensor) in self._around

    def made(self, pair: Pair) -> Verdict | None:
        """Verdict of the output that this input is: same place, size, extremes, worst error."""
        return self._made.get(_identity(pair))

    def add(self, pair: Pair, verdict: Verdict) -> None:
        """Remember a judged pair."""
        tensor = pair.reference
        if verdict in _ORDER or (verdict == "inherited" and self._places):
            self._places.add((tensor.step, tensor.rank))
            parents = accumulate(tensor.operator.split(".")[:-1], "{}.{}".format)
            for parent in ("", *parents):
                self._around.add((tensor.step, tensor.rank, parent, tensor.call))
        if is_output(pair.reference):
            self._made[_identity(pair)] = "inherited" if verdict in _ORDER else verdict


def _identity(pair: Pair) -> tuple[object, ...]:
    tensor, stats = pair.reference, pair.stats
    place = (tensor.step, tensor.rank, tensor.size)
    if stats is None:
        said = pair.summary
        return (*place, tensor.id if said is None else said)
    worst, side = stats.max_abs_error, stats.reference
    return (*place, stats.equal, worst.value, worst.index, side.minimum, side.maximum)


def judge(comparison: Comparison, diagnosis: Diagnosis | None = None) -> Judgement:
    """Verdict of every pair and of the whole; with a diagnosis, its findings decide.

    Uncompared: nothing in common. Rounding: within `LIMIT` times the floor (with a tolerance of the
    user's: no mismatch). An output that exceeds what an honest operator makes of its inputs' error
    is a fault, from `JUMP` times the floor on; one that only crept over the limit is
    watch; what creeps over it after an earlier fault, has inputs beyond it, or contains what is off
    is inherited. A parameter is nobody's output: beyond the limit it is a fault itself. What only
    statistics show is never more than watch. First divergence is the first fault in execution
    order, else the first watch.
    """
    pairs = comparison.pairs
    limits = floors(pairs)
    times = tuple(_times_floor(p, f) for p, f in zip(pairs, limits, strict=True))
    inherited = _inherited(pairs, times, limits)
    verdicts = _verdicts(comparison, times, inherited)
    first = next((verdicts.index(v) for v in _ORDER if v in verdicts), None)
    verdict = _overall(comparison, verdicts)
    judged = Judgement(
        verdict=verdict,
        first_divergence=first,
        floors=limits,
        times_floor=times,
        inherited=inherited,
        added=tuple(map(_added, times, inherited)),
        verdicts=verdicts,
        sentence="",
        detail="",
        floor_kinds=tuple(map(_floor_kind, limits)),
    )
    judged = wording.spoken(comparison, judged)
    if diagnosis is None:
        return judged
    from analysis.diagnosed import diagnosed  # all detectors come with it: a second of every start

    return diagnosed(comparison, judged, diagnosis)


def _floor_kind(floor: float) -> FloorKind:
    return "depth" if floor else "exact"


def is_output(tensor: TensorInfo) -> bool:
    """Whether a tensor is made by its operator, as against handed in."""
    return tensor.slot in ("output", "value") or tensor.pass_ in ("gradient", "update")


def _times_floor(pair: Pair, floor: float) -> float:
    if pair.stats is None:
        return summaries.times_floor(pair, floor)
    if pair.stats.unmatched_nonfinite:
        return math.inf
    error = METRICS["relative_l2"](pair.stats)
    if floor == 0:
        return 0.0 if pair.stats.equal == pair.stats.count else math.inf
    return error / floor


def _inherited(
    pairs: Sequence[Pair], times: Sequence[float], limits: Sequence[float]
) -> tuple[float, ...]:
    """Largest error handed to the same call, in units of the output's own floor; else NaN.

    An error passes from one format to another as a relative error, so inputs in bf16 may hand a
    float32 output thousands of its floors without anyone being at fault.
    """
    handed: dict[tuple[object, ...], float] = {}
    for pair, value, floor in zip(pairs, times, limits, strict=True):
        error = 0.0 if value == 0 else value * floor if floor else math.inf
        if not is_output(pair.reference) and not math.isnan(value):
            for key in _feeds(pair.reference):
                handed[key] = max(error, handed.get(key, 0.0))
    return tuple(
        _ratio(handed.get(_fed_by(p.reference), math.nan), floor)
        if is_output(p.reference)
        else math.nan
        for p, floor in zip(pairs, limits, strict=True)
    )


def _ratio(error: float, floor: float) -> float:
    """How many floors an error is; where nothing but equality will do, none or infinitely many."""
    return error / floor if floor else error if error == 0 or math.isnan(error) else math.inf


def _call(tensor: TensorInfo) -> tuple[object, ...]:
    return (tensor.step, tensor.rank, tensor.operator, tensor.call)


def _feeds(tensor: TensorInfo) -> list[tuple[object, ...]]:
    """Passes of its call that a tensor is handed to: activations and weights also go backwards."""
    backward = [(*_call(tensor), "backward")]
    return backward if tensor.pass_ == "backward" else [(*_call(tensor), "forward"), *backward]


def _fed_by(tensor: TensorInfo) -> tuple[object, ...]:
    backward = tensor.pass_ in ("backward", "gradient", "update")
    return (*_call(tensor), "backward" if backward else "forward")


def _added(times: float, inherited: float) -> float:
    """What the operator put on top, as errors add in squares; NaN for unknown inputs."""
    if math.isnan(times) or math.isnan(inherited) or math.isinf(inherited):
        return math.nan
    return math.sqrt(max(0.0, times * times - inherited * inherited))


def _verdicts(
    comparison: Comparison, times: Sequence[float], inherited: Sequence[float]
) -> tuple[Verdict, ...]:
    flow = _Flow()
    verdicts: list[Verdict] = []
    for pair, total, handed in zip(comparison.pairs, times, inherited, strict=True):
        verdict: Verdict = "rounding"
        if not pair.is_compared:
            verdict = "uncompared"
        elif _is_off(comparison, pair, total, handed):
            verdict = _verdict(pair, total, handed, flow)
        if pair.summary is not None and verdict == "fault":
            verdict = "watch"  # statistics show that something is off, not what the values are
        flow.add(pair, verdict)
        verdicts.append(verdict)
    return tuple(verdicts)


def _is_off(comparison: Comparison, pair: Pair, total: float, handed: float) -> bool:
    if pair.stats is None and math.isnan(total):
        return True  # checksums that differ, and nothing else is known
    if comparison.settings.tolerance is not None and pair.stats is not None:
        return pair.stats.mismatches > 0
    return total > LIMIT or (total > JUMP and total > GAIN * math.hypot(handed, 1.0))


def _verdict(pair: Pair, total: float, handed: float, flow: _Flow) -> Verdict:
    """Verdict of a pair that is off."""
    tensor = pair.reference
    if tensor.pass_ == "parameter":
        return "fault"
    if not is_output(tensor):
        return flow.made(pair) or ("inherited" if flow.explains(tensor) else "fault")
    if math.isnan(handed):
        return "inherited" if flow.explains(tensor) else "fault"
    if flow.holds_child_of(tensor):
        return "inherited"
    if total > GAIN * math.hypot(handed, 1.0):
        return "fault"
    return "inherited" if handed > LIMIT or flow.explains(tensor) else "watch"


def _overall(comparison: Comparison, verdicts: Sequence[Verdict]) -> Verdict:
    for verdict in _ORDER:
        if verdict in verdicts:
            return verdict
    compared = sum(v != "uncompared" for v in verdicts)
    total = len(verdicts) + len(comparison.unmatched_reference)
    if compared == 0 or compared < THIN_COVERAGE * total:
        return "uncompared"
    return "rounding"
