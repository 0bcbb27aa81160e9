"""The workspace: what pages, routes and commands ask for runs, comparisons and answers."""

from __future__ import annotations

import functools
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import pandas as pd
import sqlalchemy as sa
from blake3 import blake3

from analysis.compare import compare
from analysis.views import SliceView, slice_view
from core.annotations import Annotation, Status
from core.comparison import Comparison, Judgement, Pair, Settings
from core.errors import NotHereError
from core.findings import Diagnosis, Finding
from language import say
from metrics.engine.place import cache_folder
from store import catalogue, comparisons, diagnoses, ledgers, reduced, thumbnails, tokens
from store.annotations import Annotations
from store.cache import Recent, key_of
from store.catalogue import Catalogue
from store.comparing import Compare
from store.confinement import Bounds
from store.derived import Derived, derived
from store.diagnosing import find_causes, make_bundle
from store.jobs import Jobs
from store.later import Later
from store.layout import Layout, Owner, is_alive, sweep_owners
from store.options import Options, from_environment, workspace_root
from store.records import ComparisonRecord, JobRecord, Origin, RunRecord
from store.runs import Runs
from store.tasks import Dump, call, names_of
from store.thumbnails import Thumbnail
from store.uploads import Received, Uploads
from store.workers import Workers

T = TypeVar("T")
_ASKED = ("store.tasks", "store.reduced")  # imported by workers before the first task comes
_COMPARING = ("store.comparing",)
_KEPT_COMPARISONS = 4
_KEPT_ANSWERS = 64


