"""Formats of several files: which files of a dump another one speaks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from core.errors import LoadError
from loaders.part import DumpFile
from loaders.registry import LOADERS, Claim

_HEAD = 4096


def claimed(files: Sequence[DumpFile]) -> list[DumpFile]:
    """The files to open, each with those beside it that are its own; these stand no more alone.

    A file belongs to the nearest folder above it that has a lead owning it; two leads of one folder
    share what is theirs.
    """
    leads = {file.name: claim for file in files if (claim := _claim(file)) is not None}
    folders: dict[str, list[tuple[str, Claim]]] = {}
    for name, claim in leads.items():
        folders.setdefault(_folder(name), []).append((name, claim))
    beside: dict[str, dict[str, DumpFile]] = {name: {} for name in leads}
    alone = []
    for file in files:
        owners = [] if file.name in leads else list(_owners(file.name, folders))
        for lead, within in owners:
            beside[lead][within] = file
        if not owners:
            alone.append(file)
    return [replace(f, beside=beside[f.name]) if f.name in beside else f for f in alone]


def _claim(file: DumpFile) -> Claim | None:
    """The claim of the format a file leads, None for the many that lead none."""
    loaders = [x for x in LOADERS.values() if x.claim and x.claim.leads(file.path.name)]
    if not loaders:
        return None
    try:
        with file.path.open("rb") as stream:  # the listing has it as a regular file
            head = stream.read(_HEAD)
        return next((each.claim for each in loaders if each.sniff(head, file.path)), None)
    except (OSError, LoadError):
        return None  # said when the file itself is opened


def _owners(name: str, folders: dict[str, list[tuple[str, Claim]]]) -> Iterator[tuple[str, str]]:
    """Leads that own a file, of the nearest folder that has any, and its path within that."""
    folder = _folder(name)
    while True:
        within = name.removeprefix(f"{folder}/") if folder else name
        found = [(lead, within) for lead, claim in folders.get(folder, ()) if claim.owns(within)]
        if found or not folder:
            yield from found
            return
        folder = _folder(folder)


def _folder(name: str) -> str:
    return name.rpartition("/")[0]
