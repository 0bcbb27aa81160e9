"""Where things lie in a workspace, and who is using it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

_OWNER_SUFFIX = ".owner"


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders and files of a workspace; the root may live anywhere."""

    root: Path

    @property
    def catalogue(self) -> Path:
        """SQLite file that says which runs, comparisons and jobs there are."""
        return self.root / "catalogue.sqlite"

    @property
    def uploads(self) -> Path:
        """One folder an upload; `<id>.part` while it is not complete."""
        return self.root / "uploads"

    @property
    def unpacked(self) -> Path:
        """Files out of archives that were added or uploaded, one folder a run."""
        return self.root / "unpacked"

    @property
    def comparisons(self) -> Path:
        """One folder a comparison."""
        return self.root / "comparisons"

    @property
    def reduced(self) -> Path:
        """Blocks of huge slices; may be removed at any time."""
        return self.root / "reduced"

    @property
    def jobs(self) -> Path:
        """Progress of running jobs, and one locked file for each live server."""
        return self.root / "jobs"

    @property
    def secret_file(self) -> Path:
        """Key that signs upload tokens."""
        return self.root / "secret"

    def create(self) -> None:
        """Make the folders, readable by their owner only."""
        below = (self.uploads, self.unpacked, self.comparisons, self.reduced, self.jobs)
        for folder in (self.root, *below):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def secret(self) -> bytes:
        """The signing key; made on first use, kept over restarts so that tokens stay valid."""
        with contextlib.suppress(FileExistsError):
            _write_once(self.secret_file, secrets.token_bytes(32))
        return self.secret_file.read_bytes()


def _write_once(path: Path, content: bytes) -> None:
    """Make a file with its whole content, or raise FileExistsError: no half-written key is seen."""
    if path.exists():
        raise FileExistsError(path)
    draft = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    finally:
        draft.unlink()


class Owner:
    """One live user of a workspace: whose jobs run and whose temporary folders are in use.

    Each owner keeps a lock on a file of its own; the kernel drops it however the process ends, so
    what a killed server left behind is recognised without a word from it.
    """

    def __init__(self, folder: Path) -> None:
        self.id = secrets.token_hex(6)
        self._path = folder / f"{self.id}{_OWNER_SUFFIX}"
        draft = folder / f".{self.id}"
        self._descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        draft.rename(self._path)  # only now can others see it: never unlocked while alive

    def release(self) -> None:
        """Stop being alive."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def is_alive(folder: Path, owner_id: str) -> bool:
    """Whether the owner of this id still runs."""
    try:
        descriptor = os.open(folder / f"{owner_id}{_OWNER_SUFFIX}", os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def sweep_owners(folder: Path) -> None:
    """Remove the marks of owners that are gone."""
    for mark in folder.glob(f"*{_OWNER_SUFFIX}"):
        if not is_alive(folder, mark.name.removesuffix(_OWNER_SUFFIX)):
            mark.unlink(missing_ok=True)
