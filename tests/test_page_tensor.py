"""The Tensor page as a session sees it, for every shape and kind of tensor."""

from __future__ import annotations

import memory_workspace
import numpy as np
import pytest
from memory_workspace import COUNT, EMPTY, FAULT, ODD, RESHAPED, SCALAR
from streamlit_fixture import html_of, navigation_mode, open_page

from analysis import selection, views
from analysis.selection import parse
from core.errors import NotHereError
from store import thumbnails, workspace
from ui.cards import cut, slice_acts, worst

pytestmark = pytest.mark.usefixtures("navigation_mode")
__all__ = ["navigation_mode"]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> memory_workspace.MemoryWorkspace:
    memory = memory_workspace.workspace_of(*memory_workspace.decoder())
    monkeypatch.setattr(workspace, "default", lambda: memory)
    return memory


def test_a_fault_opens_with_its_name_verdict_figures_and_worst_element(kept):
    page = open_page("tensor", c=kept.compared.id, t=FAULT)
    shown = html_of(page)
    assert not page.exception
    assert "model.layers.1.mlp</h1>" in shown
    assert "Fault, first divergence" in shown
    assert "<dd>256</dd>" in shown
    rows = shown[shown.index("Worst elements") :]
    assert rows.index("[1, 3, 7]") < rows.index("px-bits")
    assert "<i>4220</i>" in rows
    assert "<b>" in rows[rows.index("px-bits") :]


def test_without_a_name_the_first_divergence_is_shown_and_the_page_says_so(kept):
    shown = html_of(open_page("tensor", c=kept.compared.id))
    assert "model.layers.1.mlp</h1>" in shown
    assert "the address names no tensor: this is the first divergence" in shown


@pytest.mark.parametrize("name", [SCALAR, COUNT, ODD])
def test_scalars_integers_and_non_finite_values_have_a_page(kept, name):
    page = open_page("tensor", c=kept.compared.id, t=name)
    shown = html_of(page)
    assert not page.exception
    assert name.partition(":")[0] in shown
    assert "Worst elements" in shown
    assert ("All elements are equal." in shown) == (name in (SCALAR, COUNT))
    assert ("[2, 3]" in shown) == (name == ODD)
    assert "[0, 0]" not in shown


def test_an_empty_pair_says_that_there_is_nothing_to_compare(kept):
    page = open_page("tensor", c=kept.compared.id, t=EMPTY)
    assert not page.exception
    assert "Not compared:" in html_of(page)
    assert "0 × 4" in html_of(page)


def test_an_uncompared_pair_shows_why_with_both_shapes_instead_of_charts(kept):
    page = open_page("tensor", c=kept.compared.id, t=RESHAPED)
    shown = html_of(page)
    assert not page.exception
    assert "Not compared:" in shown
    assert "4 × 6" in shown
    assert "6 × 4" in shown
    assert not page.get("plotly_chart")


def test_an_adapted_pair_shows_its_steps_with_their_shapes(monkeypatch):
    weight = np.random.default_rng(2).standard_normal((12, 20)).astype(np.float32)
    name = "model.layers.0.mlp:forward_params.weight"
    memory = memory_workspace.workspace_of({name: weight}, {name: weight.T.copy()})
    monkeypatch.setattr(workspace, "default", lambda: memory)
    page = open_page("tensor", c=memory.compared.id, t=name)
    shown = html_of(page)
    assert not page.exception
    assert "Adapted before comparing" in shown
    assert "candidate: axes in the order 1, 0: 20 × 12 → 12 × 20" in shown
    assert "All elements are equal." in shown


def test_a_stale_tensor_link_says_what_it_asked_for(kept):
    shown = html_of(
        open_page("tensor", c=kept.compared.id, t="model.layers.9.mlp:forward_output.0")
    )
    assert "This comparison has no tensor" in shown
    assert "Nearest: model.layers." in shown


