"""The Drift page as a session sees it."""

from __future__ import annotations

import memory_workspace
import pytest
from memory_workspace import EMPTY, FAULT
from streamlit_fixture import html_of, navigation_mode, open_page

from store import workspace

pytestmark = pytest.mark.usefixtures("navigation_mode")
__all__ = ["navigation_mode"]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> memory_workspace.MemoryWorkspace:
    memory = memory_workspace.workspace_of(*memory_workspace.decoder())
    monkeypatch.setattr(workspace, "default", lambda: memory)
    return memory


def test_the_page_opens_with_what_moved_most_and_its_standing_line(kept):
    page = open_page("drift", c=kept.compared.id)
    shown = html_of(page)
    assert not page.exception
    assert "Blind to position: a permuted tensor does not move." in shown
    assert "moved most: JS divergence" in shown
    assert len(page.get("plotly_chart")) == 4
    assert "without a value are not ranked" in shown


@pytest.mark.parametrize("metric", ["ks", "psi", "wasserstein_1_relative", "quantile_shift_p99"])
def test_every_measure_can_rank(kept, metric):
    page = open_page("drift", c=kept.compared.id, drift=metric)
    assert not page.exception
    assert "ranked by" in html_of(page)


def test_a_chosen_tensor_is_shown_and_linked(kept):
    shown = html_of(open_page("drift", c=kept.compared.id, t=FAULT))
    assert "model.layers.1.mlp · forward_output.0" in shown
    assert "Open tensor →" in shown
    assert "only 256 elements" in shown


def test_an_empty_tensor_has_a_sentence_in_place_of_a_distribution(kept):
    page = open_page("drift", c=kept.compared.id, t=EMPTY)
    assert not page.exception
    assert "Not compared:" in html_of(page)


def test_a_stale_tensor_or_measure_is_called_out(kept):
    shown = html_of(open_page("drift", c=kept.compared.id, t="gone"))
    assert "This comparison has no tensor" in shown
    page = open_page("drift", c=kept.compared.id, drift="gone")
    assert "not here" in page.warning[0].value
