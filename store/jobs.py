"""Jobs: comparisons that were asked for, each one task in a worker."""

from __future__ import annotations

import json
import logging
import secrets
from concurrent.futures import CancelledError
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from analysis.compare import ENGINE_VERSION, compare
from core.comparison import Settings
from core.errors import CompareError, ExplorerError, NotHereError
from language import say
from store import catalogue, comparisons, progress
from store.catalogue import Catalogue
from store.comparing import Compare, Order, make_comparison
from store.comparisons import Kept
from store.jsonable import to_plain
from store.layout import Layout, Owner, is_alive
from store.options import Options
from store.records import JobRecord, RunRecord, now
from store.runs import Runs
from store.workers import Future, Workers, explained

_log = logging.getLogger(__name__)
_ACTIVE = "queued"  # what the catalogue says until a job is over; that it runs, its file tells
_LISTED = 50
_NO_LIMIT_S = 0.0  # pebble: none; a worker without progress ends itself


class Jobs:
    """Starts, follows and ends comparisons."""

    def __init__(
        self,
        layout: Layout,
        listed: Catalogue,
        workers: Workers,
        runs: Runs,
        owner: Owner,
        *,
        options: Options,
        engine: Compare = compare,
    ) -> None:
        self._layout, self._catalogue, self._workers, self._runs = layout, listed, workers, runs
        self._owner, self._options, self._engine = owner, options, engine
        self._futures: dict[str, Future] = {}
        self._closing = False

    def submit(self, reference_id: str, candidate_id: str, settings: Settings) -> JobRecord:
        """Start a comparison; one that was made or is being made already is returned instead."""
        sides = [self._usable(run_id) for run_id in (reference_id, candidate_id)]
        job_id = secrets.token_hex(8)
        row = {
            "id": job_id,
            "status": _ACTIVE,
            "reference_id": reference_id,
            "candidate_id": candidate_id,
            "settings": json.dumps(to_plain(settings)),
            "engine": ENGINE_VERSION,
            "created": now().timestamp(),
            "owner": self._owner.id,
        }
        dumps = [self._runs.dump(side) for side in sides]
        known = self._same(row)
        if known is not None:
            return known
        with self._catalogue.writing() as connection:
            catalogue.put(connection, catalogue.jobs, row)
        order = Order(
            reference=dumps[0],
            candidate=dumps[1],
            settings=settings,
            folder=self._layout.comparisons,
            progress=self._progress(job_id),
            owner=self._owner.id,
            engine=ENGINE_VERSION,
            stall_s=self._options.stall_s,
        )
        self._start(job_id, order)
        return self.get(job_id)

    def get(self, job_id: str) -> JobRecord:
        """The job of this id as it stands; NotHereError if there is none."""
        query = sa.select(catalogue.jobs).where(catalogue.jobs.c.id == job_id)
        with self._catalogue.reading() as connection:
            row = connection.execute(query).mappings().first()
        if row is None:
            raise NotHereError(
                say("This server has no job {job_id!r}.", job_id=job_id),
                say("Start the comparison again."),
            )
        return self._as_it_stands(row)

    def all(self) -> list[JobRecord]:
        """The newest jobs, newest first."""
        query = sa.select(catalogue.jobs).order_by(catalogue.jobs.c.created.desc()).limit(_LISTED)
        with self._catalogue.reading() as connection:
            rows = connection.execute(query).mappings().all()
        return [self._as_it_stands(row) for row in rows]

    def cancel(self, job_id: str) -> JobRecord:
        """Stop a job; one that is over stays as it is."""
        self.get(job_id)
        self._end(job_id, status="cancelled")
        future = self._futures.pop(job_id, None)
        if future is not None:
            future.cancel()
        return self.get(job_id)

    def close(self) -> None:
        """Take no more results; what runs will be found interrupted."""
        self._closing = True

    def _usable(self, run_id: str) -> RunRecord:
        record = self._runs.get(run_id)
        if record.status == "failed":
            raise CompareError(
                say("{label} cannot be compared: {error}", label=record.label, error=record.error),
                record.error_hint,
            )
        if record.comparison_id is not None:
            hint = say("Open it, or choose a dump.")
            raise CompareError(
                say("{label} is a comparison already, not a dump.", label=record.label), hint
            )
        return record

    def _same(self, row: dict[str, Any]) -> JobRecord | None:
        """A job with the same runs, settings and engine whose result is there or on its way."""
        jobs = catalogue.jobs.c
        query = sa.select(catalogue.jobs).order_by(jobs.created.desc())
        for name in ("reference_id", "candidate_id", "settings", "engine"):
            query = query.where(jobs[name] == row[name])
        with self._catalogue.reading() as connection:
            rows = connection.execute(query).mappings().all()
        for found in rows:
            job = self._as_it_stands(found)
            if not job.is_over or (job.status == "done" and self._is_kept(job)):
                return job
        return None

    def _is_kept(self, job: JobRecord) -> bool:
        try:
            comparisons.read(self._layout.comparisons, job.comparison_id or "")
            return True
        except NotHereError:
            return False

    def _start(self, job_id: str, order: Order) -> None:
        future = self._workers.schedule(make_comparison, order, self._engine, timeout_s=_NO_LIMIT_S)
        self._futures[job_id] = future
        future.add_done_callback(partial(self._finished, job_id))

    def _finished(self, job_id: str, future: Future) -> None:
        """Runs in a thread of the pool once the worker is done, or is gone."""
        if self._closing:
            return
        try:
            self._keep(job_id, future.result())
        except CancelledError:
            self._end(job_id, status="cancelled")
        except Exception as error:
            told = explained(error, say("compared the two runs"))
            if not isinstance(told, ExplorerError):
                _log.error("job %s failed", job_id, exc_info=error)
                told = CompareError(
                    say(
                        "The comparison failed: {name}: {error}",
                        name=type(error).__name__,
                        error=error,
                    )
                )
            self._end(job_id, status="failed", error=told.message, error_hint=told.hint)
        finally:
            self._futures.pop(job_id, None)
            progress.forget(self._progress(job_id))

    def _keep(self, job_id: str, kept: Kept) -> None:
        with self._catalogue.writing() as connection:
            catalogue.list_comparison(connection, kept)
        self._end(job_id, status="done", comparison_id=kept.record.id)

    def _end(self, job_id: str, **values: Any) -> None:
        jobs = catalogue.jobs.c
        still = sa.and_(jobs.id == job_id, jobs.status == _ACTIVE)  # cancelled stays cancelled
        with self._catalogue.writing() as connection:
            connection.execute(sa.update(catalogue.jobs).where(still).values(**values))

    def _as_it_stands(self, row: sa.RowMapping) -> JobRecord:
        job = catalogue.record(JobRecord, row)
        if job.status != _ACTIVE:
            return job
        if row["owner"] != self._owner.id and not is_alive(self._layout.jobs, row["owner"]):
            return replace(job, status="interrupted")
        told = progress.standing(self._progress(job.id))
        return job if told is None else replace(job, status="running", **to_plain(told))

    def _progress(self, job_id: str) -> Path:
        return self._layout.jobs / f"{job_id}.json"
