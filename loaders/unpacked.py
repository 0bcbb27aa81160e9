"""The files of a dump with its archives unpacked beside it."""

from __future__ import annotations

import atexit
import functools
import hashlib
import json
import os
import secrets
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path, PurePosixPath

from core.errors import LoadError
from core.runs import Problem
from language import say
from loaders.archives import is_archive, unpack
from loaders.listing import Listing, listed
from loaders.names import only_counts
from loaders.part import DumpFile, RefusedError
from loaders.registry import LOADERS

_HEAD = 4096
_SUFFIXES = (".zip", ".tar", ".gz", ".tgz", ".xz", ".txz", ".bz2", ".tbz2")


def expanded(listing: Listing, into: Path | None) -> Listing:
    """A listing in which archives are replaced by the files in them; archives in these are not.

    They are unpacked into a folder of their own below `into`, once for each state of the archive;
    without `into`, into one that is removed when the process ends. Files are called by the name of
    the archive without its suffix and their own without a folder that all are in; a single archive
    needs no name.
    """
    archives = [file for file in listing.files if _is_archive(file)]
    if not archives:
        return listing
    alone = len(listing.files) == 1
    found = Listing([], listing.problems, listing.ignored)
    for file in listing.files:
        if file not in archives:
            found.files.append(file)
            continue
        try:
            inside = _members(file, into or _scratch())
        except RefusedError as refusal:
            found.problems.append(refusal.problem)
        except OSError as error:  # a full disk, or a folder that must not be written
            reason = say("it cannot be unpacked: {strerror}.", strerror=error.strerror)
            found.problems.append(Problem("unreadable", file.name, reason))
        else:
            above = "" if alone else f"{stem_of(file.name)}/"
            top = _top([each.name for each in inside.files])
            found.files.extend(
                replace(each, name=above + each.name.removeprefix(top)) for each in inside.files
            )
            found.problems.extend(inside.problems)
            found.ignored += inside.ignored
    return found


def stem_of(name: str) -> str:
    """The name of an archive without its suffixes."""
    path = PurePosixPath(name)
    while path.suffix.lower() in _SUFFIXES:
        path = path.with_suffix("")
    return str(path)


def _top(names: list[str]) -> str:
    """The one folder all files are in, as most archives have; one that counts steps stays."""
    tops = {name.partition("/")[0] for name in names}
    if len(tops) != 1 or not all("/" in name for name in names) or only_counts(min(tops)):
        return ""
    return f"{tops.pop()}/"


def _is_archive(file: DumpFile) -> bool:
    """Whether a file is an archive that no loader takes for one of its own, as it does a `.pt`."""
    try:
        descriptor = os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False  # said when the file is opened
    try:
        head = os.pread(descriptor, _HEAD, 0)
    finally:
        os.close(descriptor)
    try:
        return is_archive(head) and LOADERS.loader_for(head, file.path) is None
    except LoadError:
        return False  # a loader's own, and broken


def _members(file: DumpFile, into: Path) -> Listing:
    status = file.path.lstat()
    key = f"{file.path}\0{status.st_size}\0{status.st_mtime_ns}"
    place = into / hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:24]
    told = place.with_suffix(".json")
    if not place.is_dir():
        into.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = into / f".{place.name}-{secrets.token_hex(6)}"
        problems = unpack(file.path, draft, file.limits, name=file.name)
        told.write_text(json.dumps([[p.code, p.where, p.message] for p in problems]))
        _settle(draft, place)
    inside = listed(place, file.limits)
    inside.problems.extend(Problem(*said) for said in json.loads(told.read_text()))
    return inside


def _settle(draft: Path, place: Path) -> None:
    try:
        draft.rename(place)
    except OSError:  # another process was quicker, with the same content
        shutil.rmtree(draft, ignore_errors=True)
        if not place.is_dir():
            raise


@functools.cache
def _scratch() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="precision-explorer-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
