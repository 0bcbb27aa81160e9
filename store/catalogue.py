"""The list of runs, comparisons and jobs, in SQLite.

Write-ahead log: readers never wait for the writer. Writers take the lock when they begin, so that
two of them queue instead of failing half-way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from store.comparisons import Kept
from store.jsonable import from_plain, from_text, to_plain, to_text

WAIT_S = 30
T = TypeVar("T")

_metadata = sa.MetaData()


class Words(sa.TypeDecorator[str]):
    """Text for people, kept so that it can be said again in another language."""

    impl = sa.String
    cache_ok = True

    def process_bind_param(self, value: str | None, _dialect: object) -> str | None:
        """What is kept."""
        return None if value is None else to_text(value)

    def process_result_value(self, value: str | None, _dialect: object) -> str | None:
        """What was said."""
        return None if value is None else from_text(value)


runs = sa.Table(
    "runs",
    _metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("label", sa.String, nullable=False),
    sa.Column("origin", sa.String, nullable=False),
    sa.Column("path", sa.String, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("error", Words, nullable=False, default=""),
    sa.Column("error_hint", Words, nullable=False, default=""),
    sa.Column("fingerprint", sa.String, nullable=False, default=""),
    sa.Column("tensors", sa.Integer, nullable=False, default=0),
    sa.Column("nbytes", sa.Integer, nullable=False, default=0),
    sa.Column("steps", sa.JSON, nullable=False, default=list),
    sa.Column("ranks", sa.JSON, nullable=False, default=list),
    sa.Column("format", sa.String, nullable=False, default=""),
    sa.Column("provenance", sa.JSON, nullable=False, default=dict),
    sa.Column("problems", sa.JSON, nullable=False, default=list),
    sa.Column("owner", sa.String, nullable=False),
)
comparisons = sa.Table(
    "comparisons",
    _metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("label_reference", sa.String, nullable=False),
    sa.Column("label_candidate", sa.String, nullable=False),
    sa.Column("verdict", sa.String, nullable=False),
    sa.Column("first_divergence", sa.String, nullable=False),
    sa.Column("worst_added", sa.Float),  # SQLite keeps NaN as NULL
    sa.Column("compared", sa.Integer, nullable=False),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
)
comparison_runs = sa.Table(
    "comparison_runs",  # equal dumps in two places lead to one comparison: several rows a side
    _metadata,
    sa.Column("comparison_id", sa.String, primary_key=True),
    sa.Column("side", sa.String, primary_key=True),
    sa.Column("run_id", sa.String, primary_key=True),
)
jobs = sa.Table(
    "jobs",
    _metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("reference_id", sa.String, nullable=False),
    sa.Column("candidate_id", sa.String, nullable=False),
    sa.Column("settings", sa.String, nullable=False),
    sa.Column("engine", sa.Integer, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("comparison_id", sa.String),
    sa.Column("error", Words, nullable=False, default=""),
    sa.Column("error_hint", Words, nullable=False, default=""),
    sa.Column("owner", sa.String, nullable=False),
)
notes = sa.Table(
    "notes",
    _metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("comparison_id", sa.String, nullable=False, index=True),
    sa.Column("target", sa.String, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("text", sa.String, nullable=False),
    sa.Column("link", sa.String, nullable=False, default=""),
    sa.Column("expires", sa.String),  # an ISO date
    sa.Column("created", sa.Float, nullable=False),
)


class Catalogue:
    """A connection pool on one catalogue file; made with its tables when absent."""

    def __init__(self, path: Path) -> None:
        self._engine = sa.create_engine(
            sa.URL.create("sqlite", database=str(path)), connect_args={"timeout": WAIT_S}
        )
        sa.event.listen(self._engine, "connect", _prepare)
        sa.event.listen(self._engine, "begin", _begin)
        self._writer = self._engine.execution_options(px_write=True)
        with self.writing() as connection:
            _metadata.create_all(connection)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """One consistent view."""
        with self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """One transaction, alone among writers; all of it happens or nothing."""
        with self._writer.connect() as connection, connection.begin():
            yield connection

    def close(self) -> None:
        """Close the pooled connections."""
        self._engine.dispose()


def put(connection: sa.Connection, table: sa.Table, row: Mapping[str, Any]) -> bool:
    """Insert a row unless its key is there; whether it was new."""
    statement = insert(table).values(**row).on_conflict_do_nothing()
    return connection.execute(statement).rowcount > 0


def record(kind: type[T], row: sa.RowMapping) -> T:
    """A row as the record type whose fields are named like its columns."""
    hints = get_type_hints(kind)
    names = [f.name for f in fields(kind) if f.name in row]  # type: ignore[arg-type]
    values = {name: from_plain(hints[name], row[name]) for name in names}
    return kind(
        **{k: float("nan") if v is None and hints[k] is float else v for k, v in values.items()}
    )


def row_of(value: Any) -> dict[str, Any]:
    """A record as a row."""
    plain: dict[str, Any] = to_plain(value)
    return plain


def _prepare(connection: Any, _record: Any) -> None:
    connection.isolation_level = (
        None  # transactions begin where we say, not where the driver thinks
    )
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


def _begin(connection: sa.Connection) -> None:
    write = connection.get_execution_options().get("px_write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def list_comparison(connection: sa.Connection, kept: Kept) -> None:
    """Enter a kept comparison and where its dumps are, if they are here."""
    put(connection, comparisons, row_of(kept.record))
    for side, run_id in (("reference", kept.reference_run), ("candidate", kept.candidate_run)):
        if run_id:
            row = {"comparison_id": kept.record.id, "side": side, "run_id": run_id}
            put(connection, comparison_runs, row)