def test_a_tensor_of_one_run_only_says_which(monkeypatch):
    a, b = memory_workspace.decoder()
    a["model.extra:forward_output.0"] = np.ones(3, np.float32)
    memory = memory_workspace.workspace_of(a, b)
    monkeypatch.setattr(workspace, "default", lambda: memory)
    page = open_page("tensor", c=memory.compared.id, t="model.extra:forward_output.0")
    assert "was recorded by the reference only" in html_of(page)


@pytest.mark.parametrize(
    ("sel", "said"),
    [("0, 0", "has 2 items"), ("5, :, :", "does not fit axis 0"), ("a, :, :", "is not an index")],
)
def test_a_stale_slice_says_what_does_not_fit_and_the_rest_of_the_page_stays(kept, sel, said):
    page = open_page("tensor", c=kept.compared.id, t=FAULT, sel=sel)
    shown = html_of(page)
    assert said in shown.replace("&#x27;", "'")
    assert "Worst elements" in shown
    assert not page.exception


def test_without_its_dumps_a_comparison_still_shows_what_it_measured(kept, monkeypatch):
    def gone(*_: object, **__: object) -> None:
        raise NotHereError("The dump of gpu is gone.", "Add it again.")

    monkeypatch.setattr(kept, "ask", gone)
    page = open_page("tensor", c=kept.compared.id, t=FAULT)
    shown = html_of(page)
    assert not page.exception
    assert shown.count("The dump of gpu is gone.") == 2
    assert len(page.get("plotly_chart")) == 9


def test_without_its_dumps_the_saved_picture_stands_for_the_slice(kept, monkeypatch):
    def gone(*_: object, **__: object) -> None:
        raise NotHereError("The dump of gpu is gone.", "Add it again.")

    pictures = thumbnails.drawn(
        (kept.reference, kept.candidate), kept.compared, kept.table(kept.compared.id)
    )
    kept.pictures |= {picture.number: picture for picture in pictures}
    monkeypatch.setattr(kept, "ask", gone)
    page = open_page("tensor", c=kept.compared.id, t=FAULT)
    shown = html_of(page)
    assert not page.exception
    assert "The dump of gpu is gone. This is the small picture" in shown


def test_a_picked_element_is_shown_with_its_bits(kept):
    shown = html_of(open_page("tensor", c=kept.compared.id, t=FAULT, el="1, 3, 7"))
    head = shown[: shown.index("Where the error lies")]
    assert "Picked element" in head
    assert "[1, 3, 7]" in head
    stale = html_of(open_page("tensor", c=kept.compared.id, t=FAULT, el="9, 9, 9"))
    assert "does not fit axis 0" in stale


@pytest.mark.parametrize("scale", ["linear", "symlog"])
def test_values_ulps_and_every_long_axis_have_a_chart(kept, scale):
    page = open_page("tensor", c=kept.compared.id, t=FAULT, scale=scale)
    shown = html_of(page)
    assert len(page.get("plotly_chart")) == 9
    assert "By axis 2: 7, 2 carry" in shown
    assert "Ulp error (bfloat16):" in shown


def test_neighbours_lead_on_in_execution_order(kept):
    shown = html_of(open_page("tensor", c=kept.compared.id, t=FAULT))
    beside = shown[shown.index("Before") : shown.index("Worst elements")]
    assert "model.layers.1.attn.softmax" in beside
    assert "model.layers.1 ·" in beside


@pytest.mark.parametrize(
    ("act", "sel"),
    [
        ({"axis": 0, "index": 1}, "1, :, :"),
        ({"axes": {"down": 0, "across": 2}}, ":, 0, :"),
        ({"axes": {"down": 2, "across": 2}}, "0, x:, y:"),
        ({"axes": {"down": 1, "across": 1}}, "0, x:, y:"),
        ({"window": {"down": [1, 3], "across": [4, 99]}}, "0, 1:3, 4:16"),
        ({"window": {"down": [7, 3], "across": [-2, 0]}}, "0, 7:8, 0:1"),
        ({"fit": True}, "0, :, :"),
    ],
)
def test_what_the_user_does_in_the_slice_becomes_a_selection(act, sel):
    shape = (2, 8, 16)
    assert slice_acts.changed(parse("0, :, :", shape), shape, act).text(shape) == sel


