"""The Layers page as a session sees it."""

from __future__ import annotations

from collections.abc import Iterator

import fakes
import memory_workspace
import pandas as pd
import pytest
from streamlit_fixture import html_of, navigation_mode, open_page

from store import workspace
from ui import url
from ui.cards import layers, operators

pytestmark = pytest.mark.usefixtures("navigation_mode")
__all__ = ["navigation_mode"]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[memory_workspace.MemoryWorkspace]:
    memory = memory_workspace.workspace_of(*memory_workspace.decoder())
    monkeypatch.setattr(workspace, "default", lambda: memory)
    return memory


def test_the_page_says_what_it_shows_and_lists_the_worst_first(kept):
    page = open_page("layers", c=kept.compared.id)
    shown = html_of(page)
    assert not page.exception
    assert "Showing <b>all 20 forward outputs</b>" in shown
    assert "5 outside the repeated blocks are in the table only." in shown
    assert "1 to 20 of 20" in shown
    first = shown.index("<tbody>")
    assert shown.index("px-verdict px-fault", first) < shown.index("px-verdict px-rounding", first)
    assert shown.count("<tr>") == 21


def test_a_place_narrows_table_and_breadcrumb(kept):
    shown = html_of(open_page("layers", c=kept.compared.id, at="model.layers.1.attn"))
    assert "Showing <b>2 forward outputs under model.layers.1.attn</b>" in shown
    assert "Inside model.layers.1.attn" in shown
    assert 'at=model.layers.1" title="model.layers.1">1</a>' in shown


def test_a_stale_place_says_so_and_names_the_nearest(kept):
    shown = html_of(open_page("layers", c=kept.compared.id, at="model.layers.7.attn"))
    assert "This comparison has no module" in shown
    assert "Nearest: " in shown
    assert "<tbody>" not in shown


def test_words_filter_the_table_and_can_be_cleared(kept):
    shown = html_of(open_page("layers", c=kept.compared.id, q="mlp"))
    assert "<b>3 forward outputs</b> matching “mlp”" in shown
    assert ">Clear</a>" in shown
    none = html_of(open_page("layers", c=kept.compared.id, q="nowhere"))
    assert "No tensor matches." in none


def test_heads_sort_and_turn_the_order_in_the_address(kept):
    shown = html_of(open_page("layers", c=kept.compared.id, sort="operator", up="1"))
    assert "Operator ↑" in shown
    body = shown[shown.index("<tbody>") :]
    assert (
        body.index("model.ids") < body.index("model.layers.0.attn") < body.index("model.reshaped")
    )
    stale = open_page("layers", c=kept.compared.id, sort="nothing")
    assert "sorts by" in stale.warning[0].value
    assert not stale.exception


@pytest.mark.parametrize(
    ("cols", "by", "colour"),
    [
        ("layer", "operator", "added"),
        ("layer", "module", "both"),
        ("layer", "operator", "ulp_max"),
        ("metric", "operator", "both"),
        ("metric", "module", "both"),
    ],
)
def test_every_view_of_the_heat_map_draws(kept, cols, by, colour):
    page = open_page("layers", c=kept.compared.id, cols=cols, rows=by, colour=colour)
    assert not page.exception
    assert len(page.get("plotly_chart")) == 2


def test_an_uncompared_pair_is_listed_with_its_problem(kept):
    shown = html_of(open_page("layers", c=kept.compared.id, q="reshaped"))
    assert "px-uncompared" in shown
    assert "shape" in shown.lower()
    assert '<span title="' in shown


def test_hostile_names_stay_text(monkeypatch):
    names = [f"model.layers.{n}.{fakes.HOSTILE}" for n in range(3)]
    fake = fakes.FakeWorkspace(compared={"c0ffee": fakes.comparison(names)})
    monkeypatch.setattr(workspace, "default", lambda: fake)
    page = open_page("layers", c="c0ffee")
    assert not page.exception
    assert "<img" not in html_of(page)


def test_the_download_quotes_what_a_spreadsheet_would_run():
    rows = pd.DataFrame({"operator": ["=cmd()", "-x", "a"], "added": [-1.0, 2.0, 3.0]})
    assert operators.as_csv(rows).splitlines() == [
        "operator,added",
        "'=cmd(),-1.0",
        "'-x,2.0",
        "a,3.0",
    ]


def test_a_cell_opens_its_tensor_or_drills_into_a_module_that_holds_operators(kept, monkeypatch):
    table = kept.table(kept.compared.id)
    went, put = [], []
    monkeypatch.setattr(url, "go_after", lambda page, **params: went.append((page, params)))
    monkeypatch.setattr(url, "put", lambda **params: put.append(params))
    names = table["operator"].astype(str)
    layers.open_path(table, names, "model.layers.1.mlp", 8)
    layers.open_path(table, names, "model.layers.1", 9)
    assert went == [("tensor", {"t": memory_workspace.FAULT})]
    assert put == [{"at": "model.layers.1", "p": None}]
