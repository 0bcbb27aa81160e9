"""Reference runs for Apple's Core AI debugger: `metadata.json` beside `data/<node>_0001.npy`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from core.tensors import Pass, Slot
from language import say
from loaders.documents import read_json
from loaders.names import natural_key, shown
from loaders.naming import Gathering, Naming, Stored
from loaders.npy_array import npy_tensor
from loaders.part import DumpFile, Part, RefusedError
from loaders.registry import LOADERS, Claim, Loader

_LEAD = "metadata.json"
_OWNED = re.compile(r"data/[^/]+\.npy")
_OURS = re.compile(rb'"(?:inputs|outputs|intermediates|mappings)"\s*:')
_GROUPS: Mapping[str, tuple[Pass, Slot]] = {
    "inputs": ("forward", "input"),
    "intermediates": ("forward", "output"),
    "outputs": ("forward", "output"),
}
_NUMBER = re.compile(r"_(\d{1,9})\.npy$")


def sniff(head: bytes, path: Path) -> bool:
    """Whether a metadata.json begins with the groups of tensors, or lies in a folder called so."""
    if path.name != _LEAD or not head.lstrip().startswith(b"{"):
        return False
    return path.parent.suffix == ".aimodelintermediates" or len(set(_OURS.findall(head))) >= 2


def open_file(file: DumpFile) -> Part:
    """Inputs, intermediates by the number in their file name, outputs; nodes are operators.

    A bf16 tensor was cast before it was saved; the metadata speaks of float32 then.
    """
    document = read_json(file)
    if not isinstance(document, dict):
        raise RefusedError("damaged", file.name, say("it is no table of tensors."))
    gathering = Gathering(file, recorded=True)
    for group in _GROUPS:
        found = document.get(group)
        nodes = list(found.items()) if isinstance(found, dict) else []
        for node, said in sorted(nodes, key=_written):
            gathering.add(_naming(group, node, said), partial(_array, file, node, said))
    return gathering.part({"format": "Core AI intermediates", "framework": "pytorch"})


def _written(item: tuple[str, Any]) -> tuple[Any, ...]:
    node, said = item
    path = said.get("data_file") if isinstance(said, dict) else None
    number = _NUMBER.search(path) if isinstance(path, str) else None
    return (int(number[1]) if number else 1 << 62, natural_key(node))


def _naming(group: str, node: str, said: Any) -> Naming:
    pass_, slot = _GROUPS[group]
    facts = said if isinstance(said, dict) else {}
    texts = {k: facts.get(k) for k in ("node_op", "node_target")}
    inside = group == "intermediates"
    return Naming(
        name=f"{group}/{shown(node)}",
        module="",
        argument="0" if inside else shown(node),
        op=shown(node) if inside else "",
        pass_=pass_,
        slot=slot,
        attrs={k: shown(v[:200]) for k, v in texts.items() if isinstance(v, str)},
    )


def _array(file: DumpFile, node: str, said: Any) -> Stored:
    path = said.get("data_file") if isinstance(said, dict) else None
    dtype = said.get("torch_dtype") if isinstance(said, dict) else None
    found = file.beside.get(shown(path)) if isinstance(path, str) else None
    if found is None:
        where = f"{file.name}: {shown(node)[:200]}"
        raise RefusedError("gone", where, say("its array is not in the folder data."))
    return npy_tensor(found, dtype if isinstance(dtype, str) else None)


_CLAIM = Claim(lambda name: name == _LEAD, lambda within: _OWNED.fullmatch(within) is not None)
LOADERS.register(
    Loader("apple_intermediates", "Core AI intermediates", sniff, open_file, claim=_CLAIM)
)
