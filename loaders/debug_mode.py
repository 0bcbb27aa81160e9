"""Logs of PyTorch's DebugMode: JSON of `DebugMode.save_logs`, hashes of what each call gave.

Of its hashes "norm" is the sum of magnitudes in float64, a number, and "hash_tensor" the bits of
the values xor'ed together, an integer; a log may hold both. Layout as PyTorch 2.14 writes it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from core.runs import Problem
from core.tensors import Pass, Slot, TensorSummary
from language import say
from loaders.absent import Told, told
from loaders.documents import read_json
from loaders.names import rank_of, shown, step_of
from loaders.naming import Gathering, Naming
from loaders.part import DumpFile, Part, RefusedError
from loaders.registry import LOADERS, Loader

_FORMAT = "torch.utils._debug_mode.DebugMode.logs"
_HEAD = re.compile(rb'\s*\{\s*"format"\s*:\s*"' + re.escape(_FORMAT.encode()) + b'"')
_TENSOR = re.compile(
    r"\b[dft]?t(?:\$\d{1,12})?: (?P<dtype>[a-z][a-z0-9]{1,12})\[(?P<shape>[^\]]*)\]"
)
_TRITON = re.compile(r"(?P<name>\w{1,200})=" + _TENSOR.pattern)
_NESTED = 16
_DTYPES = {
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"f8{kind}": f"float8_{kind}" for kind in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz")},
    "bf16": "bfloat16",
    "b8": "bool",
    "c64": "complex64",
    "c128": "complex128",
}
Call = Mapping[str, Any]


@dataclass(slots=True)
class _Place:
    """Where the log stands: modules that are open, counts of calls, whether gradients run."""

    modules: list[tuple[int, str]] = field(default_factory=list)
    backward: bool = False
    counts: dict[tuple[str, str, Pass], int] = field(default_factory=dict)

    def enter(self, depth: int, tag: str) -> None:
        """A module begins; names start with the class of the whole model, which is left out."""
        self.leave(depth)
        self.modules.append((depth, shown(tag.partition(".")[2])))
        self.backward = False

    def leave(self, depth: int) -> None:
        """Modules that were entered as deep, or deeper, have ended."""
        while self.modules and self.modules[-1][0] >= depth:
            self.modules.pop()

    def naming(self, kind: str, call: Call) -> Naming:
        """What a call's first output is called; each kind counts by itself in its module."""
        module = self.modules[-1][1] if self.modules else ""
        if not self.modules and (call.get("fwd_stack_trace") or kind.endswith("_backward")):
            self.backward = True
        pass_: Pass = "backward" if self.backward else "forward"
        number = self.counts.get((module, kind, pass_), 0)
        self.counts[module, kind, pass_] = number + 1
        op = f"{kind}_{number}" if number else kind
        name = f"{module}/{op}" if module else op
        return Naming(name=name, module=module, argument="0", op=op, pass_=pass_, slot="output")


def sniff(head: bytes, _: Path) -> bool:
    """Whether a JSON text calls itself a log of DebugMode."""
    return _HEAD.match(head) is not None


def open_file(file: DumpFile) -> Part:
    """Outputs, and inputs where they were hashed, of operators in the order of dispatch.

    Modules are those that `record_nn_module=True` recorded. Calls outside any module belong to the
    backward pass from the first one that has a forward stack trace or is called `…_backward`.
    """
    calls = _calls(file)
    gathering = Gathering(file, recorded=True)
    place, silent = _Place(), 0
    step, rank = step_of(file.path.stem), rank_of(file.path.name)
    for call in calls:
        depth = call.get("call_depth")
        if not isinstance(depth, int):
            raise RefusedError("damaged", file.name, say("a call in it has no depth."))
        if call.get("type") == "annotate":
            if call.get("header") == "nn.Mod":
                place.enter(depth, str(call.get("tag")))
            continue
        place.leave(depth)
        found = list(_tensors(call))
        silent += not found
        naming = place.naming(_kind(call), call)
        for slot, argument, text, hashes in found:
            named = _slotted(naming, slot, argument, step, rank)
            gathering.tell(named, partial(_told, text, hashes, f"{file.name}: {named.name}"))
    if silent and not gathering.items:
        gathering.problems.append(_without_hashes(file))
    return gathering.part({"format": "PyTorch DebugMode log", "framework": "pytorch"})


def _calls(file: DumpFile) -> list[Call]:
    document = read_json(file)
    if document.get("version") != 1:
        raise RefusedError("version", file.name, say("only version 1 of these logs is known."))
    calls = document.get("logs")
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise RefusedError("damaged", file.name, say("it has no list of calls."))
    return calls


