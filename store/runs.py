"""The runs of a workspace: dumps that were uploaded or stand on this machine."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from concurrent.futures import CancelledError
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from blake3 import blake3

from core.errors import ExplorerError, LoadError, NotHereError
from language import say
from loaders.template import parsed
from store import catalogue
from store.catalogue import Catalogue
from store.comparisons import Kept
from store.describing import Description, describe
from store.jsonable import to_plain
from store.layout import Layout, Owner, is_alive
from store.options import Options
from store.records import SAVED_COMPARISON, Origin, RunRecord, now
from store.tasks import Dump
from store.uploads import Received
from store.workers import Future, Workers, explained

_log = logging.getLogger(__name__)
_ID_LENGTH = 20
_TEMPLATE = "template"  # under which the run is read, kept with what it says of itself


class Runs:
    """Adds dumps and has a worker describe them."""

    def __init__(
        self, layout: Layout, listed: Catalogue, workers: Workers, options: Options, owner: Owner
    ) -> None:
        self._layout, self._catalogue, self._workers = layout, listed, workers
        self._options, self._owner = options, owner
        self._closing = False

    def all(self) -> list[RunRecord]:
        """All runs, newest first."""
        query = sa.select(catalogue.runs).order_by(catalogue.runs.c.created.desc())
        with self._catalogue.reading() as connection:
            return [catalogue.record(RunRecord, r) for r in connection.execute(query).mappings()]

    def get(self, run_id: str) -> RunRecord:
        """The run of this id; NotHereError if there is none."""
        query = sa.select(catalogue.runs).where(catalogue.runs.c.id == run_id)
        with self._catalogue.reading() as connection:
            row = connection.execute(query).mappings().first()
        if row is None:
            hint = say("Upload the dump, or add its folder, on the page Runs.")
            raise NotHereError(say("This server has no run {run_id!r}.", run_id=run_id), hint)
        return catalogue.record(RunRecord, row)

    def add_folder(
        self, path: Path, *, label: str | None, origin: Origin, template: str | None = None
    ) -> RunRecord:
        """Add a dump that stands on this machine; the same unchanged dump is added once.

        With another template than before it is read again.
        """
        place = self._permitted(path)
        record = RunRecord(
            id=_folder_id(place),
            provenance=_kept(template),
            label=label or place.name,
            origin=origin,
            path=str(place),
            status="reading",
            created=now(),
        )
        known = self._add(record)
        if template and known.provenance.get(_TEMPLATE) != template:
            return self.set_template(known.id, template)
        return known

    def add_upload(self, received: Received) -> RunRecord:
        """Add a complete upload."""
        record = RunRecord(
            id=received.id,
            label=received.name,
            origin="upload",
            path=str(received.folder),
            status="reading",
            created=now(),
        )
        return self._add(record)

    def set_template(self, run_id: str, template: str | None) -> RunRecord:
        """Have a run described again under a template, or under none; it keeps its id."""
        kept = _kept(template)
        self._update(run_id, provenance=kept)
        return self._restart(replace(self.get(run_id), provenance=kept))

    def dump(self, record: RunRecord) -> Dump:
        """What a worker opens; NotHereError when the dump is gone or no longer the same."""
        path = Path(record.path)
        if not path.exists():
            raise NotHereError(
                say("The dump of {label} is gone.", label=record.label), say("Add it again.")
            )
        if record.origin != "upload" and _folder_id(path) != record.id:
            raise NotHereError(
                say("The dump of {label} has changed since it was read.", label=record.label),
                say("Add it again."),
            )
        scratch = str(self._layout.unpacked / record.id)
        template = record.provenance.get(_TEMPLATE, "")
        return Dump(record.id, record.path, record.label, scratch, template)

    def resume(self) -> None:
        """Describe again what a server that is gone was about to describe."""
        query = sa.select(catalogue.runs).where(catalogue.runs.c.status == "reading")
        with self._catalogue.reading() as connection:
            rows = connection.execute(query).mappings().all()
        for row in rows:
            if not is_alive(self._layout.jobs, row["owner"]):
                self._restart(catalogue.record(RunRecord, row))

    def close(self) -> None:
        """Take no more results."""
        self._closing = True

    def _permitted(self, path: Path) -> Path:
        place = path.expanduser().resolve()
        if not any(place.is_relative_to(folder) for folder in self._options.readable):
            raise LoadError(
                say("{path} is not in a folder this server may read.", path=path),
                say(
                    "Upload the dump, or start the server with PX_FOLDERS naming a folder above it."
                ),
            )
        if not place.exists():
            raise LoadError(
                say("There is no folder or file {path}.", path=path), say("Check the spelling.")
            )
        return place

    def _add(self, record: RunRecord) -> RunRecord:
        row = {**catalogue.row_of(record), "owner": self._owner.id}
        with self._catalogue.writing() as connection:
            is_new = catalogue.put(connection, catalogue.runs, row)
        known = self.get(record.id)
        if is_new:
            self._describe(known)
        elif known.status == "failed":
            return self._restart(known)
        return known

    def _restart(self, record: RunRecord) -> RunRecord:
        self._update(record.id, status="reading", error="", error_hint="", owner=self._owner.id)
        self._describe(record)
        return replace(record, status="reading", error="", error_hint="")

    def _describe(self, record: RunRecord) -> None:
        try:
            dump = self.dump(record)
        except NotHereError as error:
            self._update(record.id, **_failure(error))
            return
        question = (describe, dump, self._layout.comparisons, self._owner.id)
        future = self._workers.schedule(*question, timeout_s=self._options.describe_s)
        future.add_done_callback(partial(self._described, record))

    def _described(self, record: RunRecord, future: Future) -> None:
        """Runs in a thread of the pool once the worker is done, or is gone."""
        if self._closing:
            return  # the next server starts anew
        try:
            description: Description | Kept = future.result()
        except (Exception, CancelledError) as error:
            told = explained(error, say("read {label}", label=record.label))
            if not isinstance(told, ExplorerError):
                _log.error("%s could not be read", record.label, exc_info=error)
                told = LoadError(
                    say(
                        "{label} cannot be read: {name}: {error}",
                        label=record.label,
                        name=type(error).__name__,
                        error=error,
                    )
                )
            self._update(record.id, **_failure(told))
        else:
            if isinstance(description, Kept):
                self._take(record, description)
            else:
                self._update(record.id, status="ready", **to_plain(description))

    def _take(self, record: RunRecord, kept: Kept) -> None:
        """Enter a saved comparison; the record of the upload only says where it went."""
        with self._catalogue.writing() as connection:
            catalogue.list_comparison(connection, kept)
        pointer = {"format": SAVED_COMPARISON, "provenance": {"comparison": kept.record.id}}
        self._update(record.id, status="ready", **pointer)

    def _update(self, run_id: str, **values: Any) -> None:
        statement = sa.update(catalogue.runs).where(catalogue.runs.c.id == run_id).values(**values)
        with self._catalogue.writing() as connection:
            connection.execute(statement)


def _failure(error: ExplorerError) -> dict[str, str]:
    return {"status": "failed", "error": error.message, "error_hint": error.hint}


def _kept(template: str | None) -> dict[str, str]:
    """What a run record keeps of a template until the run was read; LoadError if it is none."""
    return {_TEMPLATE: parsed(template).text} if template else {}


def _folder_id(path: Path) -> str:
    """Changes with the path and with names, sizes or times of the files in it; opens none."""
    digest = blake3(os.fsencode(path))
    for name, facts in sorted(_files(path)):
        digest.update(os.fsencode(name) + f"\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:_ID_LENGTH]


def _files(path: Path) -> Iterator[tuple[str, os.stat_result]]:
    if not path.is_dir():
        yield "", path.lstat()
        return
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from ((f"{entry.name}/{name}", f) for name, f in _files(path / entry.name))
            else:
                yield entry.name, entry.stat(follow_symlinks=False)
