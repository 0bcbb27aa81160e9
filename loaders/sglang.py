"""Dumps of SGLang's dumper: one `.pt` a tensor, its tags in the file name and again inside."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from core.tensors import Pass, Slot
from loaders.names import escaped, shown
from loaders.naming import Gathering, Naming
from loaders.part import DumpFile, Part
from loaders.registry import LOADERS, Loader
from loaders.torch_files import is_torch, keyed
from loaders.torch_tensor import Saved, saved

_OURS = re.compile(r"step=\d{1,9}___rank=\d{1,9}___dump_index=\d{1,9}___name=.+\.pt", re.DOTALL)
_SEPARATOR = "___"
_HOOKED = "non_intrusive__"
_PARAMETER, _GRADIENT = "param__", "grad__"
_SLOT = re.compile(r"(?:(?P<module>.*)\.)?(?P<word>inputs|output)(?:\.(?P<argument>.+))?")
_MODIFIERS = re.compile(r"\[[^\]]*\]|#.*")
# Tags that say where and when, against those that say what.
_PLACE = ("step", "rank", "dump_index", "name", "recompute_status")


def sniff(head: bytes, path: Path) -> bool:
    """Whether a file of PyTorch is named by the dumper's tags."""
    return _OURS.fullmatch(path.name) is not None and is_torch(head, path)


def open_file(file: DumpFile) -> Part:
    """The tensor of one file; the dump index, by which files are sorted, is the order of dumping.

    A name that was dumped again in the same step is another call.
    """
    tags = tags_of(file.path.name.removesuffix(".pt"))
    content = saved(file)
    gathering = Gathering(file, recorded=True)
    meta = _meta(content)
    value = content.content.get("value") if isinstance(content.content, dict) else content.content
    inside = Saved(value, content.bytes, content.members, content.top, content.order)
    for keys, find in keyed(inside, file.name):
        gathering.add(_naming(tags, meta, keys), find)
    return gathering.part({"format": "SGLang dumper"}, calls=True)


def tags_of(stem: str) -> dict[str, str]:
    """The tags in a file name: `key=value`, joined by three underscores, which values may hold."""
    tags: dict[str, str] = {}
    last = ""
    for part in stem.split(_SEPARATOR):
        key, equal, value = part.partition("=")
        if equal and key.isidentifier():
            last, tags[key] = key, value
        elif last:
            tags[last] += f"{_SEPARATOR}{part}"
    return {key: escaped(value.encode("utf-8", "surrogateescape")) for key, value in tags.items()}


def _meta(content: Saved) -> Mapping[str, Any]:
    meta = content.content.get("meta") if isinstance(content.content, dict) else None
    return meta if isinstance(meta, dict) else {}


def _naming(tags: Mapping[str, str], meta: Mapping[str, Any], keys: tuple[str, ...]) -> Naming:
    """The meaning of a name; one of the user's own stands in its layer, if that is tagged."""
    name, more = tags["name"], ".".join(keys)
    module, op, argument, pass_, slot = _meaning(name)
    layer = tags.get("layer_id", "")
    own = bool(op)
    if own and layer:
        module = f"layers.{layer}"
    others = {k: v for k, v in tags.items() if k not in (*_PLACE, *(["layer_id"] if own else []))}
    where = [f"layer_id={layer}"] if own and layer else []
    attrs = {**others, **dict(_plain(meta, ()))}
    dims = meta.get("dims")
    return Naming(
        name="/".join([*where, name, *filter(None, [more])]),
        module=module,
        op=op,
        argument=".".join(filter(None, (argument, more))),
        pass_=pass_,
        slot=slot,
        step=int(tags["step"]),
        rank=int(tags["rank"]),
        dims=tuple(_MODIFIERS.sub("", dims).split()) if isinstance(dims, str) else (),
        attrs=attrs,
    )


def _meaning(name: str) -> tuple[str, str, str, Pass, Slot]:
    """Module, op, argument, pass and slot of a name."""
    gradient = name.startswith(_GRADIENT)
    bare = name.removeprefix(_GRADIENT)
    if bare.startswith(_PARAMETER):
        module, _, parameter = bare.removeprefix(_PARAMETER).rpartition(".")
        return module, "", parameter, "gradient" if gradient else "parameter", "parameter"
    match = _SLOT.fullmatch(bare.removeprefix(_HOOKED)) if bare.startswith(_HOOKED) else None
    if match is None:
        return "", bare, "", "backward" if gradient else "unknown", "value"
    slot: Slot = "input" if match["word"] == "inputs" else "output"
    if gradient:  # that of an output is handed in, that of an input handed on
        slot = "output" if slot == "input" else "input"
    argument = match["argument"] or "0"
    return match["module"] or "", "", argument, "backward" if gradient else "forward", slot


def _plain(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Numbers and texts of the metadata by dotted key, ranks of the parallel layout among them."""
    if isinstance(value, dict) and len(path) < 3:
        for key, each in value.items():
            yield from _plain(each, (*path, str(key)))
    elif isinstance(value, str):
        yield shown(".".join(path)), shown(value[:200])
    elif isinstance(value, bool | int | float):
        yield shown(".".join(path)), value


LOADERS.register(Loader("sglang", "SGLang dumper", sniff, open_file))