def _without_hashes(file: DumpFile) -> Problem:
    reason = say(
        "none of its calls has hashes and shapes; record inside DebugMode.log_tensor_hashes()."
    )
    return Problem("empty", file.name, reason)


def _kind(call: Call) -> str:
    """`aten::add.Tensor` and `torch.nn.functional.add` are both `add`."""
    name = str(call.get("op_name") or call.get("kernel_name") or call.get("type") or "op")
    aten = name.rpartition("::")[2]
    return shown(aten.partition(".")[0] if "::" in name else name.rpartition(".")[2]) or "op"


def _slotted(
    naming: Naming, slot: Slot, argument: str, step: int | None, rank: int | None
) -> Naming:
    suffix = f"{slot}.{argument}" if naming.pass_ == "forward" else f"backward_{slot}.{argument}"
    return Naming(
        name=f"{naming.name}.{suffix}",
        module=naming.module,
        argument=argument,
        op=naming.op,
        pass_=naming.pass_,
        slot=slot,
        step=step,
        rank=rank,
    )


def _tensors(call: Call) -> Iterator[tuple[Slot, str, re.Match[str], list[Any]]]:
    """Tensors of a call that have a shape and a hash: slot, argument, shape as text, hashes."""
    if call.get("type") == "triton_kernel":
        yield from _of_kernel(call)
        return
    logged = _value(call.get("log"))
    logged = logged if isinstance(logged, dict) else {}
    arguments = f"{call.get('args_str') or ''}{call.get('kwargs_str') or ''}"
    outputs = str(call.get("output_str") or "")
    sides: tuple[tuple[Slot, str, str], ...] = (
        ("input", arguments, "input_hash"),
        ("output", outputs, "hash"),
    )
    for slot, text, key in sides:
        for n, (match, hashes) in enumerate(_paired(text, logged.get(key))):
            yield slot, str(n), match, hashes


def _paired(text: str, hashed: Any) -> Iterator[tuple[re.Match[str], list[Any]]]:
    """Tensors in a text, in turn, with their hashes; nothing when the numbers do not agree."""
    tensors, leaves = list(_TENSOR.finditer(text)), [x for x in _leaves(hashed) if x is not None]
    each, rest = divmod(len(leaves), len(tensors)) if tensors else (0, 0)
    if each and not rest:
        for n, match in enumerate(tensors):
            yield match, leaves[n * each : (n + 1) * each]


def _of_kernel(call: Call) -> Iterator[tuple[Slot, str, re.Match[str], list[Any]]]:
    tensors = {m["name"]: m for m in _TRITON.finditer(str(call.get("kwargs_str") or ""))}
    sides: tuple[tuple[Slot, str], ...] = (("input", "pre_hashes"), ("output", "post_hashes"))
    for slot, key in sides:
        hashed = _value(call.get(key))
        for name, value in hashed.items() if isinstance(hashed, dict) else ():
            if name in tensors:
                yield slot, shown(name), tensors[name], list(_leaves(value))


def _value(said: Any, depth: int = 0) -> Any:
    """A value as the log writes it, `{"type": "tuple", "items": […]}` and so on."""
    if not isinstance(said, dict) or depth > _NESTED:
        return None
    items = said.get("items")
    listed = items if isinstance(items, list) else []
    match said.get("type"):
        case "scalar":
            return said.get("value")
        case "nonfinite_float":
            return told(said.get("value"))
        case "tuple" | "list":
            return [_value(item, depth + 1) for item in listed]
        case "dict":
            pairs = [item for item in listed if isinstance(item, list) and len(item) == 2]
            return {str(key): _value(value, depth + 1) for key, value in pairs}
    return None


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    else:
        yield value


def _told(tensor: re.Match[str], hashes: list[Any], where: str) -> Told:
    dtype = _DTYPES.get(tensor["dtype"])
    lengths = [part for part in tensor["shape"].replace(" ", "").split(",") if part]
    if dtype is None or not all(part.isdecimal() and len(part) < 14 for part in lengths):
        raise RefusedError("damaged", where, say("its shape or dtype cannot be understood."))
    shape = tuple(int(part) for part in lengths)
    size = math.prod(shape)
    sums = [float(h) for h in hashes if isinstance(h, float)]
    bits = [h for h in hashes if isinstance(h, int) and not isinstance(h, bool)]
    summary = TensorSummary(
        magnitude=sums[0] / size if sums and size else None,
        checksum=f"torch-xor:{bits[0] & (1 << 64) - 1:016x}" if bits else "",
    )
    return Told(shape, dtype, summary)


LOADERS.register(Loader("debug_mode", "PyTorch DebugMode log", sniff, open_file))
