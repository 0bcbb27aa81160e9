"""Runs as a session sees it: empty, filled, refused, comparing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import fakes
import pytest
from streamlit_fixture import asked_to_go, html_of, navigation_mode, open_page

from store import workspace
from ui import upload
from ui.cards import samples

pytestmark = pytest.mark.usefixtures("navigation_mode")
__all__ = ["navigation_mode"]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> fakes.FakeWorkspace:
    """An empty workspace and no samples."""
    fake = fakes.FakeWorkspace()
    monkeypatch.setattr(workspace, "default", lambda: fake)
    monkeypatch.setattr(upload, "folder_upload", lambda *_, **__: None)
    monkeypatch.setattr(samples, "FOLDER", tmp_path)
    return fake


@pytest.fixture
def sample(tmp_path: Path) -> None:
    """One sample beside an entry whose folders are not there."""
    for side in ("ref", "cand"):
        (tmp_path / "one" / side).mkdir(parents=True)
    entry = {"id": "one", "title": "**One**", "story": "A story.", "expect": "fault"}
    index = [
        entry | {"reference": "one/ref", "candidate": "one/cand"},
        entry | {"id": "two", "reference": "two/ref", "candidate": "two/cand"},
    ]
    (tmp_path / "index.json").write_text(json.dumps(index))


@pytest.mark.usefixtures("kept")
def test_an_empty_workspace_explains_itself() -> None:
    page = open_page("runs")
    shown = html_of(page)
    assert not page.exception
    assert "Where do two runs of one model part, and is it rounding or a fault?</h1>" in shown
    assert "None yet." in shown
    assert "No samples here." in shown
    assert page.button(key="compare").disabled


def test_two_read_runs_make_compare_ready_and_a_job(kept: fakes.FakeWorkspace) -> None:
    kept.known_runs = {name: fakes.run_record(name) for name in ("a", "b")}
    page = open_page("runs", ref="a", cand="b")
    assert "33 tensors, 3.04 GB, step 3, rank 0" in html_of(page)
    page.button(key="compare").click().run()
    assert kept.asked == [("submit", "a", "b", "None")]
    assert page.query_params["job"] == "j1"
    assert "Reading both dumps" not in html_of(page)
    assert page.button(key="job-cancel")


def test_own_tolerance_is_part_of_the_address_and_of_the_comparison(
    kept: fakes.FakeWorkspace,
) -> None:
    kept.known_runs = {name: fakes.run_record(name) for name in ("a", "b")}
    page = open_page("runs", ref="a", cand="b", tol="own", rtol="0.5")
    page.button(key="compare").click().run()
    assert kept.asked == [("submit", "a", "b", "Tolerance(atol=1e-05, rtol=0.5)")]


def test_a_tolerance_that_is_no_number_is_refused_in_place(kept: fakes.FakeWorkspace) -> None:
    kept.known_runs = {name: fakes.run_record(name) for name in ("a", "b")}
    page = open_page("runs", ref="a", cand="b", tol="own", atol="-3")
    page.button(key="compare").click().run()
    assert not kept.asked
    assert "must be a number" in page.error[0].value


def test_a_folder_outside_the_permitted_ones_is_refused_where_it_was_typed(
    kept: fakes.FakeWorkspace,
) -> None:
    page = open_page("runs")
    page.text_input(key="path-reference").set_value("/etc").run()
    assert "outside the folders" in page.error[0].value
    page.text_input(key="path-reference").set_value("/dumps/gpu").run()
    assert not page.error
    assert page.query_params["ref"] == "gpu"
    assert "gpu" in kept.known_runs


def test_a_run_read_before_can_be_taken_from_the_list(kept: fakes.FakeWorkspace) -> None:
    kept.known_runs = {"a": fakes.run_record("a")}
    page = open_page("runs")
    page.selectbox(key="list-candidate").set_value("a").run()
    assert page.query_params["cand"] == "a"
    page.button(key="replace-candidate").click().run()
    assert "cand" not in page.query_params


def test_an_unreadable_dump_says_why_and_can_be_replaced(kept: fakes.FakeWorkspace) -> None:
    record = fakes.run_record("a", status="failed", error="a holds nothing.", error_hint="Look.")
    kept.known_runs = {"a": record}
    page = open_page("runs", ref="a")
    assert "a holds nothing." in html_of(page)
    assert page.button(key="replace-reference")
    assert page.button(key="compare").disabled


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(("key", "value"), [("ref", "gone"), ("job", "gone")])
def test_a_stale_link_is_called_out(key: str, value: str) -> None:
    page = open_page("runs", **{key: value})
    assert not page.exception
    assert "not on this server" in page.warning[0].value


def test_a_finished_job_opens_its_comparison_once_and_back_stays(kept: fakes.FakeWorkspace) -> None:
    kept.compared["c0ffee"] = fakes.comparison()
    job = kept.submit("a", "b", fakes.Settings())
    page = open_page("runs", job="j1")
    kept.known_jobs["j1"] = replace(job, status="done", comparison_id="c0ffee")
    page.run()
    assert asked_to_go(page) == "overview?c=c0ffee"
    again = open_page("runs", job="j1")
    assert "overview?c=c0ffee" in html_of(again)
    assert asked_to_go(again) is None


@pytest.mark.parametrize(
    ("status", "words"), [("failed", "too large"), ("interrupted", "was interrupted")]
)
def test_a_job_that_did_not_finish_says_so(
    kept: fakes.FakeWorkspace, status: str, words: str
) -> None:
    job = kept.submit("a", "b", fakes.Settings())
    kept.known_jobs["j1"] = replace(job, status=status, error="too large")  # type: ignore[arg-type]
    page = open_page("runs", job="j1")
    assert words in [*page.error, *page.warning][0].value


def test_recent_comparisons_are_links_with_their_verdict(kept: fakes.FakeWorkspace) -> None:
    kept.past = [fakes.past_record("c1", label_candidate=fakes.HOSTILE)] + [
        fakes.past_record(f"x{n}") for n in range(12)
    ]
    shown = html_of(open_page("runs"))
    assert 'href="overview?c=c1"' in shown
    assert "113×" in shown
    assert "<img" not in shown
    assert "./?recent=all" in shown
    assert "overview?c=x11" not in shown
    assert "overview?c=x11" in html_of(open_page("runs", recent="all"))


@pytest.mark.usefixtures("sample")
def test_a_sample_is_opened_by_one_click(kept: fakes.FakeWorkspace) -> None:
    page = open_page("runs")
    assert [button.key for button in page.button if button.key.startswith("open-")] == ["open-one"]
    page.button(key="open-one").click().run()
    assert kept.asked[0][0] == "submit"
    assert page.query_params["job"] == "j1"


@pytest.mark.usefixtures("sample")
def test_a_sample_shows_its_verdict_only_where_it_was_compared(
    kept: fakes.FakeWorkspace, tmp_path: Path
) -> None:
    assert "Not compared here yet" in html_of(open_page("runs"))
    kept.compared["c0ffee"] = fakes.comparison()
    for side in ("ref", "cand"):
        path = str((tmp_path / "one" / side).resolve())
        kept.known_runs[side] = fakes.run_record(side, origin="sample", path=path)
    job = kept.submit("ref", "cand", fakes.Settings())
    kept.known_jobs["j1"] = replace(job, status="done", comparison_id="c0ffee")
    page = open_page("runs")
    assert "data:image/svg+xml" in html_of(page)
    page.button(key="open-one").click().run()
    assert asked_to_go(page) == "overview?c=c0ffee"
