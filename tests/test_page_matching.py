"""The page Matching: what is open, edited, kept and used again."""

from __future__ import annotations

import io

import fakes
import pandas as pd
import pytest
from streamlit_fixture import html_of, navigation_mode, open_page

from analysis.matching import mapping_from_text
from store import workspace
from store.records import JobRecord

pytestmark = pytest.mark.usefixtures("navigation_mode")
__all__ = ["navigation_mode"]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> fakes.FakeWorkspace:
    fake = fakes.FakeWorkspace(compared={"c0ffee": fakes.comparison()})
    monkeypatch.setattr(workspace, "default", lambda: fake)
    return fake


@pytest.mark.usefixtures("kept")
def test_the_page_says_what_is_open() -> None:
    page = open_page("matching", c="c0ffee")
    shown = html_of(page)
    assert not page.exception
    assert "34 pairs are sure, 0 wait for your word, 1 tensors are alone." in shown
    rows = page.dataframe[0].value
    assert list(rows["candidate"]) == ["step0/rank0/model.extra/forward_output.0"]


@pytest.mark.usefixtures("kept")
def test_every_pair_can_be_shown() -> None:
    page = open_page("matching", c="c0ffee", show="all")
    assert len(page.dataframe[0].value) == 35


def test_comparing_again_uses_the_mapping_of_the_table(
    kept: fakes.FakeWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def submit(reference: str, candidate: str, settings: object) -> object:
        asked.append((reference, candidate, settings))
        return JobRecord(
            id="j", status="running", reference_id="r1", candidate_id="r2", created=fakes.NOW
        )

    monkeypatch.setattr(kept, "submit", submit, raising=False)
    page = open_page("matching", c="c0ffee", show="all")
    page.button(key="mapping-compare").click().run()
    ((reference, candidate, settings),) = asked
    assert (reference, candidate) == ("r1", "r2")
    assert len(settings.mapping) == 34  # type: ignore[attr-defined]


@pytest.mark.usefixtures("kept")
def test_the_file_is_one_that_is_understood() -> None:
    rows = pd.DataFrame([["a", "b", "yes", "", "exact", "1", ""]],
                        columns=["reference", "candidate", "accept", "adaptation", "method",
                                 "confidence", "note"])  # fmt: skip
    text = io.StringIO()
    rows.to_csv(text, index=False)
    (row,) = mapping_from_text(text.getvalue())
    assert (row.reference, row.candidates) == ("a", ("b",))
