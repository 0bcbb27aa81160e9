"""Our own dump format, written by precision_recorder; docs/dump-format.md is normative."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from core.runs import Problem
from core.tensors import Pass, Slot
from language import say
from loaders.hdf5.attributes import number_of, text_of
from loaders.hdf5.datasets import Dataset
from loaders.hdf5.glimpse import glimpse
from loaders.hdf5.naming import plain_naming, tensor_of
from loaders.hdf5.superblock import is_hdf5
from loaders.hdf5.walk import Contents, walk
from loaders.names import escaped
from loaders.naming import Naming
from loaders.part import DumpFile, Part, RefusedError
from loaders.registry import LOADERS, Loader

FORMAT = "precision-dump"
VERSION = 1
_TEXTS = ("module", "pass", "slot", "argument")
# What TensorInfo has fields for; the rest is kept as attributes.
_FIELDS = {*_TEXTS, "module_class", "op", "call", "order", "dtype", "dims", "attrs_json"}


def sniff(head: bytes, path: Path) -> bool:
    """Whether an HDF5 file says in its root that it is a precision dump."""
    return is_hdf5(head, path) and glimpse(path).attributes.get("format") == FORMAT


def open_file(file: DumpFile) -> Part:
    """One step of one rank; the attributes say what each dataset is, in recorded order."""
    contents = walk(file)
    step, rank = (number_of(contents.attributes, name) for name in ("step", "rank"))
    items, problems = [], [*contents.problems, *_root_problems(contents)]
    for position, dataset in enumerate(contents.datasets):
        try:
            naming = _naming(dataset)
        except RefusedError as refusal:
            problems.append(refusal.problem)
            naming = plain_naming(dataset)
        order = number_of(dataset.attributes, "order")
        items.append(
            tensor_of(
                dataset,
                replace(naming, step=step, rank=rank),
                order=position if order is None else order,
                recorded=order is not None,
            )
        )
    items.sort(key=lambda item: item[0].order)
    return Part(tuple(items), _provenance(contents), tuple(problems))


def _naming(dataset: Dataset) -> Naming:
    attrs = dataset.attributes
    missing = [name for name in _TEXTS if not isinstance(attrs.get(name), str)]
    if missing or attrs["pass"] not in get_args(Pass) or attrs["slot"] not in get_args(Slot):
        wrong = ", ".join(missing) or say("pass or slot")
        reason = say(
            "its attributes do not say what it is ({wrong}). Its path does instead.", wrong=wrong
        )
        raise RefusedError("attributes", dataset.place.where, reason)
    extra = {name: value for name, value in attrs.items() if name not in _FIELDS}
    return Naming(
        name=dataset.place.name,
        module=_printable(attrs["module"]),
        argument=_printable(attrs["argument"]),
        pass_=attrs["pass"],
        slot=attrs["slot"],
        module_class=_printable(text_of(attrs, "module_class") or ""),
        op=_printable(text_of(attrs, "op") or ""),
        call=number_of(attrs, "call") or 0,
        attrs=extra | (_json_object(attrs.get("attrs_json")) or {}),
    )


def _printable(text: str) -> str:
    return escaped(text.encode("utf-8", "surrogatepass"))


def _root_problems(contents: Contents) -> Iterator[Problem]:
    attrs, name = contents.attributes, contents.file.name
    version = number_of(attrs, "format_version")
    if version != VERSION:
        reason = say(
            "it is of version {version} of the format; version {version2} is known here.",
            version=version,
            version2=VERSION,
        )
        yield Problem("format-version", name, reason)
    if attrs.get("complete") not in (True, 1):
        error = text_of(attrs, "error")
        reason = say("Recording ended early; what was written is here.")
        if error:
            reason = say(
                "Recording ended early with {error}; what was written is here.", error=error
            )
        yield Problem("incomplete", name, reason)
    for where, reason in (_json_object(attrs.get("skipped")) or {}).items():
        yield Problem(
            "skipped",
            f"{name}: {where}",
            say("The recorder could not store it: {reason}", reason=reason),
        )
    if _json_object(attrs.get("provenance")) is None:
        yield Problem("provenance", name, say("its provenance is not readable."))


def _provenance(contents: Contents) -> Mapping[str, str]:
    stated = _flat(_json_object(contents.attributes.get("provenance")) or {}, "")
    return {"format": FORMAT, **dict(stated)}


def _flat(value: Any, prefix: str) -> Iterator[tuple[str, str]]:
    """Nested JSON as dotted keys and text."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _flat(below, f"{prefix}.{key}" if prefix else key)
    elif isinstance(value, str):
        yield prefix, value
    else:
        yield prefix, json.dumps(value, ensure_ascii=False)


def _json_object(text: Any) -> dict[str, Any] | None:
    """The object a JSON text holds, None if it holds none: cut short, or made to fail."""
    if not isinstance(text, str):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


LOADERS.register(Loader("precision_dump", "Precision dump", sniff, open_file))
