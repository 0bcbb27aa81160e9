"""Writes values in the HDF5 layout of Baidu Kunlun's torch_xray."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py

FILE = "globalrank-0_localrank-0.h5"
STEP = "1"
Rename = Callable[[str, str], str]


def reference_name(path: str, module_class: str) -> str:
    """Class a tensor-parallel serving engine uses in the place of the plain one."""
    if path.endswith(("o_proj", "down_proj")):
        return "RowParallelLinear"
    return {
        "Linear": "ColumnParallelLinear",
        "Embedding": "VocabParallelEmbedding",
    }.get(module_class, module_class)


def candidate_name(path: str, module_class: str) -> str:
    """The same in another vendor's port, with its misspelling."""
    name = reference_name(path, module_class)
    return {
        "ColumnParallelLinear": "ColumnParallelLinearXPU",
        "RowParallelLinear": "RowParalleLinear",
        "RMSNorm": "KunlunRMSNorm",
    }.get(name, name)


def convert(dump: Path, folder: Path, rename: Rename, *, counters: bool) -> None:
    """Rewrite a recorded file: leaf modules only, flat dotted names, one group for the step.

    With `counters` a class name is followed by how often its class stood in its parent before, as
    torch_xray writes it; some of its versions leave the number out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with h5py.File(dump) as source, h5py.File(folder / FILE, "w") as target:
        group = target.create_group(STEP, track_order=True)
        numbers = _Counters()
        for dataset in _leaf_tensors(source):
            path, module_class = dataset.attrs["module"], dataset.attrs["module_class"]
            name = rename(path, module_class)
            number = f".{numbers.of(path, name)}" if counters else ""
            slot = dataset.name.rsplit("/", 1)[1]
            group.create_dataset(f"{path}.{name}{number}.{slot}", data=dataset[()])


class _Counters:
    """Numbers modules of one class under one parent in the order they are met."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}
        self._next: Counter[tuple[str, str]] = Counter()

    def of(self, path: str, name: str) -> int:
        if path not in self._given:
            key = (path.rpartition(".")[0], name)
            self._given[path] = self._next[key]
            self._next[key] += 1
        return self._given[path]


def _leaf_tensors(source: h5py.File) -> Iterator[h5py.Dataset]:
    datasets: list[h5py.Dataset] = []
    source.visititems(
        lambda _, item: datasets.append(item) if isinstance(item, h5py.Dataset) else None
    )
    modules = {dataset.attrs["module"] for dataset in datasets}
    parents = {path.rpartition(".")[0] for path in modules} | {""}
    parents |= {ancestor for path in parents for ancestor in _ancestors(path)}
    for dataset in sorted(datasets, key=lambda dataset: int(dataset.attrs["order"])):
        if dataset.attrs["module"] not in parents and not dataset.attrs["op"]:
            yield dataset


def _ancestors(path: str) -> Iterator[str]:
    while path:
        path = path.rpartition(".")[0]
        yield path
