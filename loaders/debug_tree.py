"""Trees of Hugging Face's model debugger: `<Model>_debug_tree_FULL_TENSORS.json` and its files."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.tensors import Slot, TensorSummary
from language import say
from loaders.absent import Told, told, torch_size
from loaders.documents import read_json
from loaders.dtypes import canonical
from loaders.names import shown
from loaders.naming import Gathering, Naming, Stored
from loaders.part import DumpFile, Part, RefusedError
from loaders.registry import LOADERS, Claim, Loader
from loaders.safetensors_files import safetensors_tensor

_FULL, _SUMMARY = "_debug_tree_FULL_TENSORS.json", "_debug_tree_SUMMARY.json"
_OWNED = re.compile(r"[^/]+_(?:inputs|outputs)[^/]*\.safetensors")
_NUMBER = re.compile(r"tensor\(([^,()]{1,40})[,)]")
_DIGITS = 5e-5  # statistics are printed with four decimals
_DEEPEST = 64  # modules within modules, containers within an argument
_KEY = "data"


@dataclass(slots=True)
class _Tree:
    """What comes of the calls of one model."""

    gathering: Gathering
    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def walk(self, node: Any, depth: int) -> None:
        """What is handed to a call, the calls inside it, what it made."""
        if not isinstance(node, dict) or depth > _DEEPEST:
            return
        path = shown(str(node.get("module_path", ""))[:1000])
        module = path.partition(".")[2]  # the model's class comes first
        call = self.calls[path]
        self.calls[path] += 1
        self._tensors(node.get("inputs"), module, call, "input")
        children = node.get("children")
        for child in children if isinstance(children, list) else ():
            self.walk(child, depth + 1)
        self._tensors(node.get("outputs"), module, call, "output")

    def _tensors(self, value: Any, module: str, call: int, slot: Slot) -> None:
        for keys, said in _tensors(value, (), 0):
            argument = ".".join(key for key in keys if key not in ("args", "kwargs")) or "0"
            at = f"@{call}" if call else ""
            naming = Naming(
                name=f"{module or 'model'}{at}/{slot}.{argument}",
                module=module,
                argument=argument,
                pass_="forward",
                slot=slot,
                call=call,
            )
            self._add(naming, said)

    def _add(self, naming: Naming, said: Mapping[str, Any]) -> None:
        path, file = said.get("value"), self.gathering.file
        if isinstance(path, str) and path.endswith(".safetensors"):
            self.gathering.add(naming, lambda: _values(file, path))
        else:
            self.gathering.tell(naming, lambda: _printed(said, f"{file.name}: {naming.name}"))


def sniff(head: bytes, path: Path) -> bool:
    """Whether a JSON file has one of the debugger's two names and begins with a module's path."""
    return path.name.endswith((_FULL, _SUMMARY)) and b'"module_path"' in head


def open_file(file: DumpFile) -> Part:
    """Inputs and outputs in the order of execution; without files of values, their statistics."""
    gathering = Gathering(file, recorded=True)
    _Tree(gathering).walk(read_json(file), 0)
    return gathering.part({"format": "Hugging Face debug tree", "framework": "pytorch"})


def _tensors(
    value: Any, keys: tuple[str, ...], depth: int
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    if depth > _DEEPEST:
        return
    if isinstance(value, dict) and "shape" in value and "dtype" in value:
        yield keys, value
        return
    inside: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list):
        inside = list(enumerate(value))
    for key, each in inside:
        yield from _tensors(each, (*keys, shown(str(key)[:200])), depth + 1)


def _values(file: DumpFile, path: str) -> Stored:
    found = file.beside.get(shown(path.removeprefix("./")))
    if found is None:
        where = f"{file.name}: {shown(path)[:200]}"
        raise RefusedError("gone", where, say("this file of values is not beside it."))
    return safetensors_tensor(found, _KEY)


def _printed(said: Mapping[str, Any], where: str) -> Told:
    """Statistics as PyTorch prints them: `tensor(1.2346e-01, dtype=torch.bfloat16)`."""
    dtype = canonical(str(said.get("dtype")))
    shape = torch_size(str(said.get("shape")))
    if dtype is None or shape is None:
        raise RefusedError("damaged", where, say("its shape or dtype cannot be understood."))
    stated = {key: _NUMBER.match(str(said.get(key))) for key in ("min", "max", "mean")}
    numbers = {key: told(match[1]) if match else None for key, match in stated.items()}
    summary = TensorSummary(numbers["min"], numbers["max"], numbers["mean"], resolution=_DIGITS)
    if not summary.has_statistics:
        reason = say("it is printed, not saved, and has no statistics.")
        raise RefusedError("statistics-only", where, reason, say("Dump with use_repr=False."))
    return Told(shape, dtype, summary)


def _owns(within: str) -> bool:
    """Files of values, and the summary, which says nothing that the full tree does not."""
    return _OWNED.fullmatch(within) is not None or within.endswith(_SUMMARY)


_CLAIM = Claim(lambda name: name.endswith(_FULL), _owns)
LOADERS.register(Loader("debug_tree", "Hugging Face debug tree", sniff, open_file, claim=_CLAIM))
