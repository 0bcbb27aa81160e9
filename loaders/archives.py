"""Archives of dumps, unpacked as what they are: text from strangers.

Nothing leaves the folder it is unpacked into, no link or device is made, no file is written twice.
A member that must not be is named and left out; an archive that is a bomb is refused whole.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from core.runs import Problem
from language import say
from loaders.archive import SIGNATURE, Member, members_of
from loaders.decompressed import Metered, is_compressed
from loaders.file_bytes import FileBytes
from loaders.limits import Limits
from loaders.naming import bounded
from loaders.part import DumpFile, RefusedError
from loaders.streamed import inflated
from loaders.unpacking import Unpacking

_HEAD = 512
_TAR_AT, _TAR = 257, b"ustar"
_EMPTY_ZIP = b"PK\x05\x06"
_COPIED = 1 << 20
_FOLDERS_TOO = 2  # members for each file, of which folders are some
_FREE = 0.9  # of the free space may be filled


def is_tar(head: bytes) -> bool:
    """Whether bytes begin as a tar of this century."""
    return head[_TAR_AT:].startswith(_TAR)


def is_archive(head: bytes) -> bool:
    """Whether a file begins as zip, tar, gzip, bzip2 or xz."""
    zipped = head.startswith((SIGNATURE, _EMPTY_ZIP))
    return zipped or is_compressed(head) or is_tar(head)


def unpack(path: Path, into: Path, limits: Limits, *, name: str = "") -> tuple[Problem, ...]:
    """Unpack an archive into a folder that is not there yet; what was left out is named.

    `name` is what the archive is called in problems. RefusedError, and no folder, for a bomb, for
    too many files and for what is no archive. All files get the archive's time, so that unpacking
    again gives the same dump.
    """
    file = DumpFile(path, name or path.name, limits)
    bytes_ = FileBytes.of(file)
    into.mkdir(mode=0o700)
    try:
        most = min(limits.unpacked, int(shutil.disk_usage(into).free * _FREE))
        if bytes_.size > limits.ratio_from // limits.ratio:
            most = min(most, limits.ratio * bytes_.size)
        else:
            most = min(most, limits.ratio_from)
        unpacking = Unpacking(file, into, most, bytes_.mtime_ns)
        with bytes_.opened() as descriptor:
            head = os.pread(descriptor, _HEAD, 0)
            if head.startswith((SIGNATURE, _EMPTY_ZIP)):
                _unzip(unpacking, bytes_)
            else:
                _unroll(unpacking, Metered(descriptor, bytes_, head, most * 2 + limits.document))
    except BaseException:
        shutil.rmtree(into, ignore_errors=True)
        raise
    return bounded(unpacking.problems, file)


def _unzip(unpacking: Unpacking, bytes_: FileBytes) -> None:
    members, refused = members_of(bytes_)
    unpacking.problems.extend(refusal.problem for refusal in refused)
    for member in members.values():
        if not member.name.endswith("/"):
            unpacking.add(member.name, _pieces(bytes_, member), kind=stat.S_IFMT(member.mode))


def _pieces(bytes_: FileBytes, member: Member) -> Iterator[bytes]:
    if member.deflated:
        yield from inflated(bytes_, member)
        return
    with bytes_.opened() as descriptor:
        end = member.offset + member.stored
        for at in range(member.offset, end, _COPIED):
            yield os.pread(descriptor, min(_COPIED, end - at), at)


def _unroll(unpacking: Unpacking, stream: Metered) -> None:
    """A tar, compressed or not, or one file that was compressed alone."""
    if is_tar(stream.peek(_HEAD)):
        _untar(unpacking, stream)
    else:
        name = PurePosixPath(unpacking.file.path.name)
        unpacking.add(name.stem or "dump", iter(lambda: stream.read(_COPIED), b""))


def _untar(unpacking: Unpacking, stream: Metered) -> None:
    file, limits = unpacking.file, unpacking.file.limits
    stream.allow(limits.document)
    try:
        with tarfile.open(fileobj=stream, mode="r|", errorlevel=1) as archive:  # type: ignore[call-overload]
            rest = 0
            while True:
                stream.allow(limits.document + rest)
                info = archive.next()
                if info is None:
                    return
                rest = info.size + tarfile.BLOCKSIZE
                stream.allow(limits.document + rest)
                _add(unpacking, archive, info)
    except (tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError) as error:
        code = "truncated" if "end of" in str(error) else "damaged"
        raise RefusedError(
            code, file.name, say("its list of files: {error}.", error=error)
        ) from error


def _add(unpacking: Unpacking, archive: tarfile.TarFile, info: tarfile.TarInfo) -> None:
    unpacking.seen += 1
    if unpacking.seen > _FOLDERS_TOO * unpacking.file.limits.files:
        what = say("it lists more than {seen} members.", seen=unpacking.seen)
        raise RefusedError("objects", unpacking.file.name, what)
    if info.isdir():
        return
    if not info.isreg():
        kind = stat.S_IFLNK if info.issym() or info.islnk() else stat.S_IFCHR
        unpacking.add(info.name, (), kind=kind)
        return
    content = archive.extractfile(info)
    pieces = iter(lambda: content.read(_COPIED) if content else b"", b"")
    unpacking.add(info.name, _exactly(pieces, info.size, unpacking.file.name))


def _exactly(pieces: Iterator[bytes], size: int, where: str) -> Iterator[bytes]:
    for piece in pieces:
        size -= len(piece)
        yield piece
    if size > 0:
        raise RefusedError("truncated", where, say("it ends within a file."))
