"""Dumps of msprobe (MindStudio): `dump.json` beside `dump_tensor_data/`, one folder a process."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from core.runs import Problem
from core.tensors import Pass, Slot
from language import say
from loaders.documents import read_json
from loaders.msprobe_names import Entry, entries
from loaders.msprobe_statistics import described_only
from loaders.names import last_known, rank_of, shown, step_of
from loaders.naming import Gathering, Naming, Stored
from loaders.npy_array import npy_tensor
from loaders.part import DumpFile, Part, RefusedError
from loaders.registry import LOADERS, Claim, Loader
from loaders.torch_tensor import torch_tensor

_DATA = "dump_tensor_data/"
_BESIDE = frozenset({"stack.json", "construct.json", "dump_error_info.log"})
# The keys of an entry, in the order a call has them: handed in, own, made.
_KEYS: Mapping[str, tuple[str, Slot]] = {
    "input_args": ("input", "input"),
    "input": ("input", "input"),
    "input_kwargs": ("kwargs", "input"),
    "parameters": ("parameters", "parameter"),
    "output": ("output", "output"),
}
_PROCESS = re.compile(r"proc(\d{1,9})")  # where torch.distributed was not initialised
_DEEPEST = 16  # containers within one argument
_OURS = re.compile(rb'\s*\{\s*"(task|level|framework|dump_data_dir|data)"\s*:')


@dataclass(frozen=True, slots=True)
class Leaf:
    """One tensor of an entry as dump.json tells of it."""

    entry: Entry
    label: str  # as in the name: `input.0`, `kwargs.mask`, `parameters.weight`
    argument: str
    pass_: Pass
    slot: Slot
    said: Mapping[str, Any]
    told: str  # its name in dump.json


@dataclass(slots=True)
class _Reading:
    """What comes of the leaves of one dump.json."""

    gathering: Gathering
    step: int | None
    rank: int | None
    without_values: int = 0

    @property
    def file(self) -> DumpFile:
        """The dump.json."""
        return self.gathering.file

    def add(self, leaf: Leaf) -> None:
        """Describe a tensor, or name what is wrong with it."""
        naming, said = self._naming(leaf), leaf.said
        if isinstance(said.get("data_name"), str):
            self.gathering.add(naming, lambda: self._checked(leaf))
        else:
            self.without_values += 1
            where = f"{self.file.name}: {naming.name}"
            self.gathering.tell(naming, lambda: described_only(said, where))

    def _checked(self, leaf: Leaf) -> Stored:
        stored, shape = self._stored(leaf.said), leaf.said.get("shape")
        if isinstance(shape, list) and tuple(shape) != stored.shape:
            what = say(
                "dump.json says the shape is {shape}, its file holds {shape2}.",
                shape=shape,
                shape2=list(stored.shape),
            )
            problem = Problem("shape", f"{self.file.name}: {shown(leaf.told)}", what)
            self.gathering.problems.append(problem)
        return stored

    def _naming(self, leaf: Leaf) -> Naming:
        name = f"{leaf.entry.name}.{leaf.label}"
        return Naming(
            name=shown(name),
            module=shown(leaf.entry.module),
            argument=shown(leaf.argument),
            pass_=leaf.pass_,
            slot=leaf.slot,
            module_class=shown(leaf.entry.module_class),
            op=shown(leaf.entry.op),
            call=leaf.entry.call,
            step=self.step,
            rank=self.rank,
            attrs={"dump_name": shown(leaf.told)} if leaf.told != name else {},
        )

    def _stored(self, said: Mapping[str, Any]) -> Stored:
        """The values, looked up among the files of the dump: no path out of dump.json is opened."""
        name = said["data_name"]
        where = f"{self.file.name}: {shown(name)}"
        file = self.file.beside.get(f"{_DATA}{shown(name)}")
        if file is None:
            reason = say("dump.json names this file; it is not in dump_tensor_data.")
            raise RefusedError("gone", where[:300], reason)
        declared = said.get("dtype") if isinstance(said.get("dtype"), str) else None
        return npy_tensor(file, declared) if name.endswith(".npy") else torch_tensor(file, declared)


def sniff(head: bytes, path: Path) -> bool:
    """Whether a `dump.json` (or `debug.json`) begins with one of msprobe's own keys."""
    return path.name in _LEADS and _OURS.match(head) is not None


