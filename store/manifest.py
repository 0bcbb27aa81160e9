"""What an upload will hold, as the browser says it: checked before a byte is accepted."""

from __future__ import annotations

import hashlib
import itertools
import json
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from core.errors import UploadError
from language import say

MAX_FILES = 200_000
_MAX_PATH, _MAX_NAME, _MAX_DEPTH = 2048, 255, 32
_ID_LENGTH = 24
_CONTROL = {"Cc", "Cs"}


class UploadTooLargeError(UploadError):
    """More bytes or files than this server takes."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: its path inside the upload, with `/`, size in bytes, time in milliseconds."""

    path: str
    size: int
    mtime: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of an upload in the order in which they form one stream of bytes."""

    user: str
    entries: tuple[Entry, ...]

    @property
    def id(self) -> str:
        """Equal for the same files of the same user, so that choosing a folder again resumes."""
        text = json.dumps([self.user, [(e.path, e.size, e.mtime) for e in self.entries]])
        return hashlib.sha256(text.encode()).hexdigest()[:_ID_LENGTH]

    @property
    def total(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.entries)

    @property
    def starts(self) -> list[int]:
        """Where each file begins in the stream."""
        sizes = (entry.size for entry in self.entries[:-1])
        return list(itertools.accumulate(sizes, initial=0))

    @property
    def top(self) -> str | None:
        """The one folder that everything is in, if there is one."""
        tops = {entry.path.split("/")[0] for entry in self.entries if "/" in entry.path}
        loose = any("/" not in entry.path for entry in self.entries)
        return tops.pop() if len(tops) == 1 and not loose else None

    @property
    def name(self) -> str:
        """What to call the dump: its folder, else its first file."""
        return self.top or PurePosixPath(self.entries[0].path).stem

    def to_json(self) -> str:
        """Text that `manifest` reads back."""
        files = [{"path": e.path, "size": e.size, "mtime": e.mtime} for e in self.entries]
        return json.dumps({"user": self.user, "files": files})


def manifest(user: str, files: Any, *, max_total: int) -> Manifest:
    """A checked manifest; UploadError says what is wrong with it."""
    if not isinstance(files, list) or not files:
        raise UploadError(
            say("The upload names no files."), say("Choose a folder that is not empty.")
        )
    if len(files) > MAX_FILES:
        raise UploadError(
            say(
                "The folder holds {files:,} files; at most {max_files:,} are taken.",
                files=len(files),
                max_files=MAX_FILES,
            )
        )
    entries = tuple(sorted((_entry(item) for item in files), key=lambda entry: entry.path))
    _check_tree([entry.path for entry in entries])
    checked = Manifest(user, entries)
    if checked.total > max_total:
        raise UploadTooLargeError(
            say(
                "The folder holds {total:,} bytes; this server takes {max_total:,}.",
                total=checked.total,
                max_total=max_total,
            ),
            say("Upload fewer steps, or raise PX_MAX_UPLOAD."),
        )
    return checked


def from_json(text: str) -> Manifest:
    """A manifest that was kept on disk."""
    kept = json.loads(text)
    return Manifest(kept["user"], tuple(_entry(item) for item in kept["files"]))


def _entry(item: Any) -> Entry:
    if not isinstance(item, Mapping):
        raise UploadError(say("The upload's list of files is malformed."))
    path, size, mtime = item.get("path"), item.get("size"), item.get("mtime", 0)
    if not isinstance(path, str) or not _is_safe(path):
        raise UploadError(
            say("The file name {path} is not allowed.", path=ascii(path)[:200]),
            say("Rename the file."),
        )
    if type(size) is not int or size < 0 or type(mtime) is not int:
        raise UploadError(
            say("The size or time of {path} is not a number.", path=ascii(path)[:200])
        )
    return Entry(path, size, mtime)


def _is_safe(path: str) -> bool:
    """Whether a path stays inside its folder on any system and can be shown."""
    names = path.split("/")
    plain = len(names) <= _MAX_DEPTH and all(map(_is_plain, names))
    return plain and len(path.encode()) <= _MAX_PATH


def _is_plain(name: str) -> bool:
    if name in ("", ".", "..") or "\\" in name:
        return False
    if any(unicodedata.category(character) in _CONTROL for character in name):
        return False  # also lone surrogates, which no file system name can be made from
    return len(name.encode()) <= _MAX_NAME


def _check_tree(paths: Iterable[str]) -> None:
    """Refuse a path given twice and a file that is also a folder."""
    seen: set[str] = set()
    folders: set[str] = set()
    for path in paths:
        if path in seen:
            raise UploadError(say("The file {path} is named twice.", path=path))
        seen.add(path)
        folders.update(map(str, list(PurePosixPath(path).parents)[:-1]))
    for path in seen & folders:
        raise UploadError(say("{path} is named as a file and as a folder.", path=path))
