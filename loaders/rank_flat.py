"""The flat variant `rank_R.hf5`: float32 datasets in the root, everything in the name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from core.tensors import Pass, Slot
from loaders.hdf5.datasets import Dataset
from loaders.hdf5.glimpse import glimpse
from loaders.hdf5.naming import tensor_of
from loaders.hdf5.superblock import is_hdf5
from loaders.hdf5.walk import walk
from loaders.hdf5.written_order import in_written_order
from loaders.names import rank_of
from loaders.naming import Naming
from loaders.part import DumpFile, Part
from loaders.registry import LOADERS, Loader

_FILE = re.compile(r"(?:.*[_.\-])?rank_\d+\.hf5")
_STEP = re.compile(r"step_(?P<step>\d{1,9})_(?P<rest>.+)", re.DOTALL)
# One of the two known writers forgets the underscore before the direction.
_ACTIVATION = re.compile(
    r"(?P<path>.*?)_?(?P<way>forward|backward)_(?P<slot>input|output)_(?P<argument>\d+)"
)
_WEIGHT = re.compile(r"weight(?P<kind>_updated|_grad)?_(?P<parameter>.+)")
_WEIGHT_PASS: Mapping[str, Pass] = {"": "parameter", "_updated": "update", "_grad": "gradient"}


def sniff(head: bytes, path: Path) -> bool:
    """Whether an HDF5 file has this variant's name, or its names in the root."""
    if not is_hdf5(head, path):
        return False
    return bool(_FILE.fullmatch(path.name)) or any(map(_is_ours, glimpse(path).root))


def _is_ours(name: str) -> bool:
    match = _STEP.fullmatch(name)
    return match is not None and any(
        pattern.fullmatch(match["rest"]) for pattern in (_ACTIVATION, _WEIGHT)
    )


def open_file(file: DumpFile) -> Part:
    """Datasets as they were written. What the values were before float32 is not in the file."""
    contents = walk(file)
    datasets = in_written_order(contents, contents.datasets)
    recorded = all(each.place.tracked for each in datasets)
    rank = rank_of(file.path.name)
    items = tuple(
        tensor_of(each, _naming(each, rank), order=order, recorded=recorded)
        for order, each in enumerate(datasets)
    )
    return Part(items, {"format": "flat rank HDF5"}, contents.problems)


def _naming(dataset: Dataset, rank: int | None) -> Naming:
    stepped = _STEP.fullmatch(dataset.place.name)
    step = int(stepped["step"]) if stepped else None
    name = stepped["rest"] if stepped else dataset.place.name
    module, argument, pass_, slot = _meaning(name)
    return Naming(
        name=name,
        module=module,
        argument=argument,
        pass_=pass_,
        slot=slot,
        step=step,
        rank=rank,
        attrs=dataset.attributes,
    )


def _meaning(name: str) -> tuple[str, str, Pass, Slot]:
    """Module, argument, pass and slot of a name without its step."""
    if match := _ACTIVATION.fullmatch(name):
        way: Pass = "forward" if match["way"] == "forward" else "backward"
        return (
            match["path"],
            match["argument"],
            way,
            "input" if match["slot"] == "input" else "output",
        )
    if match := _WEIGHT.fullmatch(name):
        module, _, parameter = match["parameter"].rpartition(".")
        return module, parameter, _WEIGHT_PASS[match["kind"] or ""], "parameter"
    module, _, argument = name.replace("/", ".").rpartition(".")  # something saved by hand
    return module, argument, "unknown", "value"


LOADERS.register(Loader("rank_flat", "Flat rank_R.hf5", sniff, open_file))