def open_file(file: DumpFile) -> Part:
    """Tensors in the order of dump.json, which is the order in which calls ended.

    The absolute folder named inside is the writer's: values are looked for beside dump.json.
    """
    document = read_json(file)
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, dict):
        raise RefusedError("damaged", file.name, say("it has no entries under `data`."))
    parts = PurePosixPath(file.name).parts[:-1]
    gathering = Gathering(file, recorded=True)
    reading = _Reading(gathering, last_known(map(step_of, parts)), last_known(map(rank_of, parts)))
    parents = _parents(file, gathering.problems)
    meaning = entries(data, parents)
    for name, content in data.items():
        for leaf in _leaves(meaning[name], name, content):
            reading.add(leaf)
    provenance = _provenance(document)
    if reading.without_values:
        provenance["values"] = say(
            "statistics only for {without_values} tensors", without_values=reading.without_values
        )
    process = next((int(m[1]) for part in reversed(parts) if (m := _PROCESS.fullmatch(part))), None)
    return gathering.part(provenance, process=process)


def _parents(file: DumpFile, problems: list[Problem]) -> dict[str, str | None]:
    """construct.json; where it is missing or damaged, functions have no module around them."""
    construct = file.beside.get("construct.json")
    if construct is None:
        return {}
    try:
        tree = read_json(construct)
    except RefusedError as refusal:
        problems.append(refusal.problem)
        return {}
    if not isinstance(tree, dict):
        problems.append(Problem("damaged", construct.name, say("it is not a tree of names.")))
        return {}
    return {n: p if isinstance(p, str) else _first_text(p) for n, p in tree.items()}


def _first_text(parent: Any) -> str | None:
    """The name in a parent that is a list, as some versions write it; else none."""
    return parent[0] if isinstance(parent, list) and parent and isinstance(parent[0], str) else None


def _leaves(entry: Entry, told: str, content: Any) -> Iterator[Leaf]:
    if not isinstance(content, dict):
        return
    if entry.way == "parameters_grad":
        for key, value in content.items():
            for label, said in _tensors(value, key, 0):
                label = label.removesuffix(".0") if isinstance(value, list) else label
                yield Leaf(entry, label, label, "gradient", "parameter", said, f"{told}.{label}")
    elif not entry.way:
        for label, said in _tensors(content, "", 0):
            yield Leaf(entry, label, label, "unknown", "value", said, f"{told}.{label}")
    else:
        yield from _arguments(entry, told, content)


def _arguments(entry: Entry, told: str, content: Mapping[str, Any]) -> Iterator[Leaf]:
    for key, (word, slot) in _KEYS.items():
        for argument, said in _tensors(content.get(key), "", 0):
            pass_: Pass = "backward" if entry.way == "backward" else "forward"
            label = f"{word}.{argument}" if argument else word
            pass_ = "parameter" if slot == "parameter" else pass_
            yield Leaf(entry, label, argument, pass_, slot, said, f"{told}.{label}")


def _tensors(value: Any, path: str, depth: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Tensors in an argument, by dotted path; scalars, texts and None are settings, not tensors."""
    if depth > _DEEPEST:
        return
    if isinstance(value, dict) and isinstance(value.get("shape"), list) and "type" in value:
        yield path, value
        return
    members: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(value, list):
        members = iter(enumerate(value))
    elif isinstance(value, dict):
        members = iter(value.items())
    for key, member in members:
        yield from _tensors(member, f"{path}.{key}" if path else str(key), depth + 1)


def _provenance(document: Mapping[str, Any]) -> dict[str, str]:
    said = {key: document.get(key) for key in ("framework", "level", "task")}
    texts = {k: shown(v[:80]) for k, v in said.items() if isinstance(v, str)}
    framework = {"framework": texts.pop("framework")} if "framework" in texts else {}
    return {"format": "msprobe", **framework, **{f"msprobe.{k}": v for k, v in texts.items()}}


def _owns(within: str) -> bool:
    return within in _BESIDE or within.startswith(_DATA)


_LEADS = frozenset({"dump.json", "debug.json"})
LOADERS.register(
    Loader("msprobe", "msprobe", sniff, open_file, claim=Claim(_LEADS.__contains__, _owns))
)
