"""A first look into an HDF5 file, enough to tell whose it is."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h5py import h5g, h5l, h5o

from loaders.hdf5.attributes import attributes_of
from loaders.hdf5.library import library, opened
from loaders.names import escaped
from loaders.part import DumpFile, RefusedError

_NAMES = 40  # of the root
_MEMBERS = 40  # of each group among them


@dataclass(frozen=True, slots=True)
class Glimpse:
    """Attributes of the root, names of its first members, and names within its first groups."""

    attributes: Mapping[str, Any]
    root: tuple[str, ...]
    groups: Mapping[str, tuple[str, ...]]


def glimpse(path: Path) -> Glimpse:
    """The first look; LoadError if the file cannot be opened."""
    status = path.lstat()
    return _glimpse(path, status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=4)  # every dialect asks about the same file in turn
def _glimpse(path: Path, _size: int, _mtime_ns: int) -> Glimpse:
    name = escaped(path.name.encode("utf-8", "surrogateescape"))
    file = DumpFile(path, name)
    with opened(file) as (handle, _), library(name):
        root = h5g.open(handle, b"/")
        names = _names(root, _NAMES)
        inside = {escaped(each): _inside(root, each) for each in names}
        groups = {each: members for each, members in inside.items() if members is not None}
        attributes = _attributes(root, file)
    return Glimpse(attributes, tuple(inside), groups)


def _attributes(root: Any, file: DumpFile) -> Mapping[str, Any]:
    try:
        with library(file.name):
            return attributes_of(root, file.limits, file.name)
    except RefusedError:
        return {}


def _inside(root: Any, name: bytes) -> tuple[str, ...] | None:
    """Names within a member, None if it is no group. What is broken is named by the walk."""
    try:
        with library(""):
            if h5o.get_info(root, name).type != h5o.TYPE_GROUP:
                return None
            return tuple(map(escaped, _names(h5g.open(root, name), _MEMBERS)))
    except RefusedError:
        return None


def _names(group: Any, most: int) -> list[bytes]:
    """Names of hard links; other links are not even looked at."""
    found: list[bytes] = []

    def keep(name: bytes, info: Any) -> bool | None:
        if info.type == h5l.TYPE_HARD:
            found.append(name)
        return True if len(found) >= most else None

    links = group.links
    links.iterate(keep, info=True)
    return found
