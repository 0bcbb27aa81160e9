"""Annotations in the catalogue."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import date
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa

from core.annotations import Annotation, Status
from core.errors import ExplorerError, NotHereError
from language import say
from store import catalogue
from store.catalogue import Catalogue
from store.records import now

MOST_TEXT, MOST_LINK = 4000, 2000
_STATUSES = ("note", "seen", "accepted")


class Annotations:
    """Adds, lists and removes what people say about comparisons."""

    def __init__(self, listed: Catalogue) -> None:
        self._catalogue = listed

    def add(
        self,
        comparison_id: str,
        target: str,
        *,
        status: Status,
        text: str,
        link: str = "",
        expires: date | None = None,
    ) -> Annotation:
        """Keep an annotation. ExplorerError says what is missing or not allowed in it."""
        text, link = text.strip(), link.strip()
        _check(status, text, link)
        made = Annotation(
            id=secrets.token_hex(8), comparison_id=comparison_id, target=target, status=status,
            text=text, link=link, expires=expires, created=now(),
        )  # fmt: skip
        with self._catalogue.writing() as connection:
            catalogue.put(connection, catalogue.notes, _row(made))
        return made

    def of(self, comparison_id: str) -> list[Annotation]:
        """Everything said about a comparison, newest first."""
        table = catalogue.notes
        query = sa.select(table).where(table.c.comparison_id == comparison_id)
        with self._catalogue.reading() as connection:
            rows = connection.execute(query.order_by(table.c.created.desc())).mappings().all()
        return [_annotation(row) for row in rows]

    def remove(self, annotation_id: str) -> None:
        """Remove one; NotHereError when it is gone already."""
        table = catalogue.notes
        with self._catalogue.writing() as connection:
            done = connection.execute(sa.delete(table).where(table.c.id == annotation_id))
        if not done.rowcount:
            raise NotHereError(
                say("This note is not here any more."), say("Somebody removed it; reload.")
            )


def _check(status: str, text: str, link: str) -> None:
    if status not in _STATUSES:
        raise ExplorerError(
            say("{status!r} is no status.", status=status),
            say("Known: {statuses}.", statuses=", ".join(_STATUSES)),
        )
    if status != "seen" and not text:
        raise ExplorerError(
            say("The note needs a reason.")
            if status == "accepted"
            else say("The note needs a text."),
            say("Say it in a sentence."),
        )
    if len(text) > MOST_TEXT:
        raise ExplorerError(
            say("The note has {text:,} characters.", text=len(text)),
            say("Keep it to {most_text:,}, or link to it.", most_text=MOST_TEXT),
        )
    if link and (urlsplit(link).scheme not in ("http", "https") or len(link) > MOST_LINK):
        raise ExplorerError(
            say("The link is no web address."), say("It starts with http:// or https://.")
        )


def _row(made: Annotation) -> dict[str, Any]:
    row = catalogue.row_of(made)
    return row | {"expires": made.expires.isoformat() if made.expires else None}


def _annotation(row: sa.RowMapping) -> Annotation:
    plain = dict(row)
    expires = plain.pop("expires")
    made = catalogue.record(Annotation, plain)  # type: ignore[arg-type]
    return replace(made, expires=date.fromisoformat(expires)) if expires else made
