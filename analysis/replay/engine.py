"""Replay of two runs: every call in float64 on each side's own inputs, under the reference's
attributes on both sides.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

import analysis.replay.functions  # noqa: F401  registers the reference functions
from analysis.replay.attributes import recorded, suggested
from analysis.replay.backward import replay_backward
from analysis.replay.calls import calls_of, key_of
from analysis.replay.fit import AT_FLOOR, UNFIT, Fit, fit, measured
from analysis.replay.inference import inferred
from analysis.replay.kinds import kind_of, of_one_family
from analysis.replay.operands import Read, read
from analysis.replay.padding import Place, counted, real_tokens
from analysis.replay.pairing import CallPair, is_sure, paired_calls
from analysis.replay.registry import FUNCTIONS, Function
from analysis.replay.result import Output, Replayed, sides
from analysis.replay.rows import planned
from analysis.replay.site import OperatorCall
from analysis.replay.wiring import Source, around, completions, filled, missing
from core.comparison import Comparison, Pair
from core.errors import LoadError
from core.runs import Array, Run
from core.tensors import TensorInfo
from language import say

# R of the reference beyond which a function is not taken to be what the operator computes.
TRUSTED = 3.0
# Combinations of other tensors tried for inputs that were not captured; fewer where it was in vain.
# Only the likeliest are worth fitting attributes for.
TRIES, FEWER, THOROUGH = 60, 10, 3


class Engine:
    """Replays call after call and remembers what it learnt of each operator on the way."""

    def __init__(
        self,
        comparison: Comparison,
        reference: Run,
        candidate: Run,
        *,
        turned: frozenset[str] = frozenset(),
    ) -> None:
        """`turned` are the candidate's square weights that it stores the other way round."""
        self.turned = turned
        self.comparison = comparison
        self.run_reference, self.run_candidate = reference, candidate
        self.reference, self.candidate = calls_of(reference), calls_of(candidate)
        self.real = real_tokens(self.reference.values())
        self.pair_of = {p.reference.id: p for p in comparison.pairs if is_sure(p)}
        self._fits: dict[tuple[str, ...], Fit] = {}
        self._kinds: dict[tuple[str, ...], str] = {}
        self._wires: dict[tuple[str, ...], Mapping[str, tuple[str, ...]]] = {}
        self._failures: Counter[tuple[str, ...]] = Counter()
        self._activations: dict[Place, list[TensorInfo]] = {}
        for t in reference.tensors.values():
            if t.pass_ == "forward" and t.size:
                self._activations.setdefault((t.step, t.rank), []).append(t)
        self._last: tuple[OperatorCall, Function, Read] | None = None

    def pairs(self) -> list[CallPair]:
        """The calls of both runs that belong together, in order; then the candidate's own."""
        return paired_calls(self.reference, self.candidate, self.pair_of)

    def call_of(self, tensor: TensorInfo) -> OperatorCall | None:
        """The reference's call that a tensor belongs to."""
        return self.reference.get(key_of(tensor))

    def replay(self, pair: CallPair) -> Replayed:
        """Both sides of one call; with a reason instead of outputs where it cannot be done."""
        lead = pair.reference or pair.candidate
        if lead is None or not lead.outputs:
            return Replayed.without(pair.reference, pair.candidate, say("no output was captured"))
        try:
            return self._replayed(pair, lead)
        except LoadError as error:
            return Replayed.without(
                pair.reference, pair.candidate, say("cannot be read: {error}", error=error)
            )

    def _replayed(self, pair: CallPair, lead: OperatorCall) -> Replayed:
        named = kind_of(lead.op or lead.module_class)
        known = self._kinds.get(_group(lead), named)
        function = FUNCTIONS.get(known)
        fitted = self._fitted(lead, function) if function else None
        doubtful = fitted is None or fitted.ratio > TRUSTED
        if doubtful and pair.reference and function and missing(pair.reference, function.kind):
            return self._wired(pair, pair.reference, function)
        if doubtful:
            other = self._inferred(lead, named)
            if other is not None:
                function, fitted = other
        if function is None or fitted is None:
            return Replayed.without(
                pair.reference, pair.candidate, say("no function reproduces it")
            )
        made = self._judged(pair, function, fitted)
        if made.outputs and all(map(_unlike, made.outputs)):
            return Replayed.without(
                pair.reference, pair.candidate, say("no function reproduces it")
            )
        return made

    def _wired(self, pair: CallPair, lead: OperatorCall, function: Function) -> Replayed:
        """A call whose inputs were not all captured, with what the reference proves they were."""
        key = (function.kind, *_group(lead))
        known = self._wires.get(key, {})
        near = around(lead, self._activations.get((lead.step, lead.rank), []))
        tries = FEWER if self._failures[key] > 1 else TRIES
        ways = itertools.islice(completions(lead, function.kind, near, known), tries)
        for number, sources in enumerate(ways):
            fitted = self._proven(filled(lead, sources), function, thorough=number < THOROUGH)
            if fitted is not None:
                self._wires[key] = {n: s.template for n, s in sources.items()}
                candidate = self._filled_alike(pair.candidate, sources)
                return self._judged(CallPair(filled(lead, sources), candidate), function, fitted)
        self._failures[key] += 1
        return Replayed.without(pair.reference, pair.candidate, say("its inputs were not captured"))

    def _proven(self, call: OperatorCall, function: Function, *, thorough: bool) -> Fit | None:
        """The fit of a completed call at its floor; unlikely ones are not fitted for long."""
        try:
            if not thorough:
                values = self._read(call, function)
                start = suggested(function, call.attributes, _name(call))
                known = Fit({**start, **recorded(function, call.attributes)}, (), "", 0.0)
                kept = self._fits.get((function.kind, *_group(call)), known)
                if _ratio(values, function, kept, self._valid(values)) > AT_FLOOR:
                    return None
            fitted = self._fitted(call, function)
        except ValueError:
            return None  # the values cannot be turned to that shape
        return fitted if fitted is not None and fitted.ratio <= AT_FLOOR else None

    def _filled_alike(
        self, call: OperatorCall | None, sources: Mapping[str, Source]
    ) -> OperatorCall | None:
        """The candidate's call with the counterparts of the reference's sources."""
        found = {}
        for name, source in sources.items():
            pair = self.pair_of.get(source.tensor.id)
            if pair is None:
                return None
            found[name] = Source(pair.candidate, source.shape)
        return filled(call, found) if call else None

    def _fitted(self, call: OperatorCall, function: Function) -> Fit | None:
        """The fit of this operator in another layer or step where it holds here, else a new one."""
        key = (function.kind, *_group(call))
        values = self._read(call, function)
        valid = self._valid(values)
        kept = self._fits.get(key)
        if kept is not None:
            ratio = _ratio(values, function, kept, valid)
            if ratio <= max(AT_FLOOR, kept.ratio):
                return replace(kept, ratio=ratio)
        start = suggested(function, call.attributes, _name(call))
        found = fit(values, function, recorded(function, call.attributes), valid, start)
        if found is not None and found.ratio <= TRUSTED:
            self._fits[key] = found
        return found

    def _inferred(self, call: OperatorCall, named: str) -> tuple[Function, Fit] | None:
        """The function that reproduces an operator whose name says nothing or misleads."""
        key = _group(call)
        if key not in self._kinds:
            kind = "" if self._has_parts(call) else inferred(self._read_whole(call), self._valid_of)
            self._kinds[key] = kind or named
        function = FUNCTIONS.get(self._kinds[key])
        fitted = self._fitted(call, function) if function and function.kind != named else None
        return (function, fitted) if function and fitted else None

    def _has_parts(self, call: OperatorCall) -> bool:
        """Whether calls of modules or operators inside this one were captured."""
        prefix = f"{call.module}." if call.module else ""
        return not call.op and any(
            c is not call and (c.module.startswith(prefix) or (c.module == call.module and c.op))
            for c in self.reference.values()
        )

    def _judged(self, pair: CallPair, function: Function, fitted: Fit) -> Replayed:
        a = self._read(pair.reference, function) if pair.reference else None
        own = self._candidates_own(pair, function)
        b = self._read(pair.candidate, own) if pair.candidate and pair.candidate.outputs else None
        attributes = (
            fitted.attributes
            if own is function
            else {n: v for n, v in fitted.attributes.items() if n in own.options}
        )
        if a and b:
            b = self._completed(b, a, own, replace(fitted, attributes=attributes))
        if b and self.turned.intersection(t.id for t in b.call.parameters.values()):
            attributes = {**attributes, "transposed": True}
        found = []
        for name in dict.fromkeys((*(a.actual if a else ()), *(b.actual if b else ()))):
            left = sides(a, function, fitted.attributes, fitted.operands, name, self._valid_of)
            right = sides(b, own, attributes, fitted.operands, name, self._valid_of)
            if left or right:
                found.append(Output.of(name, left, right))
        forward = Replayed(
            reference=pair.reference,
            candidate=pair.candidate,
            kind=function.kind,
            function=function,
            own=own,
            fit=fitted,
            outputs=tuple(found),
        )
        return replace(forward, gradients=replay_backward(forward, (a, b)))

    def _completed(self, b: Read, a: Read, function: Function, fitted: Fit) -> Read:
        """The candidate with parameters that only the reference's dump holds, if it used them.

        Values decide: with them it is at its floor, and without it is not.
        """
        lacking = {n: v for n, v in a.given.parameters.items() if n not in b.given.parameters}
        if not lacking or _ratio(b, function, fitted, self._valid(b)) <= AT_FLOOR:
            return b
        given = replace(b.given, parameters={**b.given.parameters, **lacking})
        whole = replace(b, given=given, answered={})
        at_floor = _ratio(whole, function, fitted, self._valid(whole)) <= AT_FLOOR
        return whole if at_floor else b

    def _candidates_own(self, pair: CallPair, function: Function) -> Function:
        """The candidate's function: the reference's, unless it quantises or splits instead."""
        if pair.candidate is None or pair.reference is None:
            return function
        kind = kind_of(_name(pair.candidate))
        same = of_one_family(kind, function.kind) and kind in FUNCTIONS
        return FUNCTIONS[kind] if same else function

    def _read(self, call: OperatorCall, function: Function) -> Read:
        """Read a call for a function; the last one is kept, for it is fitted and then judged."""
        last = self._last
        if last is None or last[0] is not call or last[1] is not function:
            values = read(call, function, planned(call, function, self._worst(call)))
            self._last = last = (call, function, values)
        return last[2]

    def _read_whole(self, call: OperatorCall) -> Read:
        return self._read(call, FUNCTIONS["identity"])

    def _worst(self, call: OperatorCall) -> list[int]:
        """Flat indices of the worst elements of the call's outputs."""
        pairs = (self.pair_of.get(t.id) for t in call.outputs.values())
        return [_worst_index(p) for p in pairs if p is not None and p.stats is not None]

    def _valid(self, values: Read) -> dict[str, Array]:
        return {n: self._valid_of(values, n) for n in values.actual}

    def _valid_of(self, values: Read, name: str) -> Array:
        place: Place = (values.call.step, values.call.rank)
        return values.rows.kept(counted(values.tensors[name].shape, self.real.get(place)))


def _unlike(output: Output) -> bool:
    """Whether neither side does what the function says, so that the function is the wrong one."""
    parts = [p for p in (output.reference, output.candidate) if p is not None]
    return output.reference is not None and all(TRUSTED < p.local.ratio < np.inf for p in parts)


def _worst_index(pair: Pair) -> int:
    index = pair.stats.max_abs_error.index if pair.stats else 0
    return int(index) if isinstance(index, int) and index >= 0 else 0


def _name(call: OperatorCall) -> str:
    return call.op or call.module_class


def _group(call: OperatorCall) -> tuple[str, ...]:
    """What calls of one operator in different layers and steps have in common."""
    return (re.sub(r"\d+", "#", call.module), re.sub(r"_\d+$", "", call.op), call.module_class)


def _ratio(values: Read, function: Function, kept: Fit, valid: Mapping[str, Array]) -> float:
    try:
        found = measured(values, function, kept.attributes, valid, kept.operands)
    except UNFIT:
        return np.inf
    return max((each.ratio for each in found.values()), default=np.inf)
