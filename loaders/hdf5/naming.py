"""What a dialect says about a dataset, and the tensor that comes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core.records import changed
from core.tensors import TensorInfo
from loaders.hdf5.attributes import number_of
from loaders.hdf5.datasets import Dataset
from loaders.naming import Naming, Stored, path_naming
from loaders.naming import tensor_of as stored_tensor
from loaders.part import Source


def plain_naming(dataset: Dataset) -> Naming:
    """A name without a known grammar: its last part counts as an operator of the module before it.

    Groups called like `step3` or `rank0` say just that and are no part of the name; attributes
    `step` and `rank` overrule them, the path of the file comes last.
    """
    links, attrs = dataset.place.links, dataset.attributes
    plain = path_naming(links, [*dataset.place.file.split("/"), *links[:-1]])
    step, rank = number_of(attrs, "step"), number_of(attrs, "rank")
    return changed(
        plain,
        step=step if step is not None else plain.step,
        rank=rank if rank is not None else plain.rank,
        attrs={**plain.attrs, **attrs},
    )


def tensor_of(
    dataset: Dataset, naming: Naming, *, order: int, recorded: bool
) -> tuple[TensorInfo, Source]:
    """The tensor that a dataset is, under the meaning of its name."""
    dims = dims_of(dataset.attributes, len(dataset.shape))
    stored = Stored(dataset.shape, dataset.encoding, dataset.source)
    return stored_tensor(changed(naming, dims=dims), stored, order=order, recorded=recorded)


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
