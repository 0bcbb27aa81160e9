"""The Layers page as a session sees it."""

from __future__ import annotations

import io
from collections.abc import Iterator

import fakes
import memory_workspace
import openpyxl
import pandas as pd
import pytest
from streamlit_fixture import html_of, navigation_mode, open_page

from store import workspace
from ui import url
from ui.cards import downloads, layers

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
    assert "<b>3 forward outputs</b>" in shown
    assert "matching “mlp”" in shown
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
    assert "<img src=x" not in html_of(page)


def test_the_download_quotes_what_a_spreadsheet_would_run():
    rows = pd.DataFrame({"operator": ["=cmd()", "-x", "a"], "added": [-1.0, 2.0, 3.0]})
    assert downloads.as_csv(rows).splitlines() == [
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
    layers.open_path(table, "model.layers.1.mlp", 8)
    layers.open_path(table, "model.layers.1", 9)
    assert went == [("tensor", {"t": memory_workspace.FAULT})]
    assert put == [{"at": "model.layers.1", "p": None, "span": None}]


@pytest.mark.parametrize(
    ("query", "rows", "said"),
    [
        ({"re": r"layers\.[01]\.mlp$"}, 2, "name fits"),
        ({"verdict": "fault"}, 1, "verdict Fault"),
        ({"verdict": "fault,uncompared", "kind": "all"}, 3, "verdict Fault or Uncompared"),
        ({"op": "softmax"}, 3, "call softmax"),
        ({"dtype": "bfloat16", "q": "norm"}, 3, "dtype bfloat16"),
        ({"match": "exact", "pass": "forward"}, 20, "matched by equal names"),
        ({"class": "Gone"}, 0, "class Gone"),
    ],
)
def test_every_filter_is_in_the_address_and_said_in_words(kept, query, rows, said):
    page = open_page("layers", c=kept.compared.id, **query)
    shown = html_of(page)
    assert not page.exception
    assert said in shown
    assert 'title="Drop: ' in shown
    assert shown.count("<tr>") == (rows + 1 if rows else 0)


def test_a_pattern_that_is_none_is_explained(kept):
    shown = html_of(open_page("layers", c=kept.compared.id, re="("))
    assert "is no regular expression" in shown


def test_rows_of_the_heat_map_that_are_none_are_called_out(kept):
    page = open_page("layers", c=kept.compared.id, span="9-2")
    assert "rows of the heat map that are none" in page.warning[0].value
    part = html_of(open_page("layers", c=kept.compared.id, span="1-3"))
    assert "rows 2 to 3 of 5" in part
    assert "all rows</a>" in part


@pytest.mark.parametrize("size", ["elements", "order", "added"])
def test_boxes_are_as_large_as_asked(kept, size):
    page = open_page("layers", c=kept.compared.id, size=size, colour="ulp_max")
    assert not page.exception


def test_each_row_shows_how_the_same_tensor_fares_in_every_layer(kept):
    shown = html_of(open_page("layers", c=kept.compared.id))
    assert "Total, by layer" in shown
    assert shown.count('class="px-trace"') == 15  # five operators in three layers


def test_the_spreadsheet_holds_names_as_text_and_odd_numbers_as_words():
    rows = pd.DataFrame({"operator": ["=cmd()", "a"], "added": [float("inf"), float("nan")]})
    book = openpyxl.load_workbook(io.BytesIO(downloads.as_sheet(rows)))
    cells = [[cell.value for cell in row] for row in book.active.iter_rows()]
    assert cells == [["operator", "added"], ["=cmd()", "inf"], ["a", None]]
    assert book.active["A2"].data_type == "s"
