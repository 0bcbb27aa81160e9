"""The colour table keeps its promises, by calculation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from charts import tokens
from charts.template import TEMPLATES
from charts.tokens import DARK, LIGHT, Theme

THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.mode)

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
DEFICIENCIES = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


def linear(colour: str) -> np.ndarray:
    values = np.array(tokens.channels(colour)) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def contrast(a: str, b: str) -> float:
    """WCAG 2.2 contrast ratio."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def oklab(rgb: np.ndarray) -> np.ndarray:
    """OKLab of linear RGB (Ottosson 2020)."""
    lms = np.cbrt(
        [[0.4122214708, 0.5363325363, 0.0514459929],
         [0.2119034982, 0.6806995451, 0.1073969566],
         [0.0883024619, 0.2817188376, 0.6299787005]] @ rgb.clip(0)
    )  # fmt: skip
    return (
        np.array(
            [[0.2104542553, 0.7936177850, -0.0040720468],
             [1.9779984951, -2.4285922050, 0.4505937099],
             [0.0259040371, 0.7827717662, -0.8086757660]]
        ) @ lms
    )  # fmt: skip


def distance(a: str, b: str, seen_by: str | None = None) -> float:
    """OKLab distance times 100, optionally as someone with a colour deficiency sees it."""
    matrix = np.array(DEFICIENCIES[seen_by]) if seen_by else np.eye(3)
    return 100 * math.dist(*(oklab(matrix @ linear(colour)) for colour in (a, b)))


@THEMES
def test_text_is_readable_on_the_surfaces_it_stands_on(theme: Theme) -> None:
    pairs = [
        *itertools.product((theme.text, theme.muted), (theme.bg, theme.surface_1, theme.surface_2)),
        *itertools.product((theme.accent, theme.fault, theme.watch), (theme.bg, theme.surface_1)),
        (theme.accent, theme.accent_soft),
        (theme.on_accent, theme.accent),
        (theme.fault, theme.fault_soft),
        (theme.watch, theme.watch_soft),
    ]
    for text, surface in pairs:
        assert contrast(text, surface) >= 4.5, (text, surface)


@THEMES
def test_marks_stand_out_from_the_page(theme: Theme) -> None:
    for mark in (theme.fault, theme.watch_mark, theme.muted, theme.reference, theme.candidate):
        assert contrast(mark, theme.bg) >= 3, mark
    for mark in theme.further:
        assert contrast(mark, theme.bg) >= 3, mark


@THEMES
@pytest.mark.parametrize("seen_by", DEFICIENCIES)
def test_verdicts_and_sides_stay_apart_for_every_eye(theme: Theme, seen_by: str) -> None:
    verdicts = (theme.fault, theme.watch_mark, theme.muted)
    for a, b in itertools.combinations(verdicts, 2):
        assert distance(a, b, seen_by) >= 12, (a, b)
    assert distance(theme.reference, theme.candidate, seen_by) >= 12
    assert distance(theme.fault, theme.watch_mark, seen_by) >= (19 if theme is LIGHT else 14)


@THEMES
@pytest.mark.parametrize("name", ["ember", "inherited", "values"])
def test_the_lightness_of_a_scale_runs_one_way(theme: Theme, name: str) -> None:
    steps = np.diff([oklab(linear(colour))[0] for colour in getattr(theme, name)])
    assert (steps > 0).all() or (steps < 0).all()


@THEMES
def test_neighbours_on_the_ember_scale_are_evenly_apart(theme: Theme) -> None:
    steps = [distance(a, b) for a, b in itertools.pairwise(theme.ember)]
    assert min(steps) >= 6.6
    assert max(steps) <= 8.8


@THEMES
def test_the_signed_scale_has_zero_in_its_middle(theme: Theme) -> None:
    lightness = [oklab(linear(colour))[0] for colour in theme.signed]
    middle = lightness[5]
    outer = lightness[:5] + lightness[6:]
    assert all(x < middle for x in outer) if theme is LIGHT else all(x > middle for x in outer)
    assert len(theme.signed) == 11


def test_ember_means_the_same_on_every_page() -> None:
    assert [tokens.ember_position(x) for x in (0.0, 1.0, 1000.0, 1e9)] == [0, 0, 1, 1]
    assert tokens.ember_position(10.0) == pytest.approx(1 / 3)
    assert math.isnan(tokens.ember_position(math.nan))
    assert tokens.colour_at(LIGHT.ember, 1.0) == LIGHT.ember[-1]
    assert tokens.colour_at(("#000000", "#FFFFFF"), 0.5) == "#808080"


def test_every_verdict_has_a_shape_and_a_word_of_its_own() -> None:
    assert set(tokens.MARKS) == {"fault", "watch", "inherited", "rounding", "uncompared"}
    assert len({mark.word for mark in tokens.MARKS.values()}) == 5
    assert len({mark.glyph for mark in tokens.MARKS.values()}) == 5


def test_the_templates_take_their_colours_from_the_table() -> None:
    for theme in (LIGHT, DARK):
        layout = TEMPLATES[theme.mode].layout
        assert layout.font.color == theme.text
        assert layout.yaxis.gridcolor == theme.line
        assert not layout.showlegend
