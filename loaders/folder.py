"""Opens a dump: a folder of files or one file, each read by the loader that recognises it."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from core.errors import LoadError
from core.runs import Problem, Run
from language import say
from loaders.assembly import Opened, Stamp, assembled
from loaders.claims import claimed
from loaders.limits import Limits
from loaders.listing import Listing, holds_tensors, listed, looks_like_dump
from loaders.part import DumpFile, RefusedError
from loaders.registry import LOADERS, Loader
from loaders.template import Template, parsed, templated
from loaders.unpacked import expanded, stem_of

_HEAD = 4096


def open_run(
    path: Path,
    *,
    label: str | None = None,
    limits: Limits | None = None,
    template: str | None = None,
    scratch: Path | None = None,
) -> Run:
    """The dump at a path, described; `label` names it, by default the folder's own name.

    `template` says what the names of files without a grammar of their own mean. Archives are
    unpacked into `scratch`, by default a folder that lasts as long as the process. LoadError if
    nothing can be read, or the template is none; single troubles are problems of the run.
    """
    LOADERS.discover()
    meaning = parsed(template) if template else None
    try:
        root = path.resolve(strict=True)  # the user's own link is followed, links inside are not
    except (OSError, RuntimeError) as error:
        raise LoadError(
            say("There is no dump at {path}.", path=path), say("Check the path.")
        ) from error
    listing = expanded(listed(root, limits or Limits()), scratch)
    unread: Counter[str] = Counter()
    opened = []
    for file in claimed(listing.files):
        try:
            part = _part(file, listing, unread, meaning)
        except RefusedError as refusal:
            listing.problems.append(Problem(refusal.code, file.name, refusal.problem.message))
        except LoadError as error:
            listing.problems.append(Problem("unreadable", file.name, str(error)))
        else:
            opened.extend([part] if part else [])
    listing.problems.extend(_unread_problems(unread))
    return assembled(opened, listing, label=label or _label(root))


def _part(
    file: DumpFile, listing: Listing, unread: Counter[str], meaning: Template | None
) -> Opened | None:
    """A file as its loader reads it, None if it belongs to no format known here."""
    status, head = _first_look(file)
    loader = LOADERS.loader_for(head, file.path)
    if loader is not None:
        beside = (stamp(each.name, each.path.lstat()) for each in file.beside.values())
        part = loader.open(file)
        if meaning is not None and loader.bare:
            part = templated(part, file, meaning)
        return Opened(file, part, (stamp(file.name, status), *beside))
    if looks_like_dump(file.path):
        what = say("it is empty.") if not head else say("its content is of no format known here.")
        listing.problems.append(Problem("unknown-format", file.name, what))
    elif holds_tensors(file.path):  # worth a word, not one a file
        unread[file.path.suffix.lower()] += 1
    else:
        listing.ignored += 1
    return None


def stamp(name: str, status: os.stat_result) -> Stamp:
    """What tells one state of a file from another."""
    return name, status.st_size, status.st_mtime_ns


def _first_look(file: DumpFile) -> tuple[os.stat_result, bytes]:
    try:
        descriptor = os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise RefusedError("unreadable", file.name, f"{error.strerror}.") from error
    try:
        return os.fstat(descriptor), os.pread(descriptor, _HEAD, 0)
    finally:
        os.close(descriptor)


def _unread_problems(unread: Counter[str]) -> list[Problem]:
    known = ", ".join(loader.title for loader in _titles())
    return [
        Problem(
            "unknown-format",
            f"*{suffix}",
            say("{count} files are not read. Known: {known}.", count=count, known=known),
        )
        for suffix, count in sorted(unread.items())
    ]


def _titles() -> list[Loader]:
    return [LOADERS[name] for name in sorted(LOADERS)]


def _label(root: Path) -> str:
    return (stem_of(root.name) if root.is_file() else root.name) or str(root)
