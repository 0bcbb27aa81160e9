"""Logs of reprod_log: a dict of arrays in a `.npy` file, which NumPy writes as a pickle."""

from __future__ import annotations

from functools import partial
from pathlib import Path, PurePosixPath

from language import say
from loaders.file_bytes import FileBytes, bytes_at
from loaders.names import shown
from loaders.naming import Gathering, path_naming
from loaders.npy_header import SIGNATURE, header_end
from loaders.numpy_pickle import PickledArray, array_of, pickled
from loaders.part import DumpFile, Part, RefusedError
from loaders.registry import LOADERS, Loader

_HEAD = 4096


def is_pickled(head: bytes, _: Path) -> bool:
    """Whether a file is NumPy's and holds Python objects."""
    return head.startswith(SIGNATURE) and (b"'|O'" in head[:256] or b"'O'" in head[:256])


def open_file(file: DumpFile) -> Part:
    """The arrays of the dict in its order, which is the one in which they were logged.

    Nothing is unpickled: a machine follows the pickle and finds where the bytes of arrays lie.
    """
    bytes_ = FileBytes.of(file)
    with bytes_.opened() as descriptor:
        head = bytes_at(descriptor, 0, min(_HEAD, bytes_.size), bytes_)
    content = pickled(bytes_, header_end(head, file.name), file.name)
    if isinstance(content, PickledArray) and isinstance(content.content, list):
        content = content.content[0] if len(content.content) == 1 else None
    if not isinstance(content, dict):
        reason = say("it holds Python objects, which are never unpickled, and no dict of arrays.")
        raise RefusedError("dtype", file.name, reason)
    gathering = Gathering(file, recorded=True)
    around = PurePosixPath(file.name).parts
    for key, found in content.items():
        name = shown(str(key)[:1000])
        where = f"{file.name}: {name[:200]}"
        if isinstance(found, PickledArray):
            naming = path_naming(name.split("/"), (*around, name))
            gathering.add(naming, partial(array_of, bytes_, found, where))
        else:
            gathering.problems.append(RefusedError("dtype", where, say("it is no array.")).problem)
    return gathering.part({"format": "reprod_log"})


LOADERS.register(Loader("reprod_log", "reprod_log", is_pickled, open_file))
