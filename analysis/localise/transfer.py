"""Outputs that cannot be replayed: their error must have grown out of what came before.

With less in the dump than a replay needs, an output is judged by the errors around it: those handed
to its call, those just before it, and that of the same operator one block earlier. Honest operators
hand on at most 2.6 (linear, 99th percentile) to 3.2 (softmax) times their inputs' error, and honest
blocks let it grow by less than half again (measured, numerics.md §3.5).
"""

from __future__ import annotations

import bisect
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.floor import block_of
from analysis.localise.apart import Difference, difference
from analysis.replay.engine import Engine
from analysis.replay.kinds import kind_of
from analysis.replay.noise import is_narrow
from analysis.replay.padding import Place
from analysis.replay.pairing import CallPair
from analysis.replay.site import OperatorCall
from core.comparison import Pair
from core.tensors import TensorInfo
from metrics import formats

# Error handed on by one operator, and the growth from one block to the same operator of the next.
GAIN, GROWTH = 3.0, 2.25
# Floors that a first operator, and a whole first block seen only at its end, may show honestly: a
# block of quantised layers makes 10 floors of its storage format.
FIRST, FIRST_BLOCK = 5.0, 14.0
# Noise of quantisation is spread evenly over tokens; a first block that is not may show less.
FIRST_UNEVEN, UNEVEN = 6.0, 2.3
# What a block of int4 layers adds against one in 16 bits (measured up to 0.21).
QUANTISED = 0.25
_WINDOW = 10
_SEVERAL = 4  # tensors of a block from which on it is seen inside, not only at its end
_GAP = 4  # calls looked back for one that left nothing
# From the first router of a step on, this share of the rows does not count: a tie of two experts
# falls either way, and gives its token another path, honestly. One of 64 tokens did in a pair of
# ours, whose router weights differed by 0.9 %.
_FLIPPED = 0.1
_ROUTED = frozenset({"route", "expert", "combine"})
# Error of a linear layer that one side alone quantises (numerics.md §3.1: e4m3, int4 in groups).
_REQUANTISED = {"quant_linear": 2.65e-2, "int4_linear": 0.16}


@dataclass(frozen=True, slots=True)
class Grown:
    """An output whose error nothing before it explains; `times` is its excess over the limit.

    `before` is the last tensor seen before it. The fault lies among the operators of `zone`, which
    is empty where the call's own inputs were seen. `level` is the relative error that was to be
    expected.
    """

    pair: Pair
    call: OperatorCall
    times: float
    before: TensorInfo | None
    zone: tuple[str, ...]
    level: float


def grown(
    engine: Engine, floors: Mapping[str, float], proven: frozenset[str], stop: int
) -> Iterator[Grown]:
    """The first unexplained tensor of each step and rank.

    Outputs not `proven` by replay are judged, and whatever follows a gap in the dump. Nothing from
    position `stop` of the execution order on is: a proven fault explains it.
    """
    walk = _Walk(engine, floors)
    seen: dict[Place, list[Pair]] = {}
    done: set[Place] = set()
    for pair in engine.pair_of.values():
        tensor = pair.reference
        place = (tensor.step, tensor.rank)
        if not is_activation(pair) or place in done or tensor.order >= stop:
            continue
        earlier = seen.setdefault(place, [])
        unproven = tensor.slot != "input" and tensor.id not in proven
        if unproven or walk.is_after_gap(pair, proven):
            found = walk.judged(pair, earlier)
            if found is not None:
                done.add(place)
                yield found
        earlier.append(pair)


