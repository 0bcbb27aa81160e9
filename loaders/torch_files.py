"""Files of `torch.save` without a grammar known here: one tensor, or dicts and lists of some."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from language import say
from loaders.archive import SIGNATURE
from loaders.names import shown
from loaders.naming import Gathering, Naming, Stored, path_naming
from loaders.part import DumpFile, Part, RefusedError
from loaders.registry import LOADERS, Loader
from loaders.torch_tensor import Saved, saved, tensors_in

_SUFFIXES = (".pt", ".pth", ".bin", ".ckpt")
_NAME_LENGTH = slice(26, 28)  # of a zip archive's first member
_NAME_AT = 30


def is_torch(head: bytes, path: Path) -> bool:
    """Whether a file is a zip archive that begins as PyTorch's do, or is called so and is none.

    What PyTorch wrote before version 1.6 is no archive: taken too, to be told apart when opened.
    """
    if not head.startswith(SIGNATURE):
        return path.suffix == ".pt" and not head.startswith(b"PK")
    length = int.from_bytes(head[_NAME_LENGTH], "little")
    name = head[_NAME_AT : _NAME_AT + length]
    whole = len(head) >= _NAME_AT and len(name) == length
    return name.endswith(b"/data.pkl") if whole else path.suffix == ".pt"


def keyed(content: Saved, where: str) -> Iterator[tuple[tuple[str, ...], Callable[[], Stored]]]:
    """The tensors of a content by their path of keys, and how to find each."""
    for path, found in tensors_in(content.content, where):
        inside = f"{where}: {shown('.'.join(path))[:200]}" if path else where
        yield tuple(shown(key) for key in path), partial(content.stored, found, inside)


def open_file(file: DumpFile) -> Part:
    """The tensors of the file; a dict of parameters keeps its keys, one tensor has its path."""
    content = saved(file)
    path = PurePosixPath(file.name)
    stem = path.name.removesuffix(path.suffix) if path.suffix in _SUFFIXES else path.name
    gathering = Gathering(file, recorded=False)
    for keys, find in keyed(content, file.name):
        parts = list(keys) if keys else [*path.parts[:-1], stem]
        gathering.add(_naming(parts, path, state=_is_state(content.content)), find)
    if not (gathering.items or gathering.problems):
        raise RefusedError("layout", file.name, say("it holds no tensor."))
    return gathering.part({"format": "PyTorch"})


def _is_state(content: Any) -> bool:
    """Whether a content is a state of parameters: a flat dict of dotted names."""
    keys = content.keys() if isinstance(content, dict) else ()
    return any(isinstance(key, str) and "." in key for key in keys)


def _naming(parts: list[str], path: PurePosixPath, *, state: bool) -> Naming:
    plain = path_naming(parts, (*path.parts, *parts))
    if not state:
        return plain
    module, _, parameter = ".".join(parts).rpartition(".")
    return Naming(
        name=".".join(parts),
        module=module,
        argument=parameter,
        pass_="parameter",
        slot="parameter",
        step=plain.step,
        rank=plain.rank,
    )


LOADERS.register(Loader("pt", "PyTorch .pt", is_torch, open_file, fallback=True, bare=True))
