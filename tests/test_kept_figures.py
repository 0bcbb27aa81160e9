"""What a page made is made once for one table, address and language, and anew for another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import streamlit as st

import language
from ui.kept import kept

Asked = dict[str, str]


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Asked:
    held: Asked = {"c": "c0ffee"}
    monkeypatch.setattr(st, "query_params", SimpleNamespace(to_dict=lambda: dict(held)))
    return held


def view() -> Any:
    return SimpleNamespace(table=pd.DataFrame({"x": [1]}), theme="light")


def test_a_figure_is_made_once_for_one_address(address: Asked) -> None:
    made: list[int] = []
    one = view()
    for _ in range(3):
        kept(one, "figure", lambda: made.append(1))
    assert len(made) == 1
    address["at"] = "model"
    kept(one, "figure", lambda: made.append(1))
    assert len(made) == 2


@pytest.mark.usefixtures("address")
def test_another_table_part_or_language_makes_it_anew() -> None:
    one, other = view(), view()
    assert kept(one, "map", lambda: "first") == "first"
    assert kept(other, "map", lambda: "second") == "second"
    assert kept(one, "map", lambda: "third", 7) == "third"
    language.use("zh")
    try:
        assert kept(one, "map", lambda: "fourth") == "fourth"
    finally:
        language.use("en")
    assert kept(one, "map", lambda: "fifth") == "first"


@pytest.mark.usefixtures("address")
def test_a_table_that_is_gone_lends_its_figures_to_no_other() -> None:
    for number in range(200):
        assert kept(view(), "fresh", lambda n=number: n) == number