class Workspace:
    """One workspace folder and the workers that serve it. Close it, or use it in a `with`."""

    def __init__(
        self, root: Path, *, options: Options | None = None, engine: Compare = compare
    ) -> None:
        self._options = options or from_environment()
        self._layout = Layout(root.resolve())
        self._layout.create()
        sweep_owners(self._layout.jobs)
        self._owner = Owner(self._layout.jobs)
        self._catalogue = Catalogue(self._layout.catalogue)
        bounds = self._bounds()
        self._questions = Workers(self._options.questions, bounds, preload=_ASKED)
        self._comparing = Workers(self._options.comparisons, bounds, preload=_COMPARING)
        self._background = Workers(1, bounds, preload=_ASKED)  # started when it is needed
        self._runs = Runs(
            self._layout, self._catalogue, self._questions, self._options, self._owner
        )
        self._jobs = Jobs(
            self._layout,
            self._catalogue,
            self._comparing,
            self._runs,
            self._owner,
            options=self._options,
            engine=engine,
        )
        self._annotations = Annotations(self._catalogue)
        self.uploads = Uploads(self._layout.uploads)
        self._comparisons: Recent[Comparison] = Recent(_KEPT_COMPARISONS)
        self._diagnoses: Recent[Diagnosis] = Recent(_KEPT_COMPARISONS)
        self._findings: Recent[tuple[Finding, ...]] = Recent(_KEPT_COMPARISONS)
        self._derived: Recent[Derived] = Recent(_KEPT_COMPARISONS)
        self._answers: Recent[Any] = Recent(_KEPT_ANSWERS)
        self._later = Later()
        self._tidy()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where dumps on this machine may be opened, beside the samples."""
        return self._options.folders

    @property
    def max_upload(self) -> int:
        """Bytes one upload may have."""
        return self._options.max_upload

    def runs(self) -> list[RunRecord]:
        """All runs, newest first."""
        return self._runs.all()

    def run(self, run_id: str) -> RunRecord:
        """The run of this id; NotHereError if there is none."""
        return self._runs.get(run_id)

    def add_folder(
        self,
        path: Path,
        *,
        label: str | None = None,
        origin: Origin = "folder",
        template: str | None = None,
    ) -> RunRecord:
        """Add a dump on this machine; a worker describes it. LoadError outside permitted folders.

        The same unchanged dump is added once; with another template it is read again. It may be
        compared at once, also while it is read.
        """
        return self._runs.add_folder(path, label=label, origin=origin, template=template)

    def set_template(self, run_id: str, template: str | None) -> RunRecord:
        """Have a run read again, its names under a template or as they are; LoadError if bad.

        Its tensors are called otherwise then: values behind earlier comparisons are not found.
        """
        return self._runs.set_template(run_id, template)

    def names(self, run_id: str, most: int = 400) -> tuple[str, ...]:
        """The names a dump itself uses, an even choice of them, for a template to be tried on."""
        dump = self._runs.dump(self._runs.get(run_id))
        what, limit = say("read the names of {label}", label=dump.label), self._options.ask_s
        key = key_of(run_id, "names", ("most", most))
        ask = functools.partial(self._questions.call, what, names_of, dump, most, timeout_s=limit)
        found: tuple[str, ...] = ask() if key is None else self._answers.get(key, ask)
        return found

    def add_upload(self, received: Received) -> RunRecord:
        """Add a complete upload; the run has the upload's id."""
        return self._runs.add_upload(received)

    def submit(
        self, reference_id: str, candidate_id: str, settings: Settings | None = None
    ) -> JobRecord:
        """Compare two runs in a worker; done at once when this comparison was made before."""
        return self._jobs.submit(reference_id, candidate_id, settings or Settings())

    def job(self, job_id: str) -> JobRecord:
        """The job of this id as it stands; NotHereError if there is none."""
        return self._jobs.get(job_id)

    def jobs(self) -> list[JobRecord]:
        """The newest jobs, newest first."""
        return self._jobs.all()

    def cancel(self, job_id: str) -> JobRecord:
        """Stop a job within a second; one that is over stays as it is."""
        return self._jobs.cancel(job_id)

    def recent(self, limit: int = 10) -> list[ComparisonRecord]:
        """The newest comparisons, newest first."""
        table = catalogue.comparisons
        query = sa.select(table).order_by(table.c.created.desc()).limit(limit)
        with self._catalogue.reading() as connection:
            rows = connection.execute(query).mappings().all()
        return [catalogue.record(ComparisonRecord, row) for row in rows]

    def runs_of(self, comparison_id: str) -> tuple[str, str]:
        """Run ids of both dumps of a comparison; NotHereError when one is gone."""
        reference, candidate = (
            self._dump(comparison_id, side).run_id for side in ("reference", "candidate")
        )
        return reference, candidate

    def siblings(self, comparison_id: str) -> list[ComparisonRecord]:
        """The comparisons with the same reference, this one included, newest first."""
        self.comparison(comparison_id)
        links = catalogue.comparison_runs.c
        sides = sa.select(links.run_id).where(
            links.comparison_id == comparison_id, links.side == "reference"
        )
        same = sa.select(links.comparison_id).where(
            links.side == "reference", links.run_id.in_(sides)
        )
        table = catalogue.comparisons
        query = sa.select(table).where(table.c.id.in_(same)).order_by(table.c.created.desc())
        with self._catalogue.reading() as connection:
            rows = connection.execute(query).mappings().all()
        return [catalogue.record(ComparisonRecord, row) for row in rows]

    def comparison(self, comparison_id: str) -> Comparison:
        """The comparison of this id; NotHereError if there is none."""
        return self._comparisons.get(
            comparison_id, lambda: comparisons.read(self._layout.comparisons, comparison_id)
        )

    def judgement(self, comparison_id: str) -> Judgement:
        """What the analysis makes of a comparison."""
        return self._derived_of(comparison_id)[0]

    def diagnosis(self, comparison_id: str) -> Diagnosis:
        """The findings of a comparison; made from both dumps, unless they are kept already.

        Raises NotHereError when they are not, and a dump is gone.
        """
        return self._diagnoses.get(comparison_id, lambda: self._diagnosed(comparison_id))

    def findings(self, comparison_id: str) -> tuple[Finding, ...]:
        """The findings that are kept with a comparison; none where it was never diagnosed."""
        return self._findings.get(
            comparison_id, lambda: diagnoses.findings(self._layout.comparisons, comparison_id)
        )

    def bundle(self, comparison_id: str, tensor: str) -> bytes:
        """The repro bundle of the operator call that made a tensor of the reference."""
        where = {"folder": str(self._layout.comparisons), "kept": comparison_id}
        return self.ask(comparison_id, make_bundle, tensor=tensor, **where)

    def annotations(self, comparison_id: str) -> list[Annotation]:
        """What people said about a comparison, newest first."""
        return self._annotations.of(comparison_id)

    def annotate(
        self,
        comparison_id: str,
        target: str,
        *,
        status: Status,
        text: str,
        link: str = "",
        expires: date | None = None,
    ) -> Annotation:
        """Say something about a module or a tensor of a comparison that is here."""
        self.comparison(comparison_id)
        return self._annotations.add(
            comparison_id, target, status=status, text=text, link=link, expires=expires
        )

    def remove_annotation(self, annotation_id: str) -> None:
        """Remove what somebody said; NotHereError when it is gone."""
        self._annotations.remove(annotation_id)

    def redaction_key(self) -> bytes:
        """Key for names that leave as hashes: the same for all reports of this server."""
        return blake3(b"redaction", key=blake3(self._layout.secret()).digest()).digest()

    def table(self, comparison_id: str) -> pd.DataFrame:
        """One row a pair; shared by all sessions, so never change it."""
        return self._derived_of(comparison_id)[1]

    def thumbnail(self, comparison_id: str, number: int) -> Thumbnail | None:
        """A small picture of a pair, kept with the comparison; few pairs have one."""
        place = self._layout.comparisons / self.comparison(comparison_id).id
        return thumbnails.read(place).get(number)

    def ask(self, comparison_id: str, function: Callable[..., T], **arguments: Any) -> T:
        """`function(reference, candidate, **arguments)` on the two dumps, in a confined worker.

        `function` stands at the top of a module and depends on nothing but its arguments; recent
        answers are kept, so treat one as read-only. Where `reference_id` is among the arguments,
        that pair's tensors read as they were compared: transposed, merged from shards. Raises
        NotHereError when a dump is gone, ExplorerError when the worker crashed, ran out of memory
        or took too long.
        """
        dumps, pair = self._asked_about(comparison_id, arguments)

        def answer() -> Any:
            what = say("read {label} and {label2}", label=dumps[0].label, label2=dumps[1].label)
            limit = self._options.ask_s
            return self._questions.call(
                what, call, function, *dumps, arguments, pair, timeout_s=limit
            )

        key = key_of(comparison_id, _named(function), *sorted(arguments.items()))
        result: T = answer() if key is None else self._answers.get(key, answer)
        return result

    def ask_later(
        self, comparison_id: str, function: Callable[..., T], **arguments: Any
    ) -> T | None:
        """As `ask`, for what takes long: None while a worker in the background is at it.

        Ask again to hear the answer. Other questions do not wait for it.
        """
        return self._asked_later(comparison_id, function, arguments)

    def _asked_later(
        self,
        comparison_id: str,
        function: Callable[..., T],
        arguments: Mapping[str, Any],
        still: Callable[[T], bool] = lambda _answer: True,
    ) -> T | None:
        dumps, pair = self._asked_about(comparison_id, arguments)
        limit = self._options.describe_s
        found: T | None = self._later.get(
            (comparison_id, _named(function), *sorted(arguments.items())),
            f"read {dumps[0].label} and {dumps[1].label}",
            lambda: self._background.schedule(
                call, function, *dumps, arguments, pair, timeout_s=limit
            ),
            still=still,
        )
        return found

    def slice_view(
        self, comparison_id: str, *, whole: str, huge: bool, **arguments: Any
    ) -> SliceView:
        """`analysis.views.slice_view` of the pair; of a huge one at first a glance.

        `whole` is the selection with its windows open: every element of it is read once in the
        background, and every picture of it is made of what is kept of that.
        """
        if not huge:
            return self.ask(comparison_id, slice_view, **arguments)
        asked = arguments | {"selection": whole}
        file = str(reduced.file_of(self._layout.reduced, comparison_id, asked))
        ready = self._asked_later(
            comparison_id,
            reduced.reduce_slice,
            {"file": file, **asked},
            still=lambda kept: Path(kept).exists(),  # others may have needed its room
        )
        if ready is None:
            return self.ask(comparison_id, slice_view, glance=True, **arguments)
        names = {k: v for k, v in arguments.items() if k not in ("dtype", "rms")}
        return self.ask(comparison_id, reduced.reduced_view, file=file, **names)

    def _asked_about(
        self, comparison_id: str, arguments: Mapping[str, Any]
    ) -> tuple[tuple[Dump, Dump], Pair | None]:
        dumps = (self._dump(comparison_id, "reference"), self._dump(comparison_id, "candidate"))
        return dumps, self._adapted_pair(comparison_id, arguments.get("reference_id"))

    def _diagnosed(self, comparison_id: str) -> Diagnosis:
        folder = self._layout.comparisons
        self.comparison(comparison_id)  # an unknown one is told so
        kept = diagnoses.read(folder, comparison_id)
        if kept is not None:
            return kept
        try:
            return self.ask(comparison_id, find_causes, folder=str(folder), kept=comparison_id)
        except NotHereError:
            older = diagnoses.read(folder, comparison_id, of_any_version=True)
            if older is None:
                raise
            return older

    def upload_token(self, user: str) -> str:
        """A token that lets a browser upload for a user."""
        return tokens.issue(self._layout.secret(), user)

    def token_user(self, token: str) -> str | None:
        """Whose upload token this is; None when it is not one of ours or too old."""
        return tokens.user_of(self._layout.secret(), token)

    def check(self) -> None:
        """Raise OSError or an SQLAlchemy error when the workspace cannot be written or read."""
        probe = self._layout.jobs / f".{secrets.token_hex(6)}"
        probe.write_bytes(b"")
        probe.unlink()
        self.recent(1)

    def warm(self) -> None:
        """Start the workers now, so that the first question does not wait for them."""
        self._questions.warm()
        self._comparing.warm()

    def close(self) -> None:
        """End the workers; jobs that run will be found interrupted."""
        self._runs.close()
        self._jobs.close()
        self._questions.close()
        self._comparing.close()
        self._background.close()
        self._catalogue.close()
        self._owner.release()

    def _derived_of(self, comparison_id: str) -> Derived:
        place = self._layout.comparisons / comparison_id

        def made() -> Derived:
            found = diagnoses.read(place.parent, comparison_id, of_any_version=True)
            return derived(place, self.comparison(comparison_id), found)

        return self._derived.get(comparison_id, made)

    def _bounds(self) -> Bounds:
        return Bounds(
            readable=(
                str(self._layout.uploads),
                *map(str, self._options.readable),
                str(cache_folder()),  # readable only: its code also runs outside the workers
            ),
            writable=tuple(
                map(
                    str,
                    (
                        self._layout.comparisons,
                        self._layout.jobs,
                        self._layout.unpacked,
                        self._layout.reduced,
                    ),
                )
            ),
            private=str(self._layout.root),
            nbytes=self._options.memory,
        )

    def _tidy(self) -> None:
        """Remove what killed servers left half-done and take up what they had not finished."""
        comparisons.sweep(self._layout.comparisons, functools.partial(is_alive, self._layout.jobs))
        ledgers.sweep(self._layout.comparisons)
        self.uploads.sweep()
        with self._catalogue.writing() as connection:
            ids = connection.execute(sa.select(catalogue.comparisons.c.id)).scalars()
            for kept in comparisons.kept(self._layout.comparisons, known=frozenset(ids)):
                catalogue.list_comparison(connection, kept)
        self._runs.resume()

    def _adapted_pair(self, comparison_id: str, reference_id: str | None) -> Pair | None:
        """The pair of this reference tensor if it was adapted, without its statistics."""
        if reference_id is None:
            return None
        table = self.table(comparison_id)
        rows = table.index[(table["tensor"] == reference_id) & (table["adaptation"] != "")]
        if rows.empty:
            return None
        return replace(self.comparison(comparison_id).pairs[int(rows[0])], stats=None)

    def _dump(self, comparison_id: str, side: str) -> Dump:
        """A dump of one side that is still there and unchanged, wherever it came from."""
        gone: NotHereError | None = None
        for run_id in self._origins(comparison_id, side):
            try:
                return self._runs.dump(self._runs.get(run_id))
            except NotHereError as error:
                gone = gone or error
        self.comparison(comparison_id)  # a foreign link is told so
        raise gone or NotHereError(
            say("The {side} dump of this comparison is not on this server.", side=side),
            say("Add the dump and compare again; the link stays the same."),
        )

    def _origins(self, comparison_id: str, side: str) -> list[str]:
        links = catalogue.comparison_runs.c
        query = sa.select(links.run_id).where(
            links.comparison_id == comparison_id, links.side == side
        )
        with self._catalogue.reading() as connection:
            return list(connection.execute(query).scalars())


def _named(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def default() -> Workspace:
    """The workspace of this process, opened once: PX_WORKSPACE, else `workspace` beside app.py."""
    with _opening:
        return _opened(workspace_root())


_opening = threading.Lock()


@functools.cache
def _opened(root: Path) -> Workspace:
    return Workspace(root)
