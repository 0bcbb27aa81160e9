"""Rewrites a recorded run in torch_xray's layout as the casebook writes it: leaf modules only."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import h5py

FILE = "globalrank-0_localrank-0.h5"


def rewrite(native: Path, folder: Path) -> None:
    """Turn the files of a recorded run into one, a group for each step, and remove them."""
    with h5py.File(folder / FILE, "w") as target:
        for path in sorted(native.glob("step*_rank0.h5"), key=_step):
            group = target.create_group(str(_step(path)), track_order=True)
            with h5py.File(path) as source:
                for dataset in _leaf_tensors(source):
                    name = _name(dataset)
                    if name not in group:
                        group.create_dataset(name, data=dataset[()])
                        group[name].attrs["dtype"] = dataset.attrs["dtype"]
    shutil.rmtree(native)


def _step(path: Path) -> int:
    return int(path.stem.split("_")[0].removeprefix("step"))


def _name(dataset: h5py.Dataset) -> str:
    attributes = dataset.attrs
    slot = dataset.name.rsplit("/", 1)[1]
    return f"{attributes['module']}.{attributes['module_class']}.{attributes['call']}.{slot}"


def _leaf_tensors(source: h5py.File) -> Iterator[h5py.Dataset]:
    """Tensors of modules that hold no other recorded module, in execution order."""
    datasets: list[h5py.Dataset] = []
    source.visititems(
        lambda _, item: datasets.append(item) if isinstance(item, h5py.Dataset) else None
    )
    modules = {dataset.attrs["module"] for dataset in datasets}
    parents = {ancestor for path in modules for ancestor in _ancestors(path)} | {""}
    for dataset in sorted(datasets, key=lambda dataset: int(dataset.attrs["order"])):
        leaf = dataset.attrs["module"] not in parents and not dataset.attrs["op"]
        if leaf and dataset.attrs["pass"] != "update":  # which torch_xray does not see
            yield dataset


def _ancestors(path: str) -> Iterator[str]:
    while path := path.rpartition(".")[0]:
        yield path
