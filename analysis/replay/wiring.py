"""Inputs that were not captured, found among the other tensors of the run.

What an operator was handed is, as a rule, what another one made: the tensors that bring the
reference to its floor are the operands, and nothing else is likely to. Values decide, never names;
names only order the search, since what held in one layer holds in the next.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from analysis.replay.site import OperatorCall
from core.tensors import TensorInfo

# Arguments that each kind needs, in order; those that are captured stay.
_ARGUMENTS: Mapping[str, int] = {
    "linear": 1,
    "row_linear": 1,
    "lora_linear": 1,
    "int4_linear": 1,
    "quant_linear": 2,
    "rms_norm": 1,
    "layer_norm": 1,
    "activation": 1,
    "act_mul": 1,
    "identity": 1,
    "add": 2,
    "mul": 2,
    "rope": 3,
    "attention": 4,
    "matmul": 2,
    "masked_softmax": 2,
    "softmax": 1,
    "route": 1,
    "quantise": 1,
}
_COMMUTATIVE = frozenset({"add", "mul"})
# Tensors looked at around a call.
_NEAR = 28
_AS_KEYS: tuple[int, ...] = ()
# Elements of an output beyond which no search is made.
_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """A tensor that may stand for an argument, and the shape it is turned to (None: as it is)."""

    tensor: TensorInfo
    shape: tuple[int, ...] | None = None

    @property
    def template(self) -> tuple[str, ...]:
        """What the same tensor of another layer has in common with it."""
        t = self.tensor
        return (re.sub(r"\d+", "#", t.module), re.sub(r"_\d+$", "", t.op), t.slot, t.argument)


def missing(call: OperatorCall, kind: str) -> list[str]:
    """Arguments of a call that its kind needs and that were not captured.

    The other operand of a sum or product may be a parameter or a recorded number.
    """
    if kind in _COMMUTATIVE and (call.parameters or {"other", "arg1"} & call.attributes.keys()):
        return []
    wanted = [str(n) for n in range(_ARGUMENTS.get(kind, 0))]
    return [name for name in wanted if name not in call.inputs]


def completions(
    call: OperatorCall,
    kind: str,
    near: Sequence[TensorInfo],
    known: Mapping[str, tuple[str, ...]],
) -> Iterator[dict[str, Source]]:
    """Ways to fill the missing arguments, likely ones first.

    `near` are the run's activations around the call, `known` the templates that held elsewhere.
    """
    output = next(iter(call.outputs.values()), None)
    absent = missing(call, kind)
    if output is None or not absent or output.size > _LARGEST:
        return
    choices = [_ranked(call, kind, name, near, known) for name in absent]
    ranked = sorted(
        itertools.product(*(range(min(len(c), 12)) for c in choices)), key=lambda at: sum(at)
    )
    seen: set[frozenset[str]] = set()
    for at in ranked:
        picked = [choice[n] for choice, n in zip(choices, at, strict=True)]
        names = frozenset(source.tensor.id for source in picked)
        if kind in _COMMUTATIVE and (names in seen or len(names) < len(picked)):
            continue
        seen.add(names)
        yield dict(zip(absent, picked, strict=True))


def _ranked(
    call: OperatorCall,
    kind: str,
    name: str,
    near: Sequence[TensorInfo],
    known: Mapping[str, tuple[str, ...]],
) -> list[Source]:
    """What may stand for one argument: what did elsewhere first, then the nearest."""

    def likelihood(source: Source) -> tuple[bool, int]:
        return (source.template != known.get(name), abs(source.tensor.order - call.order))

    return sorted(_fitting(call, kind, int(name), near), key=likelihood)


def around(call: OperatorCall, activations: Sequence[TensorInfo]) -> list[TensorInfo]:
    """The activations of the same step and rank nearest to a call in execution order."""
    own = {t.id for t in (*call.outputs.values(), *call.inputs.values())}
    same = [
        t
        for t in activations
        if t.step == call.step and t.rank == call.rank and t.id not in own and _before(t, call)
    ]
    return sorted(same, key=lambda t: abs(t.order - call.order))[:_NEAR]


def _before(tensor: TensorInfo, call: OperatorCall) -> bool:
    """Whether a tensor existed when the call was made; a sibling's input may be recorded later."""
    return tensor.slot == "input" or tensor.order < call.order


