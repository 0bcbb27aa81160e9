"""The one door to the HDF5 library: one lock, its errors translated, files opened read-only."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from h5py import h5f, h5fd, h5p

from core.runs import Problem
from language import say, sentences
from loaders.hdf5.superblock import signature_offset, stored_end
from loaders.names import escaped
from loaders.part import DumpFile, RefusedError

# The library is not thread-safe; h5py's own lock is taken per call, which lets a walk interleave
# with another thread's open and close of the same file.
_LOCK = threading.RLock()
# What h5py raises for a file that is not as it should be.
BROKEN = (OSError, RuntimeError, KeyError, ValueError, MemoryError)
_LONGEST = 1 << 60  # bytes; no file is longer


@contextlib.contextmanager
def library(where: str, *, code: str = "damaged") -> Iterator[None]:
    """Hold the library's lock; its complaints about `where` become a RefusedError."""
    with _LOCK:
        try:
            yield
        except BROKEN as error:
            raise refused(error, where, code=code) from error


def refused(error: BaseException, where: str, *, code: str = "damaged") -> RefusedError:
    """A complaint of the library as a problem of the dump."""
    return RefusedError(code, where, say("HDF5 cannot read it ({error}).", error=_said(error)))


def _said(error: BaseException) -> str:
    text = str(error.args[0]) if error.args else type(error).__name__
    return escaped(text.encode("utf-8", "surrogateescape"))[:200]


@contextlib.contextmanager
def opened(file: DumpFile) -> Iterator[tuple[Any, tuple[Problem, ...]]]:
    """The low-level file id, and notes on how it could be opened. Holds the library's lock."""
    require_regular(file)
    with _LOCK:
        handle, notes = _open(file)
        try:
            yield handle, notes
        finally:
            with library(file.name):
                handle.close()


def require_regular(file: DumpFile) -> None:
    """Refuse links, pipes and devices: opening those leads elsewhere or never returns."""
    try:
        mode = file.path.lstat().st_mode
    except OSError as error:
        raise RefusedError(
            "gone", file.name, say("it cannot be found ({strerror}).", strerror=error.strerror)
        ) from error
    if stat.S_ISLNK(mode):
        raise RefusedError(
            "symlink", file.name, say("it is a symbolic link, which is not followed.")
        )
    if not stat.S_ISREG(mode):
        raise RefusedError("not-regular-file", file.name, say("it is not a regular file."))


def _open(file: DumpFile) -> tuple[Any, tuple[Problem, ...]]:
    try:
        return h5f.open(os.fsencode(file.path), h5f.ACC_RDONLY, _access()), ()
    except BROKEN as error:
        said = str(error)
    if "truncated file" in said:
        return _open_truncated(file)
    if "open for write" in said or "SWMR" in said:
        return _open_unfinished(file)
    raise RefusedError(
        "damaged", file.name, say("HDF5 cannot open it ({oserror}).", oserror=_said(OSError(said)))
    )


def _access() -> Any:
    """Plain reads, no file locks (a writer or a network drive may hold one), close closes all."""
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_fclose_degree(h5f.CLOSE_STRONG)
    access.set_fapl_sec2()
    access.set_file_locking(False, True)
    return access


def _open_unfinished(file: DumpFile) -> tuple[Any, tuple[Problem, ...]]:
    """A file its writer has not closed: readable if it was written for concurrent readers."""
    hint = say("If its writer has ended, `h5clear -s FILE` removes the mark.")
    try:
        handle = h5f.open(os.fsencode(file.path), h5f.ACC_RDONLY | h5f.ACC_SWMR_READ, _access())
    except BROKEN as error:
        reason = say("it is marked as being written and was not closed.")
        raise RefusedError("open-for-write", file.name, reason, hint) from error
    reason = say("it is marked as being written; it may be incomplete.")
    return handle, (Problem("open-for-write", file.name, sentences((reason, hint))),)


def _open_truncated(file: DumpFile) -> tuple[Any, tuple[Problem, ...]]:
    """A file shorter than it says: opened as if zeros followed, to read what is whole."""
    size, end = file.path.stat().st_size, _stated_end(file)
    said = (
        say("only {size} of its {end} bytes are here.", size=size, end=end)
        if end
        else say("it ends after {size} bytes.", size=size)
    )
    refusal = RefusedError("truncated", file.name, said, say("Copy or upload it again."))
    if end is None:
        raise refusal
    padded = _Padded(file.path, end)
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_fclose_degree(h5f.CLOSE_STRONG)
    access.set_fileobj_driver(h5fd.fileobj_driver, padded)
    try:
        handle = h5f.open(repr(padded).encode(), h5f.ACC_RDONLY, access)
    except BROKEN as error:
        raise refusal from error
    return handle, (refusal.problem,)


def _stated_end(file: DumpFile) -> int | None:
    """The length the file should have."""
    with file.path.open("rb") as stream:
        start = signature_offset(stream.read(8), file.path) or 0
        stream.seek(start)
        end = stored_end(stream.read(96))
    return None if end is None or end > _LONGEST else start + end


class _Padded(io.RawIOBase):
    """A truncated file seen at the length its superblock states, zeros in place of what is lost."""

    def __init__(self, path: Path, end: int) -> None:
        super().__init__()
        self._file = path.open("rb", buffering=0)
        self._end = end
        self._at = 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move; the library asks for the end this way."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._end}[whence]
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        """Where the next read starts."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with what the file has, then zeros."""
        view = memoryview(buffer).cast("B")
        inside = 0 <= self._at < self._end  # a damaged address may lie anywhere
        data = os.pread(self._file.fileno(), len(view), self._at) if inside else b""
        view[: len(data)] = data
        view[len(data) :] = bytes(len(view) - len(data))
        self._at += len(view)
        return len(view)

    def close(self) -> None:
        """Close the file beneath."""
        self._file.close()
        super().close()
