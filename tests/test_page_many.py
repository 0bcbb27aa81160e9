"""Many runs: candidates side by side, and one in units of another."""

from __future__ import annotations

from dataclasses import replace

import fakes
import numpy as np
import pandas as pd
import pytest
from streamlit_fixture import html_of, navigation_mode, open_page

from analysis.three_way import judged, ratios
from analysis.views_many import AFTER, BEFORE, candidate_grid
from store import workspace

pytestmark = pytest.mark.usefixtures("navigation_mode")
__all__ = ["navigation_mode"]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> fakes.FakeWorkspace:
    fake = fakes.FakeWorkspace(
        compared={"c0ffee": fakes.comparison(), "beef": fakes.comparison(id="beef")},
        past=[
            fakes.past_record("c0ffee", label_candidate="vendor A"),
            fakes.past_record("beef", label_candidate="vendor A", verdict="rounding"),
        ],
    )
    monkeypatch.setattr(workspace, "default", lambda: fake)
    return fake


def rows(error: list[float], floor: float = 1e-3) -> pd.DataFrame:
    names = [f"model.layers.{n}.mlp" for n in range(len(error))]
    return pd.DataFrame(
        {
            "tensor": names, "operator": names, "slot": "forward_output.0", "pass": "forward",
            "step": 0, "rank": 0, "pair": range(len(error)), "floor": floor,
            "relative_l2": error,
        }
    )  # fmt: skip


def test_a_candidate_is_judged_by_the_yardsticks_error() -> None:
    found = ratios(rows([0.01, 0.02, 0.5]), rows([0.01, 0.015, 0.1]))
    np.testing.assert_allclose(found["ratio"], [1.0, 4 / 3, 5.0])
    said = judged(found)
    assert (said.verdict, said.first, said.compared) == ("fault", "model.layers.2.mlp", 3)


def test_a_repeat_that_is_equal_to_the_bit_leaves_two_floors_as_yardstick() -> None:
    found = ratios(rows([5e-4, 4e-3]), rows([0.0, 0.0]))
    np.testing.assert_allclose(found["ratio"], [0.25, 2.0])


def test_undefined_errors_stay_undefined_and_nothing_in_common_is_uncompared() -> None:
    found = ratios(rows([np.nan, 0.0]), rows([0.1, np.nan]))
    assert np.isnan(found["ratio"]).all()
    assert judged(found).verdict == "uncompared"


def test_only_tensors_of_both_count() -> None:
    other = rows([0.1, 0.1])
    other["tensor"] = ["model.layers.1.mlp", "elsewhere"]
    assert list(ratios(rows([0.1, 0.1, 0.1]), other)["tensor"]) == ["model.layers.1.mlp"]


def test_the_grid_has_a_row_a_candidate_and_a_column_a_layer() -> None:
    compared = fakes.comparison()
    table = fakes.table(compared, fakes.judgement(compared))
    grid = candidate_grid({"A": table, "B": table})
    assert grid.rows == ("A", "B")
    assert grid.columns == (BEFORE, *map(str, range(fakes.LAYERS)), AFTER)
    assert grid.verdict[0, 3] == "fault"
    assert str(grid.path[1, 3]) == "B\nmodel.layers.2"


@pytest.mark.usefixtures("kept")
def test_the_page_lists_candidates_of_one_name_apart() -> None:
    page = open_page("many", c="c0ffee")
    shown = html_of(page)
    assert not page.exception
    assert "1 of 2 candidates parts from the reference." in shown
    assert ">vendor A</a>" in shown
    assert ">vendor A beef</a>" in shown


@pytest.mark.usefixtures("kept")
def test_the_yardstick_is_in_the_address() -> None:
    page = open_page("many", c="c0ffee", yard="beef")
    assert not page.exception
    assert page.selectbox(key="pick-yard").value == "beef"


def test_a_single_candidate_is_told_so(kept: fakes.FakeWorkspace) -> None:
    kept.past = kept.past[:1]
    page = open_page("many", c="c0ffee")
    assert not page.exception
    assert "Only one candidate" in html_of(page)
    assert "In units of another candidate" not in html_of(page)


def test_a_run_of_several_steps_has_a_path_for_each(kept: fakes.FakeWorkspace) -> None:
    once = fakes.comparison()
    later = [
        replace(
            pair,
            reference=replace(pair.reference, id=f"later/{pair.reference.id}", step=1),
            candidate=replace(pair.candidate, id=f"later/{pair.candidate.id}", step=1),
        )
        for pair in once.pairs
    ]
    kept.compared["c0ffee"] = replace(once, pairs=(*once.pairs, *later))
    page = open_page("many", c="c0ffee")
    assert not page.exception
    assert "Step by step" in html_of(page)
    assert "Step by step" not in html_of(open_page("many", c="beef"))
