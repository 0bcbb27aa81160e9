"""Folders on their way in: resumable, straight to disk, flat in memory.

A folder is one stream of bytes, its files in the order of the manifest, cut into slices of one
size; 3,000 small files and one of 40 GB cost the same requests per byte. Each slice is written in
place, checked against its digest and entered in a journal, so an upload goes on after a reload, a
lost network or a restarted server.
"""

from __future__ import annotations

import bisect
import contextlib
import ctypes
import errno
import os
import secrets
import shutil
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from core.errors import NotHereError, UploadError
from language import say
from store.manifest import Manifest, from_json

SLICE = 16 << 20
STALE_S = 7 * 24 * 3600
_PART, _GONE = ".part", ".gone"
_MANIFEST, _JOURNAL, _FILES = "manifest.json", "journal", "files"
_HEADROOM = 0.95  # of the free space may be promised to an upload
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Received:
    """A complete upload."""

    id: str
    user: str
    name: str
    folder: Path
    files: int
    nbytes: int


class Upload:
    """One upload on its way. Methods block; call them from a thread."""

    def __init__(self, place: Path, manifest: Manifest) -> None:
        self.id, self.user, self.manifest = manifest.id, manifest.user, manifest
        self.total = manifest.total
        self.slices = -(-self.total // SLICE)
        self._starts = manifest.starts
        self._place = place
        self._lock = threading.Lock()
        self._have = self._journalled()

    def have(self) -> list[int]:
        """Slices that need not be sent (again)."""
        with self._lock:
            return sorted(self._have)

    def bounds(self, number: int) -> tuple[int, int]:
        """Begin and end of a slice in the stream."""
        if not 0 <= number < self.slices:
            raise UploadError(say("Upload {id} has no slice {number}.", id=self.id, number=number))
        return number * SLICE, min((number + 1) * SLICE, self.total)

    def write(self, offset: int, data: bytes | bytearray) -> None:
        """Put a stretch of the stream into the files it belongs to."""
        rest = memoryview(data)
        at = bisect.bisect_right(self._starts, offset) - 1
        while rest:
            entry, inside = self.manifest.entries[at], offset - self._starts[at]
            count = min(len(rest), entry.size - inside)
            if count > 0:
                self._write_file(entry.path, inside, rest[:count])
                rest, offset = rest[count:], offset + count
            at += 1

    def mark(self, number: int) -> None:
        """Enter a slice that is written whole and right."""
        with self._lock:
            if number not in self._have:
                with (self._place / _JOURNAL).open("ab") as journal:
                    journal.write(struct.pack("<I", number))
                self._have.add(number)

    def missing(self) -> list[int]:
        """Slices still to be sent."""
        with self._lock:
            return sorted(set(range(self.slices)) - self._have)

    def prepare(self) -> None:
        """Make folders and empty files, keep the manifest; harmless when done before."""
        files = self._place / _FILES
        files.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in sorted({str(Path(e.path).parent) for e in self.manifest.entries}):
            (files / folder).mkdir(parents=True, exist_ok=True)
        for entry in self.manifest.entries:
            if entry.size == 0:
                (files / entry.path).touch()
        draft = self._place / f".{secrets.token_hex(6)}"
        draft.write_text(self.manifest.to_json(), encoding="utf-8")
        draft.replace(self._place / _MANIFEST)

    def _write_file(self, path: str, offset: int, data: memoryview) -> None:
        # Folders exist since the beginning: a write after a cancel fails instead of leaving files.
        target = self._place / _FILES / path
        descriptor = os.open(target, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o640)
        try:
            while data:
                written = os.pwrite(descriptor, data, offset)
                data, offset = data[written:], offset + written
        finally:
            os.close(descriptor)

    def _journalled(self) -> set[int]:
        """Slices in the journal of this boot; after a power cut it may say more than the disk."""
        journal, boot = self._place / _JOURNAL, _BOOT.read_bytes().strip()
        self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
        first, _, rest = (journal.read_bytes() if journal.exists() else b"").partition(b"\n")
        whole = rest[: len(rest) // 4 * 4] if first == boot else b""
        journal.write_bytes(boot + b"\n" + whole)
        return {n for (n,) in struct.iter_unpack("<I", whole) if n < self.slices}


class Uploads:
    """All uploads of a workspace, complete and on their way."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._live: dict[str, Upload] = {}
        self._lock = threading.Lock()

    def begin(self, manifest: Manifest) -> Upload | Received:
        """Begin an upload or take up one with the same files; complete ones are not sent again."""
        done = self._received(manifest.id)
        if done is not None:
            return done
        self.sweep()
        upload = self._opened(self._folder / f"{manifest.id}{_PART}", manifest)
        rest = upload.total - len(upload.have()) * SLICE
        if rest > shutil.disk_usage(self._folder).free * _HEADROOM:
            if not upload.have():
                self.cancel(upload.id, manifest.user)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        upload.prepare()
        return upload

    def find(self, upload_id: str, user: str) -> Upload | Received:
        """The user's upload of this id, also one begun before a restart."""
        found = self._received(upload_id) or self._live.get(upload_id) or self._on_disk(upload_id)
        if found is None or found.user != user:
            raise NotHereError(
                say("There is no upload {upload_id!r}.", upload_id=upload_id),
                say("Choose the folder again."),
            )
        return found

    def finish(self, upload: Upload) -> Received:
        """Make a complete upload permanent; UploadError while slices are missing."""
        with self._lock:
            done = self._received(upload.id)
            if done is not None:
                return done
            missing = upload.missing()
            if missing:
                raise UploadError(
                    say(
                        "{missing} of {slices} slices are missing.",
                        missing=len(missing),
                        slices=upload.slices,
                    )
                )
            part = self._folder / f"{upload.id}{_PART}"
            _flush_file_system(part)
            part.rename(self._folder / upload.id)
            self._live.pop(upload.id, None)
            return self._described(upload.manifest)

    def cancel(self, upload_id: str, user: str) -> None:
        """Remove an upload that is on its way, with all it wrote; complete ones stay."""
        if isinstance(self.find(upload_id, user), Upload):
            with self._lock:
                self._live.pop(upload_id, None)
                self._remove(self._folder / f"{upload_id}{_PART}")

    def sweep(self) -> None:
        """Remove uploads nobody has added to for a week, and remains of removed ones."""
        for part in self._folder.glob(f"*{_PART}"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - (part / _JOURNAL).stat().st_mtime > STALE_S:
                    self._live.pop(part.name.removesuffix(_PART), None)
                    self._remove(part)
        for gone in self._folder.glob(f"*{_GONE}"):
            shutil.rmtree(gone, ignore_errors=True)

    def _opened(self, place: Path, manifest: Manifest) -> Upload:
        with self._lock:
            if manifest.id not in self._live:
                self._live[manifest.id] = Upload(place, manifest)
            return self._live[manifest.id]

    def _on_disk(self, upload_id: str) -> Upload | None:
        place = self._folder / f"{upload_id}{_PART}"
        if not upload_id.isalnum() or not (place / _MANIFEST).is_file():
            return None
        return self._opened(place, from_json((place / _MANIFEST).read_text(encoding="utf-8")))

    def _received(self, upload_id: str) -> Received | None:
        place = self._folder / upload_id
        if not upload_id.isalnum() or not (place / _MANIFEST).is_file():
            return None
        return self._described(from_json((place / _MANIFEST).read_text(encoding="utf-8")))

    def _described(self, manifest: Manifest) -> Received:
        files = self._folder / manifest.id / _FILES
        folder = files / manifest.top if manifest.top else files
        return Received(
            manifest.id, manifest.user, manifest.name, folder, len(manifest.entries), manifest.total
        )

    def _remove(self, part: Path) -> None:
        """Out of the way at once, deleted then: writers that are late find no folder."""
        gone = part.with_name(f"{part.name}-{secrets.token_hex(6)}{_GONE}")
        with contextlib.suppress(FileNotFoundError):
            part.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)


def _flush_file_system(folder: Path) -> None:
    """All that was written reaches the disk: one call instead of one for each of 3,000 files."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
    finally:
        os.close(descriptor)
