"""Replay of backward passes: float64 gradients against dumped ones, with a Monte-Carlo floor."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from analysis.replay.fit import UNFIT
from analysis.replay.functions.gradients import CANCELLED, GRADIENTS
from analysis.replay.local import local_error
from analysis.replay.noise import ulp
from analysis.replay.operands import Read
from analysis.replay.registry import Answer, Attributes, Operands
from analysis.replay.result import Output, Part, Replayed
from analysis.replay.site import OperatorCall, Side
from core.runs import Array
from core.tensors import TensorInfo
from metrics import formats

# Elements of the largest tensor of a call whose backward pass is replayed.
LARGEST = 1 << 22
_SAMPLES = 3
_SELF_ACCUMULATED = frozenset({"float32", "float64"})
_ONE_ROUNDING = 0.4247  # rms relative error of one rounding, in unit roundoffs


def replay_backward(
    forward: Replayed, reads: tuple[Read | None, Read | None]
) -> tuple[Output, ...]:
    """The gradients that a replayed call hands on, on both sides; none where it has no backward."""
    if forward.fit is None or forward.kind not in GRADIENTS:
        return ()
    made = [
        _parts(values, forward.kind, forward.fit.attributes) if values else {} for values in reads
    ]
    names = dict.fromkeys((*made[0], *made[1]))
    return tuple(Output.of(n, made[0].get(n), made[1].get(n)) for n in names)


def _dumped(call: OperatorCall) -> dict[str, TensorInfo]:
    """The gradients of a call by slot, in the order in which they are made."""
    of_inputs = {f"input.{n}": t for n, t in call.gradients_out.items()}
    return of_inputs | {f"parameter.{n}": t for n, t in call.parameter_gradients.items()}


def _parts(values: Read, kind: str, attributes: Attributes) -> dict[str, Part]:
    call, dumped = values.call, _dumped(values.call)
    if not dumped or not call.gradients_in or values.rows.chosen is not None:
        return {}
    into = [call.value(t) for t in call.gradients_in.values()]
    try:
        expected = GRADIENTS[kind](values.given, attributes, into)
        spread = _spread(values.given, kind, attributes, into, _coarsest(call, dumped))
    except UNFIT:
        return {}
    found = {}
    for name, tensor in dumped.items():
        if name in expected and expected[name].shape == tensor.shape:
            found[name] = _part(values, tensor, into, expected[name], spread[name])
    return found


def _coarsest(call: OperatorCall, dumped: Mapping[str, TensorInfo]) -> str:
    """The coarsest format among a call's gradients and outputs: autocast computes in it."""
    known = (*dumped.values(), *call.gradients_in.values(), *call.outputs.values())
    floats = [t.dtype for t in known if formats.kind(t.dtype) == "float"]
    return functools.reduce(formats.coarser_of, floats)


def _part(
    values: Read, tensor: TensorInfo, into: list[Array], expected: Array, spread: Array
) -> Part:
    actual = values.call.value(tensor)
    floor = ulp(expected, tensor.dtype) ** 2 / 12 + spread
    answer = Answer(value=expected, steps=spread)
    valid = np.ones(actual.shape, bool)
    local = local_error(answer, actual, floor, valid, tensor.dtype)
    handed = {f"gradient.{n}": g for n, g in enumerate(into)}
    side = Side(
        call=values.call,
        tensor=tensor,
        given=replace(values.given, inputs={**values.given.inputs, **handed}),
        actual=actual,
        answer=answer,
        variance=floor,
        local=local.error,
        ratio=local.ratio,
        worst=local.worst,
    )
    return Part(side, local, valid)


def _spread(
    given: Operands, kind: str, attributes: Attributes, into: list[Array], dtype: str
) -> Mapping[str, Array]:
    """Variance of the gradients when every operand is rounded once to their format.

    The backward-error Monte-Carlo floor; of few samples, so half of it is each element's own and
    half the average along its row. Twice the operands' rounding, since values in between
    (probabilities, their gradients) are rounded as well. Where the format also accumulates
    (float32), times K / 4 for sums over K.
    """
    unit = formats.format_of(dtype).unit_roundoff * _ONE_ROUNDING * np.sqrt(2)
    if dtype in _SELF_ACCUMULATED:
        longest = max(max(x.shape, default=1) for x in (*into, *given.inputs.values()))
        unit *= np.sqrt(max(1.0, longest / 4))
    rng = np.random.default_rng(0)

    def shaken(x: Array) -> Array:
        return x * (1 + unit * rng.standard_normal(x.shape)) if x.dtype.kind == "f" else x

    plain = GRADIENTS[kind](given, attributes, into)
    total = {name: np.zeros(value.shape) for name, value in plain.items()}
    for _ in range(_SAMPLES):
        moved = replace(
            given,
            inputs={n: shaken(v) for n, v in given.inputs.items()},
            parameters={n: shaken(v) for n, v in given.parameters.items()},
        )
        for name, value in GRADIENTS[kind](moved, attributes, [shaken(g) for g in into]).items():
            total[name] += (value - plain[name]) ** 2 / _SAMPLES
    lost = CANCELLED[kind](given, attributes, into) if kind in CANCELLED else {}
    own = formats.format_of(dtype).unit_roundoff ** 2
    return {
        n: (v + v.mean(-1, keepdims=True)) / 2 + own * lost.get(n, 0.0) for n, v in total.items()
    }
