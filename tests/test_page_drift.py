"""The Drift page as a session sees it."""

from __future__ import annotations

import memory_workspace
import numpy as np
import pytest
from memory_runs import run_of
from memory_workspace import EMPTY, FAULT
from streamlit_fixture import html_of, navigation_mode, open_page

from analysis.compare import compare
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


def test_a_family_of_layers_has_a_ridgeline_bands_and_a_table_of_its_health(kept):
    page = open_page("drift", c=kept.compared.id, t=FAULT)
    shown = html_of(page)
    assert not page.exception
    assert "of 3 tensors alike" in shown
    assert "Quantiles over layers" in shown
    health = shown[shown.index("Saturation and outlier channels") : shown.index("Most moved")]
    assert health.count("<tr>") == 1 + 3


def test_pairs_of_different_shapes_are_compared_by_their_distributions(monkeypatch):
    rng = np.random.default_rng(1)
    names = [f"model.layers.{n}.mlp:forward_output.0" for n in range(3)]
    a = {name: rng.standard_normal((6, 32)).astype(np.float32) for name in names}
    b = {name: rng.standard_normal((9, 32)).astype(np.float32) for name in names}
    b[names[1]] *= 4
    memory = memory_workspace.workspace_of(a, b)
    monkeypatch.setattr(workspace, "default", lambda: memory)
    page = open_page("drift", c=memory.compared.id)
    shown = html_of(page)
    assert not page.exception
    assert "3 pairs have no element in common" in shown
    assert "model.layers.1.mlp moved most" in shown
    assert "192 of 192 elements against 288 of 288" in shown
    assert len(page.get("plotly_chart")) == 4


def test_while_distributions_are_read_the_page_says_so(monkeypatch):
    a = {"model.a:forward_output.0": np.ones((6, 4), np.float32)}
    b = {"model.a:forward_output.0": np.ones((5, 4), np.float32)}
    memory = memory_workspace.workspace_of(a, b)
    monkeypatch.setattr(memory, "ask_later", lambda *_args, **_more: None)
    monkeypatch.setattr(workspace, "default", lambda: memory)
    page = open_page("drift", c=memory.compared.id)
    assert not page.exception
    assert "The distributions of 1 pair of different shapes are being read." in html_of(page)


def test_with_several_steps_the_bands_run_over_them(monkeypatch):
    rng = np.random.default_rng(1)
    arrays = {f"s{n}.m:forward_output.0": rng.standard_normal((6, 32)) * (n + 1) for n in range(3)}
    facts = {name: {"step": n, "module": "m", "id": f"step{n}/m"} for n, name in enumerate(arrays)}
    run = run_of(arrays, label="gpu", facts=facts)
    memory = memory_workspace.MemoryWorkspace(run, run, compare(run, run))
    monkeypatch.setattr(workspace, "default", lambda: memory)
    page = open_page("drift", c=memory.compared.id)
    shown = html_of(page)
    assert not page.exception
    assert "Quantiles over steps" in shown
    assert shown.count("forward_output.0, step 2") == 1
    assert "From step 0 to step 2 the reference itself moved by" in shown
