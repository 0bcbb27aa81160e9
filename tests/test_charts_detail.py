"""The further charts of a tensor and the ridgeline, as figures."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.views_detail import Cumulative, Density, ErrorOctaves, Octaves, Quantiles
from analysis.views_ridges import SHARES, Ridges
from charts.detail import (
    cumulative_chart,
    density_chart,
    error_histogram,
    exponent_histogram,
    quantile_chart,
)
from charts.ridges import quantile_bands, ridgeline
from charts.tokens import DARK, LIGHT

EXPONENTS = np.arange(-3, 2)
SHARE = np.array([0.1, 0.2, 0.3, 0.2, 0.2])


def text_of(chart: object) -> str:
    return " ".join(str(a.text) for a in chart.layout.annotations)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_sides_have_their_colours_by_exponent_and_in_the_cumulative_curve(theme):
    bars = exponent_histogram(Octaves(EXPONENTS, SHARE, SHARE, (0.0, 0.0)), theme=theme)
    assert [t.marker.color for t in bars.data] == [theme.reference, theme.candidate]
    curve = np.linspace(-1, 1, 9), np.linspace(0, 1, 9)
    rising = cumulative_chart(Cumulative(curve, curve, -1.0, 1.0), theme=theme)
    assert [t.line.color for t in rising.data] == [theme.reference, theme.candidate]
    assert rising.data[0].line.dash == "dash"
    assert max(rising.data[0].y) == 100


def test_quantiles_stand_over_a_diagonal():
    value = np.array([-1.0, 0.0, 2.0])
    chart = quantile_chart(Quantiles(np.array([0.1, 0.5, 0.9]), value, 2 * value), theme=LIGHT)
    assert list(chart.data[0].x) == list(chart.data[0].y) == [-2, 4]
    assert list(chart.data[1].y) == [-2, 0, 4]
    assert "10 %" in chart.data[1].customdata[0]


def test_elements_without_an_error_stand_left_of_the_others():
    found = ErrorOctaves(EXPONENTS, np.array([1, 2, 3, 2, 2]), 10, 20)
    chart = error_histogram(found, theme=LIGHT)
    assert chart.data[0].x[0] < EXPONENTS[0]
    assert chart.data[0].y[0] == 50
    assert chart.layout.xaxis.ticktext[0] == "0"
    none = error_histogram(ErrorOctaves(np.zeros(0, int), np.zeros(0, int), 4, 4), theme=LIGHT)
    assert none.data[0].y[0] == 100


def test_the_density_shows_the_unit_roundoff_and_the_tolerance_that_stands_on_the_page():
    counts = np.array([[1, 0], [5, 100]])
    found = Density(np.array([0, 1]), np.array([-9, -8]), counts, 3, 2)
    chart = density_chart(found, roundoff=2.0**-8, tolerance=(0.5, 0.0), theme=LIGHT)
    heat, roundoff, tolerance = chart.data
    assert np.isnan(heat.z[0][1])
    assert heat.z[1][1] == pytest.approx(2)
    assert roundoff.y[0] == pytest.approx(-8)
    assert tolerance.y[0] == tolerance.y[-1] == pytest.approx(-1)
    bare = density_chart(found, roundoff=0.0, tolerance=(0.0, 0.0), theme=LIGHT)
    assert len(bare.data) == 1


def test_nothing_to_draw_is_said_in_the_place_of_the_chart():
    charts = [
        exponent_histogram(None, theme=LIGHT),
        cumulative_chart(None, theme=LIGHT),
        quantile_chart(None, theme=LIGHT),
        error_histogram(None, theme=LIGHT),
        density_chart(None, roundoff=0.1, tolerance=(0, 0), theme=LIGHT),
        ridgeline(None, names=[], tensors=[], chosen="", theme=LIGHT),
    ]
    assert all(text_of(chart) and not chart.data for chart in charts)


def test_the_chosen_ridge_is_thicker_and_every_ridge_names_its_tensor():
    flat = np.full((3, 4), 0.25)
    found = Ridges(np.arange(5.0), flat, flat, ((0.0, -1.0), (4.0, 1.0)))
    chart = ridgeline(
        found, names=["0", "1", "<b>"], tensors=["a", "b", "c"], chosen="b", theme=LIGHT
    )
    lines = [t for t in chart.data if t.customdata is not None]
    assert [line.line.width for line in lines] == [1, 2.5, 1]
    assert [line.customdata[0][0] for line in lines] == ["a", "b", "c"]
    assert chart.layout.yaxis.ticktext[2] == "&lt;b&gt;"
    assert lines[0].y[0] > lines[1].y[0] > lines[2].y[0]


def test_bands_hold_the_reference_and_lines_the_candidate():
    reference = np.tile(np.arange(5.0), (4, 1))
    chart = quantile_bands(
        reference, reference + 1, names=list("0123"), title="step", theme=LIGHT, height=200
    )
    lines = [t for t in chart.data if t.customdata is not None]
    assert len(lines) == len(SHARES) + 1
    assert sum(t.line.color == LIGHT.candidate for t in lines) == len(SHARES)
    assert chart.layout.xaxis.title.text == "step"
