"""Filters of the table of pairs."""

from __future__ import annotations

import pandas as pd
import pytest

from analysis.filters import CHOICES, MODULE_ITSELF, Filter, from_text, options, to_text
from core.errors import SelectionError


@pytest.fixture
def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "operator": ["layers.1.norm", "layers.12.q_proj", "head", "head.softmax"],
            "tensor": ["a", "b", "c", "special/d"],
            "module_class": ["RMSNorm", "Linear", "Linear", "Linear"],
            "op": ["", "", "", "softmax"],
            "pass": ["forward", "backward", "forward", "forward"],
            "dtype_reference": ["bfloat16", "float32", "bfloat16", "float32"],
            "dtype_candidate": ["bfloat16", "bfloat16", "float16", "float32"],
            "verdict": ["fault", "watch", "rounding", "fault"],
            "match": ["exact", "normalised", "exact", "sequence"],
        }
    )


def numbers(found: pd.DataFrame) -> list[int]:
    return list(found.index)


@pytest.mark.parametrize(
    ("chosen", "rows"),
    [
        ({"verdict": ("fault",)}, [0, 3]),
        ({"verdict": ("fault", "watch")}, [0, 1, 3]),
        ({"class": ("Linear",), "pass": ("forward",)}, [2, 3]),
        ({"op": ("softmax",)}, [3]),
        ({"op": (MODULE_ITSELF,)}, [0, 1, 2]),
        ({"dtype": ("bfloat16",)}, [0, 1, 2]),
        ({"dtype": ("float16",)}, [2]),
        ({"match": ("normalised", "sequence")}, [1, 3]),
        ({"class": ("Gone",)}, []),
    ],
)
def test_a_row_needs_one_value_of_every_condition(table, chosen, rows):
    assert numbers(Filter(chosen=chosen).rows(table)) == rows


def test_a_pattern_is_found_anywhere_in_operator_or_tensor(table):
    assert numbers(Filter(pattern=r"layers\.1\.").rows(table)) == [0]
    assert numbers(Filter(pattern=r"^special").rows(table)) == [3]
    assert numbers(Filter(pattern="(norm|proj)$").rows(table)) == [0, 1]


def test_a_pattern_that_is_none_says_what_to_write(table):
    with pytest.raises(SelectionError, match=r"is no regular expression: missing \)"):
        Filter(pattern="(").rows(table)


def test_a_pattern_that_blows_up_elsewhere_takes_linear_time(table):
    table = pd.concat([table.assign(tensor="a" * 5000)] * 50, ignore_index=True)
    assert numbers(Filter(pattern="(a+)+$b").rows(table)) == []


def test_words_pattern_and_choices_hold_together(table):
    asked = Filter(words="linear", pattern="head", chosen={"verdict": ("fault",)})
    assert numbers(asked.rows(table)) == [3]
    assert asked.conditions == 3
    assert Filter(words=" ").conditions == 0


def test_options_are_what_rows_have(table):
    assert options(table, "dtype") == ["bfloat16", "float16", "float32"]
    assert options(table, "op") == ["softmax", MODULE_ITSELF]
    assert {name: bool(options(table, name)) for name in CHOICES} == dict.fromkeys(CHOICES, True)


def test_any_value_survives_the_address():
    values = ("a,b", "c%2C", "层 <b>", "d")
    assert from_text(to_text(values)) == values
    assert from_text("") == ()
