"""What a dialect says about a dataset, and the tensor that comes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.tensors import Pass, Slot, TensorInfo
from loaders.hdf5.attributes import number_of
from loaders.hdf5.datasets import Dataset
from loaders.names import last_known, only_counts, rank_of, step_of
from loaders.part import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """The meaning of a dataset's name; fields as in TensorInfo."""

    name: str
    module: str
    argument: str
    pass_: Pass = "unknown"
    slot: Slot = "value"
    module_class: str = ""
    op: str = ""
    call: int = 0
    step: int | None = None
    rank: int | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict)


def plain_naming(dataset: Dataset) -> Naming:
    """A name without a known grammar: its last part counts as an operator of the module before it.

    Groups called like `step3` or `rank0` say just that and are no part of the name; attributes
    `step` and `rank` overrule them, the path of the file comes last.
    """
    links, attrs = dataset.place.links, dataset.attributes
    file = dataset.place.file.split("/")
    kept = [link for link in links[:-1] if not only_counts(link)] + [links[-1]]
    name = "/".join(kept)
    module, _, op = name.replace("/", ".").rpartition(".")
    step, rank = number_of(attrs, "step"), number_of(attrs, "rank")
    around = [*file, *links[:-1]]
    return Naming(
        name=name,
        module=module,
        op=op,
        argument="",
        step=step if step is not None else last_known(map(step_of, around)),
        rank=rank if rank is not None else last_known(map(rank_of, around)),
        attrs=attrs,
    )


def tensor_of(
    dataset: Dataset, naming: Naming, *, order: int, recorded: bool
) -> tuple[TensorInfo, Source]:
    """The tensor that a dataset is, under the meaning of its name."""
    encoding = dataset.encoding
    info = TensorInfo(
        id=naming.name,
        name=naming.name,
        module=naming.module,
        argument=naming.argument,
        pass_=naming.pass_,
        slot=naming.slot,
        shape=dataset.shape,
        storage_dtype=encoding.storage,
        dtype=encoding.logical,
        order=order,
        module_class=naming.module_class,
        op=naming.op,
        call=naming.call,
        step=naming.step,
        rank=naming.rank,
        order_recorded=recorded,
        dims=dims_of(dataset.attributes, len(dataset.shape)),
        attrs=naming.attrs,
    )
    return info, dataset.source


def dims_of(attributes: Mapping[str, Any], axes: int) -> tuple[str, ...]:
    """Names of the axes, from `dims` (a list, JSON or words), HDF5's labels, or `layout` (NCHW).

    Empty unless there is exactly one for each axis.
    """
    for name in ("dims", "DIMENSION_LABELS", "layout"):
        dims = _words(attributes.get(name))
        if dims and len(dims) == axes:
            return dims
    return ()


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(str(each) for each in value)
    if not isinstance(value, str):
        return ()
    if value.startswith("["):
        try:
            return _words(json.loads(value))
        except ValueError:
            return ()
    words = tuple(value.replace(",", " ").split())
    return tuple(words[0]) if len(words) == 1 and words[0].isupper() else words