def filled(call: OperatorCall, sources: Mapping[str, Source]) -> OperatorCall:
    """The call with sources in place of what was missing."""
    inputs = {**call.inputs, **{n: s.tensor for n, s in sources.items()}}
    turned = {
        n: _like_keys(s.tensor, inputs.get("1")) if s.shape == _AS_KEYS else s.shape
        for n, s in sources.items()
        if s.shape is not None
    }
    ordered = dict(sorted(inputs.items(), key=lambda item: (len(item[0]), item[0])))
    return replace(call, inputs=ordered, turned=turned)


def _like_keys(values: TensorInfo, keys: TensorInfo | None) -> tuple[int, ...]:
    """The shape of values by head: as many heads as the keys have."""
    batch, tokens, width = values.shape
    heads = keys.shape[1] if keys is not None and len(keys.shape) == 4 else 1
    return (batch, heads, tokens, width // max(1, heads))


def _fitting(
    call: OperatorCall, kind: str, position: int, near: Sequence[TensorInfo]
) -> Iterator[Source]:
    accept = _accepting(call, kind, position)
    seen: set[tuple[str, ...]] = set()
    for tensor in near:
        source = accept(tensor)
        if source is not None and source.template not in seen:
            seen.add(source.template)
            yield source


def _accepting(
    call: OperatorCall, kind: str, position: int
) -> Callable[[TensorInfo], Source | None]:
    """What may stand for an argument, by shapes and formats."""
    out = next(iter(call.outputs.values())).shape
    if kind in ("attention", "rope", "masked_softmax") and position == _ARGUMENTS[kind] - 1:
        whole = kind == "rope"
        return lambda t: Source(t) if _discrete(t) and (t.dtype == "bool") != whole else None
    if kind == "rope":
        shape = list(call.outputs.values())[min(position, len(call.outputs) - 1)].shape
        return lambda t: _turned(t, shape)
    if kind == "attention":
        return lambda t: _headed(t, out, position)
    if kind in ("linear", "row_linear", "lora_linear", "int4_linear"):
        weight = call.parameters.get("weight")
        width = weight.shape[-1] if weight else -1
        return lambda t: Source(t) if _float(t) and t.shape == (*out[:-1], width) else None
    if kind == "act_mul":
        return lambda t: Source(t) if t.shape == (*out[:-1], 2 * out[-1]) else None
    return lambda t: Source(t) if _float(t) and t.shape == out else None


def _float(tensor: TensorInfo) -> bool:
    return "float" in tensor.dtype


def _discrete(tensor: TensorInfo) -> bool:
    return tensor.dtype == "bool" or tensor.dtype.startswith(("int", "uint"))


def _turned(tensor: TensorInfo, shape: tuple[int, ...]) -> Source | None:
    """A tensor as (B, H, S, D): itself, or (B, S, H·D) turned."""
    if not _float(tensor):
        return None
    if tensor.shape == shape:
        return Source(tensor)
    if len(shape) == 4 and tensor.shape == (shape[0], shape[2], shape[1] * shape[3]):
        return Source(tensor, shape)
    return None


def _headed(tensor: TensorInfo, out: tuple[int, ...], position: int) -> Source | None:
    """Queries, keys or values of an attention; values may come as (B, S, H·D)."""
    if not _float(tensor) or tensor.shape[:1] != out[:1]:
        return None
    if len(tensor.shape) == 4:
        return Source(tensor)
    return Source(tensor, _AS_KEYS) if len(tensor.shape) == 3 and position == 2 else None
