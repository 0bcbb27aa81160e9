"""The bytes of one file of a dump: read or mapped while it is what it was when it was opened."""

from __future__ import annotations

import contextlib
import mmap
import os
import stat
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from language import say
from loaders.part import DumpFile, RefusedError

_MAPPED_FROM = 1 << 20  # bytes; copying less is cheaper than mapping it
_NEAR, _NEAR_FROM = 1 << 18, 1 << 16  # bytes read at once for smaller pieces, one after another


@dataclass(frozen=True, slots=True)
class FileBytes:
    """The bytes of a file as it was when the dump was opened."""

    file: DumpFile
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, file: DumpFile) -> FileBytes:
        """A regular file as it is now; links are not followed."""
        try:
            status = file.path.lstat()
        except OSError as error:
            raise RefusedError("unreadable", file.name, f"{error.strerror}.") from error
        if not stat.S_ISREG(status.st_mode):
            raise RefusedError("not-regular-file", file.name, say("it is not a regular file."))
        return cls(file, status.st_size, status.st_mtime_ns)

    @contextlib.contextmanager
    def opened(self) -> Iterator[int]:
        """A descriptor for reading; RefusedError when the file is gone or no longer the same."""
        try:
            descriptor = os.open(self.file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise self._gone(error) from error
        try:
            self._require_unchanged(os.fstat(descriptor))
            yield descriptor
            self._require_unchanged(os.fstat(descriptor))
        finally:
            os.close(descriptor)

    def _require_unchanged(self, now: os.stat_result) -> None:
        if (now.st_size, now.st_mtime_ns) != (self.size, self.mtime_ns):
            hint = say("Open the dump again.")
            raise RefusedError("changed", self.file.name, say("it has changed since."), hint)

    def elements(
        self, dtype: np.dtype[Any], offset: int, count: int, *, ahead: int = 0
    ) -> NDArray[Any]:
        """`count` elements from byte `offset` on, flat and read-only; large ones are mapped.

        The system is told that `ahead` bytes beyond them are wanted next.
        """
        nbytes = count * dtype.itemsize
        number, inside = divmod(offset, _NEAR)
        if nbytes < _NEAR_FROM and inside + nbytes <= _NEAR:
            return np.frombuffer(self._near(number, inside + nbytes), dtype, count, inside)
        with self.opened() as descriptor:
            if ahead:
                os.posix_fadvise(descriptor, offset + nbytes, ahead, os.POSIX_FADV_WILLNEED)
            if nbytes < _MAPPED_FROM:
                return np.frombuffer(bytes_at(descriptor, offset, nbytes, self), dtype)
            page = offset % mmap.ALLOCATIONGRANULARITY
            mapped = mmap.mmap(
                descriptor, page + nbytes, mmap.MAP_SHARED, mmap.PROT_READ, offset=offset - page
            )
        return np.frombuffer(mapped, dtype, count, page)

    def _near(self, number: int, nbytes: int) -> bytes:
        """The stretch of that number, at least `nbytes` of it; files of small tensors have many."""
        for file, held, data in _HELD.stretches:
            if file is self and held == number and len(data) >= nbytes:
                self._require_still_there()
                return data
        with self.opened() as descriptor:
            data = os.pread(descriptor, _NEAR, number * _NEAR)
        if len(data) < nbytes:
            raise RefusedError("truncated", self.file.name, say("it ends within a tensor."))
        _HELD.stretches.append((self, number, data))
        return data

    def _require_still_there(self) -> None:
        try:
            self._require_unchanged(self.file.path.lstat())
        except OSError as error:
            raise self._gone(error) from error

    def _gone(self, error: OSError) -> RefusedError:
        reason = say("it can no longer be read ({strerror}).", strerror=error.strerror)
        return RefusedError("gone", self.file.name, reason)


class _Held(threading.local):
    """Stretches of files that this thread read last."""

    def __init__(self) -> None:
        self.stretches: deque[tuple[FileBytes, int, bytes]] = deque(maxlen=4)


_HELD = _Held()


def bytes_at(descriptor: int, offset: int, nbytes: int, file: FileBytes) -> bytes:
    """Exactly `nbytes` bytes; RefusedError when the file ends before."""
    data = os.pread(descriptor, nbytes, offset)
    if len(data) != nbytes:
        raise RefusedError("truncated", file.file.name, say("it ends within a tensor."))
    return data
