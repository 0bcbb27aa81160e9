"""Names from dumps: shown whole where they fit, shortened by segments, harmless everywhere."""

from __future__ import annotations

import html
import unicodedata

import pytest
from fakes import HOSTILE
from hypothesis import given
from hypothesis import strategies as st

from charts import names


@given(st.text())
def test_nothing_of_a_name_survives_as_markup(name: str) -> None:
    shown = names.for_html(name)
    assert "<" not in shown
    assert html.unescape(shown) == names.plain(name)


@given(st.text())
def test_plain_has_no_control_or_direction_characters(name: str) -> None:
    shown = names.plain(name)
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cf", "Cs"}
    assert len(shown) <= names.LIMIT


def test_a_hostile_name_is_shown_letter_by_letter() -> None:
    assert "\u202e" not in names.plain(HOSTILE)
    assert "**" not in names.for_markdown(HOSTILE)
    assert names.for_markdown("a_b") == "a\\_b"


@pytest.mark.parametrize(
    ("paths", "prefix"),
    [
        (["model.layers.1.a", "model.layers.2.b"], "model."),
        (["layers.1", "layers.2"], ""),
        (["model.a", "lm_head"], ""),
        (["a.b"], "a."),
        (["a.b", "a.b.c"], "a."),
        ([], ""),
    ],
)
def test_the_common_prefix_never_takes_the_last_segment(paths: list[str], prefix: str) -> None:
    assert names.common_prefix(paths) == prefix


@pytest.mark.parametrize(
    ("path", "limit", "text"),
    [
        ("layers.17.mlp.experts.gate_proj.input", 28, "layers.17…gate_proj.input"),
        ("layers.17.rope", 36, "layers.17.rope"),
        ("a.b.c.d.e.f", 3, "a…e.f"),
        ("x" * 50, 10, "x" * 50),
    ],
)
def test_a_path_loses_whole_segments_from_its_middle(path: str, limit: int, text: str) -> None:
    assert names.shorten(path, limit) == text


def test_index_runs_collapse_to_a_pattern() -> None:
    assert names.pattern(f"layers.{n}.mlp" for n in range(32)) == "layers.0–31.mlp"
    assert names.pattern(["a.1", "b.1"]) == "a.1 and 1 more"
    assert names.pattern(["a.1"]) == "a.1"
    assert names.pattern([]) == ""
