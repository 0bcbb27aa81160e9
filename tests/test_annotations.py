"""Notes: kept, refused with a reason, shown where they belong."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import fakes
import pytest
from streamlit_fixture import html_of, navigation_mode, open_page

from core.errors import ExplorerError, NotHereError
from store import workspace
from store.annotations import Annotations
from store.catalogue import Catalogue
from ui.cards.notes import about, status_of

__all__ = ["navigation_mode"]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Annotations]:
    catalogue = Catalogue(tmp_path / "catalogue.sqlite")
    yield Annotations(catalogue)
    catalogue.close()


def test_a_note_comes_back_as_it_was_said(kept: Annotations) -> None:
    made = kept.add(
        "c", "model.layers.1", status="accepted", text=" known ", link="https://x.example/1",
        expires=date(2027, 1, 2),
    )  # fmt: skip
    assert kept.of("c") == [made]
    assert (made.text, made.expires) == ("known", date(2027, 1, 2))
    assert kept.of("other") == []


def test_the_newest_comes_first_and_a_removed_one_is_gone(kept: Annotations) -> None:
    first = kept.add("c", "a", status="note", text="one")
    second = kept.add("c", "a", status="seen", text="")
    assert [note.id for note in kept.of("c")] == [second.id, first.id]
    kept.remove(first.id)
    assert [note.id for note in kept.of("c")] == [second.id]
    with pytest.raises(NotHereError):
        kept.remove(first.id)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"status": "accepted", "text": " "}, "needs a reason"),
        ({"status": "note", "text": ""}, "needs a text"),
        ({"status": "note", "text": "x" * 4001}, "4,001 characters"),
        ({"status": "note", "text": "x", "link": "javascript:alert(1)"}, "no web address"),
        ({"status": "odd", "text": "x"}, "no status"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_the_reason(
    kept: Annotations, what: dict[str, str], said: str
) -> None:
    with pytest.raises(ExplorerError, match=said):
        kept.add("c", "a", **what)  # type: ignore[arg-type]
    assert kept.of("c") == []


def test_a_note_on_a_module_covers_what_is_inside_until_it_expires(kept: Annotations) -> None:
    kept.add("c", "model.layers.1", status="accepted", text="known", expires=date(2020, 1, 1))
    kept.add("c", "model.layers.2", status="seen", text="")
    notes = kept.of("c")
    assert len(about(notes, "model.layers.1.mlp")) == 1
    assert about(notes, "model.layers.10") == []
    assert status_of(notes, "model.layers.1.mlp") == ""
    assert status_of(notes, "model.layers.2.mlp") == "Seen"


@pytest.mark.usefixtures("navigation_mode")
def test_notes_stand_on_the_overview_and_stay_text(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = fakes.FakeWorkspace(compared={"c0ffee": fakes.comparison()})
    fake.annotate("c0ffee", fakes.FAULT, status="note", text=fakes.HOSTILE)
    monkeypatch.setattr(workspace, "default", lambda: fake)
    page = open_page("overview", c="c0ffee")
    shown = html_of(page)
    assert not page.exception
    assert "newest first" in shown
    assert "<img" not in shown
