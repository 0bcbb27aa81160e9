"""The table of pairs as heat maps, as a tree, and as filtered and sorted rows."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from analysis.views_grid import badness
from analysis.views_layers import block_grid, metric_grid, place_grid, stack_of
from analysis.views_rows import has_inside, kinds, matching, of_kind, sorted_by, trail, under
from analysis.views_tree import tree


def rows(operators, **columns):
    """A table of pairs with one forward output an operator."""
    n = len(operators)
    about = {
        "pair": range(n),
        "tensor": [f"{name}:o" for name in operators],
        "operator": operators,
        "module_class": "Linear",
        "slot": "forward_output.0",
        "verdict": "rounding",
        "dtype_reference": "bfloat16",
        "dtype_candidate": "bfloat16",
        "added": 0.5,
        "times_floor": 1.0,
        "elements": 10,
        "relative_l2": 1e-3,
    }
    return pd.DataFrame(about | columns)


def blocks(prefix="model.layers", count=4, parts=("attn.q", "attn", "mlp.up", "mlp")):
    return [f"{prefix}.{n}.{part}" for n in range(count) for part in parts]


@pytest.mark.parametrize(
    "prefix", ["layers", "model.layers", "encoder.layer", "h", "blocks", "a.b.c"]
)
def test_repeated_blocks_are_found_whatever_they_are_called(prefix):
    found = stack_of(["embed", *blocks(prefix), "head"])
    assert (found.prefix, found.numbers) == (prefix, (0, 1, 2, 3))
    assert found.split(f"{prefix}.2.attn.q") == (2, "attn.q")
    assert found.split("embed") is None
    assert found.block(3) == f"{prefix}.3"


def test_numbers_without_a_shared_inside_are_no_blocks():
    assert stack_of(["embed", "head", "norm"]) is None
    assert stack_of(["a.0.x", "a.1.y", "b", "c", "d"]) is None


def test_a_small_sequence_does_not_hide_the_layers():
    names = [*blocks(count=12), "model.layers.3.moe.experts.0", "model.layers.3.moe.experts.1"]
    assert stack_of(names).prefix == "model.layers"


def test_experts_become_the_columns_where_they_fill_the_place():
    names = [*blocks(), *blocks("model.layers.3.moe.experts", count=8, parts=("up", "down"))]
    assert stack_of(names, "model.layers.3.moe").prefix == "model.layers.3.moe.experts"
    assert stack_of(names, "model.layers.3.moe.experts.2").prefix == "model.layers.3.moe.experts"
    assert stack_of(names, "model.layers.3.attn").prefix == "model.layers"


def test_a_grid_has_operators_down_in_execution_order_and_blocks_across():
    table = rows(["embed", *blocks()])
    grid = block_grid(
        table, stack_of(table["operator"]), by="operator", metric="relative_l2", max_rows=99
    )
    assert grid.rows == ("attn.q", "attn", "mlp.up", "mlp")
    assert grid.columns == ("0", "1", "2", "3")
    assert grid.path[2, 1] == "model.layers.1.mlp.up"
    assert table["operator"][grid.pair[2, 1]] == "model.layers.1.mlp.up"
    assert (grid.count == 1).all()
    assert grid.folded == 1


def test_rows_by_module_show_the_worst_inside():
    verdicts = ["rounding"] * 16
    verdicts[5] = "inherited"  # layer 1, attn
    added = [0.5] * 16
    added[4] = 0.9
    table = rows(blocks(), verdict=verdicts, added=added)
    grid = block_grid(
        table, stack_of(table["operator"]), by="module", metric="relative_l2", max_rows=99
    )
    assert grid.rows == ("attn", "mlp")
    assert grid.verdict[0, 1] == "inherited"
    assert grid.pair[0, 1] == 5
    assert grid.count[0, 1] == 2
    assert grid.path[0, 1] == "model.layers.1.attn"


def test_too_many_rows_are_folded_by_worst_and_say_so():
    parts = tuple(f"op{i}" for i in range(90))
    verdicts = ["rounding"] * 180
    verdicts[90 + 37] = "fault"
    table = rows(blocks(count=2, parts=parts), verdict=verdicts)
    grid = block_grid(
        table, stack_of(table["operator"]), by="operator", metric="relative_l2", max_rows=34
    )
    assert len(grid.rows) <= 34
    assert grid.folded == 3
    assert (grid.verdict == "fault").sum() == 1
    assert grid.path[np.nonzero(grid.verdict == "fault")] == ["model.layers.1.op37"]
    assert grid.count.sum() == 180


def test_missing_cells_are_empty_and_uncompared_ones_are_not_missing():
    table = rows(
        [*blocks(count=2), "model.layers.0.extra"],
        verdict=["rounding"] * 8 + ["uncompared"],
        added=[0.5] * 8 + [math.nan],
        times_floor=[1.0] * 8 + [math.nan],
    )
    grid = block_grid(
        table, stack_of(table["operator"]), by="operator", metric="relative_l2", max_rows=9
    )
    assert grid.pair[4].tolist() == [8, -1]
    assert grid.verdict[4].tolist() == ["uncompared", ""]


def test_metrics_across_hold_the_value_farthest_from_their_ideal():
    table = rows(
        ["a.x", "a.y", "b.x"],
        relative_l2=[0.1, 0.3, math.nan],
        norm_ratio=[1.2, 0.5, 1.0],
        sqnr_db=[50.0, 20.0, math.inf],
    )
    ideals = {"relative_l2": 0.0, "norm_ratio": 1.0, "sqnr_db": math.inf}
    grid = metric_grid(table, "", by="module", metrics=ideals, max_rows=9)
    assert grid.rows == ("a", "b")
    assert grid.value[0].tolist() == [0.3, 0.5, 20.0]
    assert grid.pair[0].tolist() == [1, 1, 1]
    assert math.isnan(grid.value[1, 0])
    inside = metric_grid(under(table, "a"), "a", by="module", metrics=ideals, max_rows=9)
    assert inside.rows == ("x", "y")


def test_badness_is_larger_for_worse():
    assert badness(np.array([0.5, 1.0, 1.5]), 1.0).tolist() == [0.5, 0.0, 0.5]
    assert badness(np.array([10.0, 60.0]), math.inf).argmax() == 0
    assert np.isnan(badness(np.array([math.nan]), 0.0)).all()


def test_the_tree_holds_every_element_once():
    names = ["embed", *blocks(), "model.layers", "model"]
    table = rows(names, elements=range(1, len(names) + 1))
    root, *inside = tree(table, "")
    ends = ["embed", *(n for n in blocks() if n.endswith((".q", ".up")))]
    assert root.elements == sum(names.index(n) + 1 for n in ends)
    for node in (root, *inside):
        parts = [n for n in inside if n.parent == node.path and n is not node]
        if parts:
            assert sum(part.elements for part in parts) == node.elements
            assert not node.leaf or node.inside > 1


def test_a_tree_box_carries_the_worst_pair_inside():
    verdicts = ["rounding"] * 16
    verdicts[8] = "fault"  # layer 2, attn.q
    nodes = {n.path: n for n in tree(rows(blocks(), verdict=verdicts), "")}
    for path in ("model", "model.layers", "model.layers.2", "model.layers.2.attn"):
        assert nodes[path].verdict == "fault"
    assert nodes["model.layers.1"].verdict == "rounding"


def test_a_tree_is_cut_where_it_gets_too_wide():
    wide = rows(blocks(count=40))
    nodes = tree(wide, "", leaves=64)
    assert {n.path for n in nodes if n.leaf} == {f"model.layers.{i}" for i in range(40)}
    flat = rows([f"t{i}" for i in range(500)], verdict=["rounding"] * 499 + ["fault"])
    nodes = tree(flat, "", leaves=64)
    assert len(nodes) <= 66
    assert "t499" in {n.path for n in nodes}
    assert nodes[-1].label.endswith("others")
    assert sum(n.elements for n in nodes[1:]) == nodes[0].elements


def test_the_tree_of_a_leaf_is_one_box_and_of_nothing_none():
    (only,) = tree(rows(["a.b"]), "a.b")
    assert (only.path, only.leaf) == ("a.b", True)
    assert tree(rows(["a.b"]), "c") == ()


def test_words_filter_by_name_class_dtype_and_verdict():
    table = rows(
        ["a.q_proj", "a.norm"], module_class=["Linear", "RMSNorm"], verdict=["fault", "rounding"]
    )
    for words, want in [
        ("q_proj", 1),
        ("LINEAR fault", 1),
        ("bfloat16", 2),
        ("rms fault", 0),
        (" ", 2),
        ("a.*", 0),
    ]:
        assert len(matching(table, words)) == want, words


def test_a_module_holds_itself_and_its_inside_and_no_neighbour_with_a_longer_name():
    table = rows(["a.1", "a.1.x", "a.10.x", "a"])
    assert under(table, "a.1")["operator"].tolist() == ["a.1", "a.1.x"]
    assert len(under(table, "")) == 4
    assert has_inside(table["operator"], "a.1")
    assert not has_inside(table["operator"], "a.1.x")
    assert trail("a.1.x") == (("a", "a"), ("1", "a.1"), ("x", "a.1.x"))


def test_kinds_are_offered_as_words_and_all_of_them_last():
    table = rows(["a", "b"], slot=["forward_output.0", "backward_params.weight"])
    assert list(kinds(table).values()) == ["forward outputs", "parameter gradients", "all tensors"]
    assert of_kind(table, "backward_params")["operator"].tolist() == ["b"]
    assert len(of_kind(table, "all")) == 2


@pytest.mark.parametrize("descending", [True, False])
def test_undefined_values_sort_last_either_way(descending):
    table = rows(list("abc"), relative_l2=[math.nan, 1.0, 2.0])
    assert sorted_by(table, "relative_l2", descending=descending)["operator"].iloc[-1] == "a"


def test_sorting_by_verdict_takes_added_and_then_total_second():
    table = rows(
        list("abcd"),
        verdict=["watch", "fault", "fault", "rounding"],
        added=[9.0, math.nan, 3.0, 99.0],
        times_floor=[9.0, 50.0, 3.0, 99.0],
    )
    assert sorted_by(table, "verdict", descending=True)["operator"].tolist() == list("bcad")


@pytest.mark.parametrize(("by", "rows"), [("module", ("layers.0", "layers.1")), ("operator", None)])
def test_ranks_stand_beside_each_other_block_by_block(
    by: str, rows: tuple[str, ...] | None
) -> None:
    table = pd.DataFrame(
        [
            {
                "operator": f"layers.{n}.mlp", "rank": rank, "step": 0, "pair": 4 * rank + n,
                "verdict": "fault" if (n, rank) == (1, 2) else "rounding", "added": 1.0,
                "times_floor": 100.0 if (n, rank) == (1, 2) else 1.0, "relative_l2": 0.1,
            }
            for rank in range(3)
            for n in range(2)
        ]
    )  # fmt: skip
    grid = place_grid(table, "rank", by=by, metric="relative_l2", max_rows=20)
    assert grid.columns == ("0", "1", "2")
    assert grid.rows == (rows or ("layers.0.mlp", "layers.1.mlp"))
    assert grid.verdict[1, 2] == "fault"
    assert grid.pair[1, 2] == 9


def test_folded_rows_say_which_they_are_and_can_be_shown_alone():
    parts = tuple(f"op{i}" for i in range(90))
    table = rows(blocks(count=2, parts=parts))
    stack = stack_of(table["operator"])
    grid = block_grid(table, stack, by="operator", metric="relative_l2", max_rows=34)
    assert grid.spans[:2] == ((0, 3), (3, 6))
    assert grid.total_rows == 90
    alone = block_grid(
        table, stack, by="operator", metric="relative_l2", max_rows=34, span=grid.spans[1]
    )
    assert alone.rows == ("op3", "op4", "op5")
    assert alone.spans == ((3, 4), (4, 5), (5, 6))
    beyond = block_grid(
        table, stack, by="operator", metric="relative_l2", max_rows=34, span=(500, 600)
    )
    assert beyond.rows == ("op89",)


def test_boxes_are_sized_by_elements_order_or_error_and_carry_a_metric():
    table = rows(
        ["a.x", "a.y", "b"], added=[math.nan, 50.0, 0.5], cosine=[0.1, math.nan, 0.3],
        elements=[5, 6, 7],
    )  # fmt: skip
    sizes = {
        size: {n.path: n.size for n in tree(table, "", size=size, metric=("cosine", 0.0))}
        for size in ("elements", "order", "added")
    }
    assert sizes["elements"] == {"": 18, "a": 11, "a.x": 5, "a.y": 6, "b": 7}
    assert sizes["order"] == {"": 3, "a": 2, "a.x": 1, "a.y": 1, "b": 1}
    assert sizes["added"]["a.y"] == 50.0
    assert 0 < sizes["added"]["a.x"] < sizes["added"]["b"]
    values = {n.path: n.value for n in tree(table, "", metric=("cosine", 0.0))}
    assert values[""] == 0.3
    assert math.isnan(values["a.y"])


def test_many_layers_are_shown_rather_than_the_one_box_that_holds_them():
    wide = rows(["embed", *blocks(count=90), "head"])
    nodes = tree(wide, "")
    assert {n.path for n in nodes if n.leaf} >= {f"model.layers.{i}" for i in range(90)}
    assert len(nodes) <= 500