def test_an_index_can_be_typed_and_a_negative_one_is_explained(kept):
    page = open_page("tensor", c=kept.compared.id, t=FAULT, el="1, 3, -9")
    shown = html_of(page)
    assert "1, 3, -9 counts from the end: this is [1, 3, 7]." in shown
    assert "[1, 3, 7]" in shown[: shown.index("Where the error lies")]
    page.text_input(key="typed-element").set_value("[0, 1, 2]").run()
    assert page.query_params["el"] == "0, 1, 2"
    assert not page.exception


@pytest.mark.parametrize(
    ("el", "said"), [("1, 3", "has 2 items"), ("0, 0, 16", "does not fit axis 2"), ("x", "items")]
)
def test_an_index_that_fits_nothing_is_explained_and_the_slice_stays(kept, el, said):
    page = open_page("tensor", c=kept.compared.id, t=FAULT, el=el)
    assert said in html_of(page)
    assert not page.exception
    names = [e.proto.component_name for e in page.get("bidi_component")]
    assert any(name.endswith("px_slices") for name in names)


def test_another_tolerance_is_counted_without_a_new_pass_and_stands_in_the_address(kept):
    page = open_page("tensor", c=kept.compared.id, t=FAULT)
    own = next(p for p in kept.compared.pairs if p.reference.id == FAULT)
    words = f"{own.stats.mismatches} of 256 elements are outside"
    assert words in html_of(page)
    page.select_slider(key="what-if-atol").set_value("1e0").run()
    assert page.query_params["atol"] == "1e0"
    assert "elements would be outside" in html_of(page)
    stale = open_page("tensor", c=kept.compared.id, t=FAULT, rtol="0.3333")
    assert "The link asks for rtol 0.3333, which is not a step." in html_of(stale)


def test_the_format_lens_stands_beside_the_error_that_was_measured(kept):
    shown = html_of(open_page("tensor", c=kept.compared.id, t=FAULT))
    lens = shown[shown.index("If the candidate had only been rounded to") :]
    assert lens.index("bf16") < lens.index("e4m3 tensor") < lens.index("as measured")
    bf16 = lens[lens.index("<span>bf16") :]
    assert bf16.index("<span>0</span>") < bf16.index("e4m3")  # it holds bf16 values already


@pytest.mark.parametrize("name", [SCALAR, COUNT, ODD])
def test_every_kind_of_tensor_has_its_further_charts(kept, name):
    page = open_page("tensor", c=kept.compared.id, t=name, scale="exponent", log="1", full="1")
    assert not page.exception
    assert "Distributions in detail" in html_of(page)


def test_a_click_on_a_profile_leads_into_that_slice():
    part = parse("0, :, :", (2, 8, 64))
    assert selection.at(part, (2, 8, 64), 0, 1).text((2, 8, 64)) == "1, :, :"
    assert selection.at(part, (2, 8, 64), 2, 5).text((2, 8, 64)) == "0, :, 0:22"
    assert selection.at(part, (2, 8, 64), 2, 63).text((2, 8, 64)) == "0, :, 47:64"


def test_a_huge_slice_is_shown_at_a_glance_while_it_is_read(kept, monkeypatch):
    asked = []

    def slice_view(comparison_id, *, whole, huge, **arguments):
        asked.append((whole, huge))
        return kept.ask(comparison_id, views.slice_view, glance=True, height=2, **arguments)

    monkeypatch.setattr(kept, "slice_view", slice_view)
    monkeypatch.setattr(cut, "DIRECT", 20)
    monkeypatch.setattr(worst, "DIRECT", 20)
    monkeypatch.setattr(kept, "ask_later", lambda *_args, **_more: None)
    page = open_page("tensor", c=kept.compared.id, t=FAULT, sel="0, :, :")
    shown = html_of(page)
    assert not page.exception
    assert asked[0] == ("0, :, :", True)
    assert "All 128 elements are being read for exact block maxima" in shown
    rows = shown[shown.index("Worst elements") :]
    assert "the next ones are being looked for among all elements" in rows
    assert "[1, 3, 7]" in rows  # the one that the statistics know
