"""Walks an HDF5 file along hard links only, each object once, within limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from h5py import h5, h5d, h5g, h5l, h5o, h5p

from core.runs import Problem
from language import say
from loaders.file_bytes import FileBytes
from loaders.hdf5.attributes import attributes_of
from loaders.hdf5.datasets import Checker, Dataset
from loaders.hdf5.library import BROKEN, library, opened, refused
from loaders.hdf5.places import Place
from loaders.hdf5.storage import Budget
from loaders.hdf5.superblock import superblock_version
from loaders.names import escaped, natural_key
from loaders.part import DumpFile, RefusedError

_LINKS: Mapping[int, tuple[str, str]] = {
    h5l.TYPE_SOFT: ("soft-link", say("it is a soft link, which is not followed.")),
    h5l.TYPE_EXTERNAL: ("external-link", say("it links to another file, which is not followed.")),
}
_OTHER_LINK = ("user-link", say("it is a link of an unknown kind, which is not followed."))


@dataclass(frozen=True, slots=True)
class Contents:
    """All that a file holds: datasets depth first, each group in creation or natural order.

    `superblock` is the version of the file's layout: from 2 on the one of HDF5 1.8.
    """

    file: DumpFile
    superblock: int
    attributes: Mapping[str, Any]
    datasets: tuple[Dataset, ...]
    problems: tuple[Problem, ...]


@dataclass(slots=True)
class _Walk:
    checker: Checker
    datasets: list[Dataset] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    uncounted: int = 0  # problems beyond the limit
    seen: dict[int, str] = field(default_factory=dict)  # object address -> name
    links: int = 0

    def group(self, group: Any, place: Place) -> None:
        """Visit the members of an open group, and what lies below."""
        limits = self.checker.bytes.file.limits
        if len(place.path) > limits.depth:
            raise RefusedError("depth", place.where, say("groups are nested too deep here."))
        flags = group.get_create_plist().get_link_creation_order()
        tracked = bool(flags & h5p.CRT_ORDER_TRACKED)
        members = _members(group, tracked, limits.objects - self.links, place.where)
        self.links += len(members)
        for name, kind, address in members:
            below = place.below(name, tracked=tracked)
            try:  # the lock is held throughout; entering `library` for each would cost a fifth
                self._member(group, kind, address, below)
            except RefusedError as refusal:
                self.note(refusal.problem)
            except BROKEN as error:
                self.note(refused(error, below.where).problem)

    def _member(self, group: Any, link: int, address: int, place: Place) -> None:
        name = place.path[-1]
        if link != h5l.TYPE_HARD:
            code, reason = _LINKS.get(link, _OTHER_LINK)
            raise RefusedError(code, place.where, reason)
        if len(name) > self.checker.bytes.file.limits.name:
            raise RefusedError(
                "name", place.where[:200], say("its name is {name} bytes long.", name=len(name))
            )
        if address in self.seen:
            raise RefusedError(
                "alias",
                place.where,
                say("it is the same object as /{seen}.", seen=self.seen[address]),
            )
        self.seen[address] = place.name
        item = h5o.open(group, name)
        if isinstance(item, h5g.GroupID):
            self.group(item, place)
        elif isinstance(item, h5d.DatasetID):
            found, doubt = self.checker.dataset(item, place, address)
            self.datasets.append(found)
            if doubt:
                self.note(doubt)

    def attributes(self, root: Any) -> Mapping[str, Any]:
        """Attributes of the root; without them the rest is still worth having."""
        file = self.checker.bytes.file
        try:
            with library(file.name):
                return attributes_of(root, file.limits, file.name)
        except RefusedError as refusal:
            self.note(refusal.problem)
            return {}

    def note(self, problem: Problem) -> None:
        """Keep a problem; beyond the limit only count it."""
        if len(self.problems) < self.checker.bytes.file.limits.problems:
            self.problems.append(problem)
        else:
            self.uncounted += 1


def _members(group: Any, tracked: bool, most: int, where: str) -> list[tuple[bytes, int, int]]:
    """Name, kind and target address of each link: in creation order if recorded, else natural."""
    found: list[tuple[bytes, int, int]] = []

    def keep(name: bytes, info: Any) -> bool | None:
        found.append((name, info.type, info.u))  # now: the library fills one and the same info
        return True if len(found) > most else None

    links = group.links
    links.iterate(keep, info=True, idx_type=h5.INDEX_CRT_ORDER if tracked else h5.INDEX_NAME)
    if len(found) > most:
        raise RefusedError("objects", where, say("the file holds too many objects."))
    return found if tracked else sorted(found, key=lambda each: natural_key(escaped(each[0])))


def walk(file: DumpFile) -> Contents:
    """Everything readable in a file, and everything refused. LoadError if it cannot be opened."""
    with opened(file) as (handle, notes):
        status = file.path.stat()
        source = FileBytes(file, status.st_size, status.st_mtime_ns)
        visit = _Walk(Checker(source, Budget(status.st_size, file.limits.storage_chunks)))
        visit.problems.extend(notes)
        with library(file.name):
            root = h5g.open(handle, b"/")
            visit.seen[h5o.get_info(root).addr] = ""
            attributes = visit.attributes(root)
            visit.group(root, Place(file.name))
    if visit.uncounted:
        more = say("{uncounted} more problems are not listed.", uncounted=visit.uncounted)
        visit.problems.append(Problem("more", file.name, more))
    version = superblock_version(file.path)
    return Contents(file, version, attributes, tuple(visit.datasets), tuple(visit.problems))