class _Walk:
    """Errors along the execution order, each read once and only if a judgement asks for it."""

    def __init__(self, engine: Engine, floors: Mapping[str, float]) -> None:
        self.engine, self.floors = engine, floors
        self._known: dict[str, Difference] = {}
        seen = (p for p in engine.pair_of.values() if is_activation(p))
        self._blocks = Counter(block_of(p.reference.module) for p in seen)
        self._calls: dict[Place, list[tuple[int, OperatorCall]]] = {}
        for call in engine.reference.values():
            self._calls.setdefault((call.step, call.rank), []).append((call.order, call))
        for calls in self._calls.values():
            calls.sort(key=_position)
        self._noise: dict[Place, float] = {}
        for pair in engine.pairs():
            for call in filter(None, (pair.reference, pair.candidate)):
                if pair.reference and _requantised(pair):
                    place = (pair.reference.step, pair.reference.rank)
                    noise = _REQUANTISED.get(kind_of(call.op or call.module_class), 0.0)
                    self._noise[place] = max(noise, self._noise.get(place, 0.0))
        self._routed = {
            place: min((order for order, call in calls if _routes(call)), default=1 << 62)
            for place, calls in self._calls.items()
        }

    def is_after_gap(self, pair: Pair, proven: frozenset[str]) -> bool:
        """Whether an operator shortly before an input left no output, or one that no replay proves.

        Otherwise what is handed in was made, or merely gathered, by operators that are proven.
        """
        tensor = pair.reference
        calls = self._calls.get((tensor.step, tensor.rank), [])
        end = bisect.bisect_left(calls, tensor.order, key=_position)
        near = (call for _, call in calls[max(0, end - _GAP) : end])
        return any(
            not c.outputs or any(t.id not in proven for t in c.outputs.values()) for c in near
        )

    def of(self, pair: Pair) -> Difference:
        """The difference of a pair."""
        if pair.reference.id not in self._known:
            tensor = pair.reference
            routed = tensor.order >= self._routed.get((tensor.step, tensor.rank), 1 << 62)
            spared = _FLIPPED if routed else 0.0
            self._known[tensor.id] = difference(self.engine, pair, spared)
        return self._known[pair.reference.id]

    def judged(self, pair: Pair, earlier: Sequence[Pair]) -> Grown | None:
        """Whether a tensor's error exceeds what came before it explains."""
        call, floor = self.engine.call_of(pair.reference), self._floor(pair)
        error = self.of(pair).error
        if call is None or math.isnan(error) or not floor:
            return None
        handed = self._handed(call) if pair.reference.slot != "input" else None
        limit = self._limit(pair, earlier, handed)
        if error <= limit:
            return None
        before = earlier[-1].reference if earlier else None
        times = error / limit if limit else math.inf
        zone = () if handed is not None else self._zone(before, call)
        return Grown(pair, call, times, before, zone, limit / GAIN)

    def _zone(self, before: TensorInfo | None, call: OperatorCall) -> tuple[str, ...]:
        """The operators from the one last seen to this one, as far as anything of them is known."""
        calls = self._calls.get((call.step, call.rank), [])
        start = before.order if before else -1
        between = [c.operator for order, c in calls if start <= order <= call.order]
        first = [before.operator] if before else []
        return tuple(dict.fromkeys((*first, *between, call.operator)))

    def _floor(self, pair: Pair) -> float:
        """The floor by formats and depth, and what quantising on one side alone does."""
        floor = self.floors[pair.reference.id]
        noise = self._noise.get((pair.reference.step, pair.reference.rank), 0.0)
        return max(floor, noise) if floor else floor

    def _handed(self, call: OperatorCall) -> float | None:
        """The largest error among the float inputs as captured; None where there are none."""
        pairs = [self.engine.pair_of.get(t.id) for t in call.inputs.values() if "float" in t.dtype]
        errors = [self.of(p).error for p in pairs if p is not None and p.stats is not None]
        return max(errors) if errors else None

    def _limit(self, pair: Pair, earlier: Sequence[Pair], handed: float | None) -> float:
        """Relative error up to which a tensor is explained."""
        floor = self._floor(pair)
        if handed is not None:
            return GAIN * math.hypot(handed, FIRST / GAIN * floor)
        near = [p for p in earlier[-_WINDOW:] if not math.isnan(self.of(p).error)]
        level = max((self.of(p).error for p in near), default=0.0)
        previous = _one_block_before(pair, earlier)
        if previous is None:
            return max(self._first(pair, near, level), GAIN * level)
        before = self.of(previous).error
        if before == 0 == level:
            return floor  # the same kernels: the block before was equal to the last bit
        # Few rows scatter: a decoding step has one for each sample.
        rows = max(1, pair.reference.size // max(1, pair.reference.shape[-1]))
        return GROWTH * (1 + 2 / math.sqrt(rows)) * math.hypot(max(before, level), floor)

    def _first(self, pair: Pair, near: Sequence[Pair], level: float) -> float:
        """Relative error that a tensor may show which nothing like it came before."""
        floor = self._floor(pair)
        block = block_of(pair.reference.module)
        inside = any(block_of(p.reference.module) == block for p in near)
        if level > 0 or block is None or inside or self._blocks[block] > _SEVERAL:
            return FIRST * floor
        uneven = self.of(pair).uneven
        if uneven > UNEVEN and math.isfinite(uneven):
            return FIRST_UNEVEN * floor
        narrow = is_narrow(pair.reference.dtype) and is_narrow(pair.candidate.dtype)
        return max(FIRST_BLOCK * floor, QUANTISED if narrow else 0.0)


def _requantised(pair: CallPair) -> bool:
    """Whether the two calls of a pair are linear layers in different number formats."""
    sides = (pair.reference, pair.candidate)
    kinds = {kind_of(call.op or call.module_class) for call in sides if call is not None}
    return len(kinds) > 1 and bool(kinds & _REQUANTISED.keys())


def _routes(call: OperatorCall) -> bool:
    return kind_of(call.op or call.module_class) in _ROUTED


def _position(placed: tuple[int, OperatorCall]) -> int:
    return placed[0]


def is_activation(pair: Pair) -> bool:
    """Float inputs and outputs: what is handed in shows an operator whose output is missing."""
    t = pair.reference
    kinds = {formats.kind(t.dtype), formats.kind(pair.candidate.dtype)}
    codes = {d for d in (t.dtype, pair.candidate.dtype) if d.startswith("float8")}
    comparable = kinds == {"float"} and (not codes or t.dtype == pair.candidate.dtype)
    return t.pass_ == "forward" and comparable and pair.stats is not None


def _one_block_before(pair: Pair, earlier: Sequence[Pair]) -> Pair | None:
    """The same tensor of the same operator in the block before."""
    tensor = pair.reference
    block = block_of(tensor.module)
    if not block:
        return None
    module = re.sub(rf"(?<![\w]){block}(?![\w])", str(block - 1), tensor.module, count=1)
    same = (module, tensor.op, tensor.slot, tensor.argument, tensor.call)
    for each in reversed(earlier):
        t = each.reference
        if (t.module, t.op, t.slot, t.argument, t.call) == same:
            return each
    return None
