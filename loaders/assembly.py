"""Puts the files of a dump together into one run: order, ids, provenance, fingerprint."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import blake3

from core.errors import LoadError
from core.records import changed
from core.runs import Array, Problem, Run, Selection
from core.tensors import TensorInfo
from language import say
from loaders.listing import Listing
from loaders.part import DumpFile, Part, Source

_MOST_VALUES = 4  # distinct values of one provenance key that are spelled out


Stamp = tuple[str, int, int]  # name, size and time of change of a file


@dataclass(frozen=True, slots=True)
class Opened:
    """A file that a loader has read, with the stamps of all files it speaks for."""

    file: DumpFile
    part: Part
    stamps: tuple[Stamp, ...]


@dataclass(frozen=True, slots=True)
class Sources:
    """The values of a run, by tensor id."""

    by_id: Mapping[str, Source]

    def chunks(self, tensor: TensorInfo, elements: int, start: int = 0) -> Iterator[Array]:
        """Flat row-major stretches of exactly `elements` from `start` on (the last one shorter)."""
        return self.by_id[tensor.id].chunks(elements, start)

    def read(self, tensor: TensorInfo, selection: Selection) -> Array:
        """The selected part: integers drop an axis, slices keep it."""
        return self.by_id[tensor.id].read(selection)

    def is_seekable(self, tensor: TensorInfo) -> bool:
        """Whether chunks from the middle on cost no more than from the beginning."""
        return self.by_id[tensor.id].seekable

    def only(self, tensors: Collection[str]) -> Sources:
        """The values of these tensors alone."""
        return Sources({tensor_id: self.by_id[tensor_id] for tensor_id in tensors})


def assembled(opened: Sequence[Opened], listing: Listing, *, label: str) -> Run:
    """One run of all files: by step, within that by rank, within that in the files' own order."""
    problems = [*listing.problems, *(p for each in opened for p in each.part.problems)]
    opened = _ranked(opened)
    items = [
        (info, source, each.part.calls)
        for each, prefix in zip(opened, _prefixes(opened), strict=True)
        for info, source in _named(each.part, prefix)
    ]
    if not items:
        raise LoadError(
            say("{label} holds no tensor that can be read.", label=label), _why(problems)
        )
    items.sort(key=lambda item: (_first(item[0].step), _first(item[0].rank)))
    tensors: dict[str, TensorInfo] = {}
    sources: dict[str, Source] = {}
    for order, (info, source, calls) in enumerate(items):
        named = _called(info, tensors) if calls else changed(info, id=_free(info.id, tensors))
        tensors[named.id] = changed(named, order=order)
        sources[named.id] = source
    return Run(
        label=label,
        fingerprint=_fingerprint(opened),
        tensors=tensors,
        values=Sources(sources),
        provenance=_provenance(opened, listing),
        problems=tuple(problems),
    )


def _ranked(opened: Sequence[Opened]) -> list[Opened]:
    """Processes that wrote the same step count as its ranks, in the order of their numbers.

    One alone stays without a rank: its number means nothing to another run.
    """
    steps: dict[int | None, set[int]] = defaultdict(set)
    for each in opened:
        if each.part.process is not None:
            for info, _ in each.part.items:
                steps[info.step].add(each.part.process)
    ranks = {step: sorted(found) for step, found in steps.items() if len(found) > 1}
    return [replace(each, part=_with_rank(each.part, ranks)) for each in opened]


def _with_rank(part: Part, ranks: Mapping[int | None, list[int]]) -> Part:
    if part.process is None or not ranks:
        return part
    items = tuple(
        (replace(info, rank=ranks[info.step].index(part.process)), source)
        if info.step in ranks and info.rank is None
        else (info, source)
        for info, source in part.items
    )
    said = {"ranks": say("processes in the order of their numbers")}
    return replace(part, items=items, provenance={**part.provenance, **said})


def _named(part: Part, prefix: str) -> Iterator[tuple[TensorInfo, Source]]:
    for info, source in part.items:
        if prefix:
            module = ".".join(filter(None, (prefix.replace("/", "."), info.module)))
            info = replace(info, name=f"{prefix}/{info.name}", module=module)
        yield changed(info, id=_id(info)), source


def _id(info: TensorInfo) -> str:
    step = "" if info.step is None else f"step{info.step}/"
    rank = "" if info.rank is None else f"rank{info.rank}/"
    return f"{step}{rank}{info.name}"


def _first(number: int | None) -> int:
    return -1 if number is None else number


def _prefixes(opened: Sequence[Opened]) -> list[str]:
    """What goes before the names of a file that shares an id with another file, else nothing.

    Its folder if that tells the files apart, else its path without suffix.
    """
    holders: dict[str, set[int]] = defaultdict(set)
    for number, each in enumerate(opened):
        for info, _ in () if each.part.calls else each.part.items:
            holders[_id(info)].add(number)
    clashing = set().union(*(files for files in holders.values() if len(files) > 1))
    paths = [PurePosixPath(each.file.name) for each in opened]
    folders = {paths[number].parent for number in clashing}
    apart = len(folders) == len(clashing) and PurePosixPath() not in folders
    return [
        str(path.parent if apart else path.with_suffix("")) if number in clashing else ""
        for number, path in enumerate(paths)
    ]


def _free(tensor_id: str, taken: Mapping[str, TensorInfo]) -> str:
    """The id itself, or with a number if the dump uses a name twice for one step and rank."""
    if tensor_id not in taken:
        return tensor_id
    number = 2
    while f"{tensor_id}~{number}" in taken:
        number += 1
    return f"{tensor_id}~{number}"


def _called(info: TensorInfo, taken: Mapping[str, TensorInfo]) -> TensorInfo:
    """The tensor with the number of its call, from 0, which its id has from 1 on."""
    call = 0
    while (tensor_id := f"{info.id}@{call}" if call else info.id) in taken:
        call += 1
    return changed(info, id=tensor_id, call=call)


def _fingerprint(opened: Sequence[Opened]) -> str:
    digest = blake3.blake3()
    for stamp in sorted({stamp for each in opened for stamp in each.stamps}):
        digest.update(repr(stamp).encode())
    for template in sorted({each.part.provenance.get("template", "") for each in opened}):
        digest.update(template.encode())
    return digest.hexdigest()


def _provenance(opened: Sequence[Opened], listing: Listing) -> dict[str, str]:
    values: dict[str, dict[str, None]] = defaultdict(dict)
    for each in opened:
        for key, value in each.part.provenance.items():
            values[key][value] = None
    joined = {key: _joined(list(found)) for key, found in values.items()}
    ignored = {"files.ignored": str(listing.ignored)} if listing.ignored else {}
    return joined | {"files": str(len(opened))} | ignored


def _joined(values: list[str]) -> str:
    more = len(values) - _MOST_VALUES
    shown = ", ".join(values[:_MOST_VALUES])
    return say("{name} and {n} more", name=shown, n=more) if more > 0 else shown


def _why(problems: Sequence[Problem]) -> str:
    if not problems:
        return say("Give a folder or file with dumps.")
    first = problems[0]
    return say(
        "First of {problems} problems: {where}: {message}",
        problems=len(problems),
        where=first.where,
        message=first.message,
    )
