"""Files on their way out of an archive: where they may be written, and how many bytes."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from core.runs import Problem
from language import say
from loaders.names import escaped
from loaders.part import DumpFile, RefusedError

_DRIVE = re.compile(r"[A-Za-z]:")
_LONGEST = 255  # bytes of one name


@dataclass(slots=True)
class Unpacking:
    """One archive on its way into a folder."""

    file: DumpFile
    into: Path
    most: int  # bytes in all
    mtime_ns: int
    written: int = 0
    seen: int = 0
    problems: list[Problem] = field(default_factory=list)
    _taken: set[str] = field(default_factory=set)

    def add(self, name: str, pieces: Iterable[bytes], *, kind: int = stat.S_IFREG) -> None:
        """Write a member, or name why it is not written."""
        where = f"{self.file.name}: {escaped(name.encode('utf-8', 'surrogateescape'))[:300]}"
        try:
            parts = self._checked(name, where, kind)
            self._write(parts, pieces, where)
        except RefusedError as refusal:
            if refusal.code in ("ratio", "objects"):
                raise
            self.problems.append(refusal.problem)

    def _checked(self, name: str, where: str, kind: int) -> list[str]:
        """The parts of a member's path, once everything speaks for writing it."""
        if kind == stat.S_IFLNK:
            raise RefusedError("symlink", where, say("it is a link, which is not made."))
        if kind not in (0, stat.S_IFREG):
            raise RefusedError("not-regular-file", where, say("it is not a regular file."))
        parts = _parts(name, where)
        if len(parts) > self.file.limits.depth:
            raise RefusedError("depth", where, say("its folders are nested too deep."))
        if len(self._taken) >= self.file.limits.files:
            what = say("it holds more than {files} files.", files=self.file.limits.files)
            raise RefusedError("objects", self.file.name, what)
        if "/".join(parts) in self._taken:
            raise RefusedError("alias", where, say("the archive has two members of this name."))
        self._taken.add("/".join(parts))
        return parts

    def _write(self, parts: list[str], pieces: Iterable[bytes], where: str) -> None:
        target = self.into.joinpath(*parts)
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            descriptor = os.open(target, flags, 0o600)
        except OSError as error:
            raise RefusedError("alias", where, say("it is a file and a folder at once.")) from error
        try:
            with os.fdopen(descriptor, "wb") as stream:
                for piece in pieces:
                    self._count(len(piece))
                    stream.write(piece)
        except RefusedError:
            target.unlink()
            raise
        os.utime(target, ns=(self.mtime_ns, self.mtime_ns))

    def _count(self, nbytes: int) -> None:
        self.written += nbytes
        if self.written > self.most:
            raise RefusedError(
                "ratio",
                self.file.name,
                say("it unpacks to more than {most} bytes.", most=self.most),
            )


def _parts(name: str, where: str) -> list[str]:
    """The parts of a path that stays below its folder and can be shown; else RefusedError."""
    if name.startswith("/") or "\\" in name or _DRIVE.match(name):
        raise RefusedError("name", where, say("its name is the path of a system."))
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if not parts or ".." in parts:
        raise RefusedError("name", where, say("its name leads out of the archive."))
    for part in parts:
        raw = part.encode("utf-8", "surrogateescape")
        if len(raw) > _LONGEST or escaped(raw) != part:
            raise RefusedError("name", where, say("its name has characters no file needs."))
    return parts
