"""The address: read, written, carried from page to page."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ui import url


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The query of a page and an empty session, without Streamlit."""
    query: dict[str, str] = {}
    session: dict[str, Any] = {}
    monkeypatch.setattr(url.st, "query_params", query)
    monkeypatch.setattr(url.st, "session_state", session)
    return query


def test_a_link_carries_the_comparison_and_its_frame(address: dict[str, str]) -> None:
    address.update(c="c0ffee", m="rmse", step="3", sel="0, :")
    assert url.link("layers") == "layers?c=c0ffee&m=rmse&step=3"


def test_a_link_overrides_what_it_carries_and_drops_none(address: dict[str, str]) -> None:
    address.update(c="c0ffee", m="rmse")
    assert url.link("tensor", m=None, t="a/b.0") == "tensor?c=c0ffee&t=a%2Fb.0"


def test_a_link_to_another_comparison_leaves_step_and_rank_behind(address: dict[str, str]) -> None:
    address.update(c="c0ffee", m="rmse", step="3", rank="1")
    assert url.link("overview", c="other") == "overview?m=rmse&c=other"


def test_a_link_to_runs_is_the_empty_path_without_a_comparison(address: dict[str, str]) -> None:
    address.update(c="c0ffee")
    assert url.link("runs") == "./"
    assert url.link("runs", recent="all") == "./?recent=all"


@pytest.mark.usefixtures("address")
@pytest.mark.parametrize("name", ["a&b=c", "x#y", "ü?", "<b>", "a b", "a+b", "%2F"])
def test_a_name_survives_the_way_through_a_link(name: str) -> None:
    parts = urlsplit(url.link("tensor", t=name))
    assert parts.path == "tensor"
    assert parse_qs(parts.query) == {"t": [name]}


@pytest.mark.usefixtures("address")
def test_a_callback_says_once_where_to_go() -> None:
    url.go_after("overview", c="c0ffee")
    assert url.pending() == "overview?c=c0ffee"
    assert url.pending() is None


def test_put_writes_and_none_removes(address: dict[str, str]) -> None:
    address.update(t="old", at="layers")
    url.put(t="new", at=None, sel=3)
    assert address == {"t": "new", "sel": "3"}


def test_an_address_without_a_query_stands_for_the_last_one(address: dict[str, str]) -> None:
    address.update(c="c0ffee", step="3", t="x")
    url.remember()
    address.clear()
    assert url.get("c") == "c0ffee"
    assert url.get("step") == "3"
    assert url.get("t") is None


def test_an_address_with_a_comparison_is_taken_at_its_word(address: dict[str, str]) -> None:
    address.update(c="c0ffee", step="3")
    url.remember()
    address.clear()
    address.update(c="other")
    assert url.get("step") is None
