"""Blocks of huge slices on disk, and answers that come later."""

from __future__ import annotations

import os
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest
from memory_runs import run_of

from analysis import views_cut
from analysis.views_kept import kept_blocks, picture_of_kept
from core.errors import ExplorerError
from store import reduced
from store.later import Later

T = "m:forward_output.0"
ASKED = {"reference_id": T, "candidate_id": T, "selection": ":, :", "dtype": "float32", "rms": 1.0}
SHOWN = {"reference_id": T, "candidate_id": T, "selection": ":, :"}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(views_cut, "_LEAST", 8)
    rng = np.random.default_rng(0)
    a = rng.standard_normal((64, 48)).astype(np.float32)
    b = a.copy()
    b[10, 20] += 1
    b[3, 3] = np.nan
    return run_of({T: a}), run_of({T: b})


def test_what_was_kept_gives_the_picture_that_was_made(tmp_path: Path, runs):
    file = reduced.file_of(tmp_path, "abc", ASKED)
    assert reduced.reduce_slice(*runs, file=str(file), **ASKED) == str(file)
    read = reduced.reduced_view(*runs, file=str(file), **SHOWN)
    made = picture_of_kept(*runs, blocks=kept_blocks(*runs, **ASKED), **SHOWN)
    for name in ("reference", "candidate", "error", "relative", "ulps", "flags"):
        a, b = getattr(read.images, name), getattr(made.images, name)
        assert np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True), name
    assert read.nonfinite == made.nonfinite == (0, 1, 1)
    assert read.worst == made.worst == (3, 3)


def test_a_slice_is_read_once(tmp_path: Path, runs, monkeypatch):
    file = str(reduced.file_of(tmp_path, "abc", ASKED))
    reduced.reduce_slice(*runs, file=file, **ASKED)
    monkeypatch.setattr(reduced, "kept_blocks", None)  # would fail if it were asked again
    assert reduced.reduce_slice(*runs, file=file, **ASKED) == file


def test_each_slice_of_each_comparison_has_a_file_of_its_own(tmp_path: Path):
    other = ASKED | {"selection": "0, :, :"}
    names = {reduced.file_of(tmp_path, c, a) for c in ("abc", "abd") for a in (ASKED, other)}
    assert len(names) == 4


def test_the_files_not_used_for_longest_make_room(tmp_path: Path, runs, monkeypatch):
    files = [reduced.file_of(tmp_path, str(n), ASKED) for n in range(3)]
    for n, file in enumerate(files):
        reduced.reduce_slice(*runs, file=str(file), **ASKED)
        os.utime(file, (n, n))
    size = files[0].stat().st_size
    monkeypatch.setattr(reduced, "MOST_BYTES", int(2.5 * size))
    last = reduced.file_of(tmp_path, "last", ASKED)
    reduced.reduce_slice(*runs, file=str(last), **ASKED)
    assert [f.exists() for f in (*files, last)] == [False, False, True, True]
    assert not list(tmp_path.glob(".*"))


def test_an_answer_comes_later_and_is_asked_for_once():
    later, future, started = Later(), Future(), []

    def start() -> Future:
        started.append(1)
        return future

    assert later.get("key", "read", start) is None
    assert later.get("key", "read", start) is None
    future.set_result(7)
    assert later.get("key", "read", start) == 7
    assert later.get("key", "read", start) == 7
    assert len(started) == 1


def test_an_error_is_told_and_then_tried_again():
    later, futures = Later(), [Future(), Future()]
    futures[0].set_exception(MemoryError())
    futures[1].set_result(1)
    given = iter(futures)
    with pytest.raises(ExplorerError, match="more memory"):
        later.get("key", "read", lambda: next(given))
    assert later.get("key", "read", lambda: next(given)) == 1


def test_an_answer_that_no_longer_holds_is_asked_for_again():
    later, futures = Later(), [Future(), Future()]
    futures[0].set_result("gone")
    futures[1].set_result("there")
    given = iter(futures)

    def start() -> Future:
        return next(given)

    assert later.get("key", "read", start) == "gone"
    assert later.get("key", "read", start, still=lambda answer: answer != "gone") == "there"
