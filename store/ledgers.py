"""The ledgers of comparisons under way: hidden files beside the comparisons they will belong to."""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from blake3 import blake3

from store.ledger import FileLedger, LedgerBusyError

_PREFIX = ".ledger-"
_PATIENCE_S = 5.0  # a worker whose server was killed holds on for some seconds
_KEPT_S = 7 * 24 * 3600  # how long what was stopped may still be resumed


@contextmanager
def opened(folder: Path, measured: object, *, metrics: Sequence[str] = ()) -> Iterator[FileLedger]:
    """The ledger of what is measured, any JSON value: the same again finds what was done before.

    While another process is at the same work, a ledger of one's own that nobody will find.
    """
    key = blake3(json.dumps(measured).encode()).hexdigest()[:32]
    path = folder / f"{_PREFIX}{key}"
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_nlink > 1:
            path.unlink()  # it is part of a comparison already, and that is never changed
    with _free(path, key, metrics) as ledger:
        yield ledger


def _free(path: Path, key: str, metrics: Sequence[str]) -> FileLedger:
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        try:
            return FileLedger(path, key=key, metrics=metrics)
        except LedgerBusyError:
            time.sleep(0.1)
    own = path.with_name(f"{path.name}-{secrets.token_hex(6)}")
    return FileLedger(own, key=key, metrics=metrics)


def remove(ledger: FileLedger) -> None:
    """Remove the ledger of a comparison that is kept now."""
    ledger.path.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove what nobody came back to."""
    for path in folder.glob(f"{_PREFIX}*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _KEPT_S:
                path.unlink()
