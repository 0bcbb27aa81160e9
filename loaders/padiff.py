"""Dumps of PaDiff: `report.json` with `tensors/*.npy`, `params.json` with weights and gradients."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from core.tensors import Pass, Slot
from language import say
from loaders.documents import read_json
from loaders.names import last_known, rank_of, shown, step_of
from loaders.naming import Gathering, Naming, Stored
from loaders.npy_array import npy_tensor
from loaders.part import DumpFile, Part, RefusedError
from loaders.registry import LOADERS, Claim, Loader

_LEADS = frozenset({"report.json", "params.json", "weights.json", "grads.json"})
_OWNED = re.compile(r"(?:tensors|weights|grads)/[^/]+\.npy")
_OURS = re.compile(rb'\s*\{\s*"model_name"\s*:')
_DEEPEST = 64  # modules within modules
_PARAMETERS: Mapping[str, Pass] = {"weights": "parameter", "grads": "gradient"}


@dataclass(slots=True)
class _Tree:
    """What comes of one tree of modules."""

    gathering: Gathering
    step: int | None
    rank: int | None
    backward: list[tuple[Naming, Callable[[], Stored]]] = field(default_factory=list)
    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    apis: dict[tuple[str, int, str], int] = field(default_factory=lambda: defaultdict(int))

    def walk(self, node: Any, module: str, call: int, depth: int) -> None:
        """A node's children, then what it made itself: the order in which results came to be."""
        if not isinstance(node, dict):
            return
        if depth > _DEEPEST:
            file = self.gathering.file.name
            self.gathering.problems.append(
                RefusedError("depth", file, say("its modules are nested too deep.")).problem
            )
            return
        place = self._place(node, module, call)
        for child in _list(node.get("children")):
            self.walk(child, place.module, place.call, depth + 1)
        self._outputs(node, place)
        self._parameters(node, place)

    def _place(self, node: Mapping[str, Any], module: str, call: int) -> Naming:
        kind, name = node.get("type"), shown(str(node.get("name", ""))[:200])
        if kind == "api":
            return self._function(name.rpartition(".")[2], module, call)
        route = shown(str(node.get("route") or module)[:1000])
        is_net = kind is not None  # params.json has no calls
        number = self.calls[route] if is_net else 0
        self.calls[route] += is_net
        return Naming(name=route, module=route, argument="", module_class=name, call=number)

    def _function(self, function: str, module: str, call: int) -> Naming:
        number = self.apis[module, call, function]
        self.apis[module, call, function] += 1
        op = f"{function}_{number}" if number else function
        name = f"{module}/{op}" if module else op
        return Naming(name=name, module=module, argument="", op=op, call=call)

    def _outputs(self, node: Mapping[str, Any], place: Naming) -> None:
        for n, said in enumerate(_list(node.get("fwd_outputs"))):
            self.gathering.add(self._named(place, "forward", "output", n), self._file(said))
        for n, said in enumerate(_list(node.get("bwd_grads"))):
            self.backward.append((self._named(place, "backward", "output", n), self._file(said)))

    def _parameters(self, node: Mapping[str, Any], place: Naming) -> None:
        for key, pass_ in _PARAMETERS.items():
            found = node.get(key)
            for parameter, path in (found if isinstance(found, dict) else {}).items():
                if path is not None:
                    naming = self._named(place, pass_, "parameter", shown(str(parameter)))
                    self.gathering.add(naming, self._file({"path": path}))

    def _named(self, place: Naming, pass_: Pass, slot: Slot, argument: int | str) -> Naming:
        at = f"@{place.call}" if place.call else ""
        label = {"parameter": "weight", "gradient": "grad"}.get(pass_, f"{pass_}_{slot}")
        return Naming(
            name=f"{place.name}{at}/{label}.{argument}",
            module=place.module,
            argument=str(argument),
            pass_=pass_,
            slot=slot,
            module_class=place.module_class,
            op=place.op,
            call=place.call,
            step=self.step,
            rank=self.rank,
        )

    def _file(self, said: Any) -> Callable[[], Stored]:
        return partial(_array, self.gathering.file, said)


def sniff(head: bytes, path: Path) -> bool:
    """Whether one of PaDiff's four documents begins as it writes them."""
    return path.name in _LEADS and _OURS.match(head) is not None


def open_file(file: DumpFile) -> Part:
    """Outputs as their modules ended, then gradients the other way round; or parameters.

    The absolute paths inside are the writer's: arrays are looked for beside the document.
    """
    document = read_json(file)
    if not isinstance(document, dict) or "tree" not in document:
        raise RefusedError("damaged", file.name, say("it has no tree of modules."))
    parts = PurePosixPath(file.name).parts[:-1]
    gathering = Gathering(file, recorded=file.path.name == "report.json")
    tree = _Tree(gathering, last_known(map(step_of, parts)), last_known(map(rank_of, parts)))
    roots = document["tree"]
    for root in roots if isinstance(roots, list) else [roots]:
        tree.walk(root, "", 0, 0)
    for naming, find in reversed(tree.backward):
        gathering.add(naming, find)
    framework = document.get("framework")
    said = {"framework": shown(framework[:80])} if isinstance(framework, str) else {}
    return gathering.part({"format": "PaDiff", **said})


def _array(file: DumpFile, said: Any) -> Stored:
    """An array named in the document; its format there is what it was before it was saved."""
    path = said.get("path") if isinstance(said, dict) else None
    dtype = said.get("dtype") if isinstance(said, dict) else None
    within = "/".join(shown(str(path)).replace("\\\\", "/").split("/")[-2:])
    found = file.beside.get(within)
    if found is None:
        raise RefusedError(
            "gone", f"{file.name}: {within[:200]}", say("this array is not beside it.")
        )
    return npy_tensor(found, dtype if isinstance(dtype, str) else None)


def _list(value: Any) -> Iterator[Any]:
    return iter(value if isinstance(value, list) else ())


_CLAIM = Claim(_LEADS.__contains__, lambda within: _OWNED.fullmatch(within) is not None)
LOADERS.register(Loader("padiff", "PaDiff", sniff, open_file, claim=_CLAIM))
