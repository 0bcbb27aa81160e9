"""Dumps of Baidu Kunlun's torch_xray: `globalrank-R_localrank-r.h5`, one group for each step."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from core.tensors import Pass, Slot, TensorInfo
from loaders.hdf5.datasets import Dataset
from loaders.hdf5.glimpse import glimpse
from loaders.hdf5.naming import plain_naming, tensor_of
from loaders.hdf5.superblock import is_hdf5
from loaders.hdf5.walk import walk
from loaders.hdf5.written_order import in_written_order
from loaders.names import natural_key, rank_of
from loaders.naming import Naming
from loaders.part import DumpFile, Part, Source
from loaders.registry import LOADERS, Loader

_FILE = re.compile(r"globalrank-\d+_localrank-\d+\.h5")
# Some writers leave the counter out (`….ColumnParalleLinear.forward_params.bias`).
_NAME = re.compile(
    r"(?:(?P<path>.+)\.)?(?P<cls>[A-Za-z_][^.]*)(?:\.(?P<n>\d+))?"
    r"\.(?P<way>forward|backward)_(?P<slot>params|input|output)\.(?P<argument>.+)"
)
_ROLES: Mapping[tuple[str, str], tuple[Pass, Slot]] = {
    ("forward", "params"): ("parameter", "parameter"),
    ("forward", "input"): ("forward", "input"),
    ("forward", "output"): ("forward", "output"),
    ("backward", "params"): ("gradient", "parameter"),
    ("backward", "input"): ("backward", "input"),
    ("backward", "output"): ("backward", "output"),
}


def sniff(head: bytes, path: Path) -> bool:
    """Whether an HDF5 file has torch_xray's name, or its names in the root or a step's group."""
    if not is_hdf5(head, path):
        return False
    if _FILE.fullmatch(path.name):
        return True
    seen = glimpse(path)
    steps = (names for group, names in seen.groups.items() if group.isdecimal())
    return any(_NAME.fullmatch(name) for names in (seen.root, *steps) for name in names)


def open_file(file: DumpFile) -> Part:
    """Steps in numeric order; within one, the order the group recorded, else as the file grew."""
    contents = walk(file)
    steps: dict[tuple[str, ...], list[Dataset]] = defaultdict(list)
    for dataset in contents.datasets:
        steps[dataset.place.links[:-1]].append(dataset)
    items: list[tuple[TensorInfo, Source]] = []
    for group in sorted(steps, key=lambda links: natural_key("/".join(links))):
        recorded = all(each.place.tracked for each in steps[group])
        calls = Calls()
        for dataset in in_written_order(contents, steps[group]):
            naming = _naming(dataset, calls)
            items.append(tensor_of(dataset, naming, order=len(items), recorded=recorded))
    return Part(tuple(items), {"format": "torch_xray HDF5"}, contents.problems)


class Calls:
    """Call indices within one step, from the counters in the names.

    A counter runs per class in a scope nobody documents (the second LayerNorm of a block is
    `norm2.LayerNorm.1`), so it tells calls apart only where one path has several.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[str, ...], list[str]] = defaultdict(list)

    def of(self, match: re.Match[str]) -> int:
        """Position of this counter among those of the same path, class and direction."""
        counters = self._seen[match["path"] or "", match["cls"], match["way"]]
        counter = match["n"] or ""
        if counter not in counters:
            counters.append(counter)
        return counters.index(counter)


def _naming(dataset: Dataset, calls: Calls) -> Naming:
    plain = plain_naming(dataset)
    group = dataset.place.links[0] if len(dataset.place.links) > 1 else ""
    if _is_number(group):
        plain = replace(plain, step=int(group), name=plain.name.removeprefix(f"{group}/"))
    rank = rank_of(dataset.place.file.rpartition("/")[2])
    plain = plain if rank is None else replace(plain, rank=rank)
    match = _NAME.fullmatch(dataset.place.links[-1])
    if match is None:  # something else that was saved along
        module, _, op = plain.name.replace("/", ".").rpartition(".")
        return replace(plain, module=module, op=op)
    pass_, slot = _ROLES[match["way"], match["slot"]]
    counter = {"counter": int(match["n"])} if match["n"] else {}
    return replace(
        plain,
        module=match["path"] or "",
        op="",
        argument=match["argument"],
        pass_=pass_,
        slot=slot,
        module_class=match["cls"],
        call=calls.of(match),
        attrs={**plain.attrs, **counter},
    )


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) < 10


LOADERS.register(Loader("torch_xray", "torch_xray HDF5", sniff, open_file))
