"""Heat maps of a model: blocks side by side, or modules against metrics.

Ember, by the error added, only where the verdict says that an operator adds error of its own;
the rest is grey by total error, so that one fault does not colour everything behind it. Raw
metrics stay grey, each column on its own stated scale. Cells without a tensor are blank, uncompared
ones carry the mark of uncompared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from analysis.views_grid import Grid, badness
from charts.names import for_html, shorten
from charts.template import figure, heat_height, message
from charts.tokens import EMBER_DECADES, MARKS, Theme, channels, colorscale
from core.numbers import UNDEFINED, error, times_floor
from core.words import word
from language import _, say, told

Array = NDArray[Any]
Colour = Literal["both", "added", "metric"]

TOTAL, HERE = say("total"), say("added here")  # labels of what the floor counts
ADDED_LITTLE = 2.0  # times floor: up to here a cell stays grey
MOST_PIXELS = 540
ROW_PIXELS = 14
MOST_ROWS = (MOST_PIXELS - 60) // ROW_PIXELS
_GAP = 2
_LABEL_LENGTH = 26


@dataclass(frozen=True, slots=True)
class Metric:
    """What a heat map needs to know of a metric: its label and its ideal value."""

    label: str
    ideal: float


def block_heatmap(
    grid: Grid, *, colour: Colour, metric: Metric, at: str, title: str, theme: Theme
) -> go.Figure:
    """Operators of a block against blocks; `at` is outlined; `title` names the columns."""
    if not grid.rows:
        return message(theme, _("No tensor of this kind lies in repeated blocks."), height=200)
    chart = figure(theme, height=_height(grid))
    grey, ember = (_spread(grid, metric), None) if colour == "metric" else shades(grid, colour)
    _cells(chart, grid, grey, ember, _block_hover(grid, metric), theme)
    _marks(chart, grid, ember, theme)
    _outline(chart, grid, at, theme)
    _axes(chart, grid, _sparse(grid.columns, at), title)
    return chart


def metric_heatmap(grid: Grid, *, metrics: Sequence[Metric], at: str, theme: Theme) -> go.Figure:
    """Modules or operators against metrics; every column says its scale below its name."""
    if not grid.rows:
        return message(theme, _("Nothing of this kind lies here."), height=200)
    chart = figure(theme, height=_height(grid) + 40)
    grey, ember = shades(grid, "both")
    quiet, ticks = np.isnan(ember), []
    for column, (name, metric) in enumerate(zip(grid.columns, metrics, strict=True)):
        scale = "1× – 1000×"
        if name not in ("added", "times_floor"):
            grey[:, column], ends = position(grid.value[:, column], metric.ideal)
            scale = ends.replace(" – ", " –<br>")  # on one line they reach into the next column
            ember[:, column] = np.nan
        if name == "times_floor":
            grey[:, column], ember[:, column] = _decades(grid.total[:, column]), np.nan
        if name == "added":
            added = _decades(grid.added[:, column])
            grey[:, column] = np.where(quiet[:, column], added, np.nan)
        ticks.append(f"{_wrapped(told(metric.label))}<br>{scale}")
    _cells(chart, grid, grey, ember, _metric_hover(grid, metrics), theme)
    _marks(chart, grid, ember, theme)
    _outline(chart, grid, at, theme)
    _axes(chart, grid, ticks, "")
    chart.update_xaxes(side="top", ticks="", ticklabeloverflow="allow")
    chart.update_layout(margin={"t": 72, "b": 8})
    return chart


def _wrapped(label: str, width: int = 12) -> str:
    """A label on two lines, the first at most `width` long where words allow; both always there."""
    words = label.split(" ")
    cut = 1
    while cut < len(words) and len(" ".join(words[: cut + 1])) <= width:
        cut += 1
    lines = " ".join(words[:cut]), " ".join(words[cut:])
    return "<br>".join(lines if lines[1] else ("", lines[0]))


def shades(grid: Grid, colour: Colour) -> tuple[Array, Array]:
    """Log10 of times floor for the grey and for the ember trace; NaN where the other one is drawn.

    `both`: ember by added for fault and watch, grey by total for the rest. `added`: ember by added
    wherever an operator adds more than `ADDED_LITTLE`, whatever the verdict; the rest neutral.
    """
    compared = (grid.pair >= 0) & (grid.verdict != "uncompared")
    found = np.isin(grid.verdict, ("fault", "watch"))
    adds = np.where(np.isnan(grid.added), 0.0, grid.added) > ADDED_LITTLE
    # A finding whose addition is unknown or not what makes it one is as loud as its total.
    size = np.where(adds, grid.added, grid.total)
    loud = compared & (found if colour == "both" else adds | found)
    quiet = _decades(grid.total) if colour == "both" else np.zeros(grid.total.shape)
    grey = np.where(compared & ~loud, np.where(np.isnan(quiet), 0.0, quiet), np.nan)
    return grey, np.where(loud, np.where(np.isnan(size), EMBER_DECADES, _decades(size)), np.nan)


def position(values: Array, ideal: float) -> tuple[Array, str]:
    """Where a column's values stand on its own scale, 0 at the best and 3 at the worst; its ends.

    Log scale of the distance from the ideal, between the smallest and the largest distance above
    zero; linear where more is better. Values without distance stand at 0, undefined ones at NaN.
    """
    far = badness(values, ideal)
    usable = far[np.isfinite(far)] if np.isinf(ideal) else far[np.isfinite(far) & (far > 0)]
    if not usable.size:
        place = np.where(np.isnan(far), np.nan, np.where(np.isposinf(far), 1.0, 0.0))
        return EMBER_DECADES * place, _("undefined") if np.isnan(far).all() else _("all ideal")
    if np.isinf(ideal):
        ends = -float(usable.min()), -float(usable.max())
        low, high, inside = float(usable.min()), float(usable.max()), far
    else:
        ends = float(usable.min()), float(usable.max())
        with np.errstate(divide="ignore"):
            low, high, inside = np.log10(ends[0]), np.log10(ends[1]), np.log10(far)
    width = high - low or 1.0
    place = np.clip((inside - low) / width, 0.0, 1.0)
    return EMBER_DECADES * place, f"{error(ends[0])} – {error(ends[1])}"


def _spread(grid: Grid, metric: Metric) -> Array:
    place = position(grid.value.ravel(), metric.ideal)[0]
    return np.asarray(place).reshape(grid.value.shape)


def scale_ends(grid: Grid, metric: Metric) -> str:
    """The ends of the scale of a heat map coloured by a raw metric."""
    return position(grid.value.ravel(), metric.ideal)[1]


def _decades(times: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log10(np.clip(times, 1.0, 10.0**EMBER_DECADES)))


def _height(grid: Grid) -> int:
    return min(MOST_PIXELS, max(140, heat_height(len(grid.rows))))


def _cells(
    chart: go.Figure, grid: Grid, grey: Array, ember: Array | None, hover: Array, theme: Theme
) -> None:
    gone = np.where(grid.verdict == "uncompared", 0.0, np.nan)
    flat = [[0, theme.surface_2], [1, theme.surface_2]]
    layers = [(gone, flat, "uncompared"), (grey, colorscale(theme.inherited), "grey")]
    if ember is not None:
        layers.append((ember, colorscale(theme.ember), "ember"))
    for z, scale, name in layers:
        chart.add_heatmap(
            z=z, colorscale=scale, zmin=0, zmax=EMBER_DECADES, showscale=False, name=name,
            xgap=_GAP, ygap=_GAP, hoverongaps=False, customdata=hover,
            hovertemplate=_template(),
        )  # fmt: skip


def _template() -> str:
    return f"<b>%{{customdata[0]}}</b><br>%{{customdata[1]}}<br>{_('click to open')}<extra></extra>"


def _marks(chart: go.Figure, grid: Grid, ember: Array | None, theme: Theme) -> None:
    """Glyphs of fault, watch and uncompared inside their cells; the pointer goes through them."""
    for verdict in ("fault", "watch", "uncompared"):
        drawn = None if ember is None or verdict == "uncompared" else ember
        here = grid.verdict == verdict
        at = np.argwhere(here if drawn is None else here & ~np.isnan(drawn))
        if not len(at):
            continue
        chart.add_scatter(
            x=at[:, 1], y=at[:, 0], mode="text", hoverinfo="skip", name=f"{verdict} marks",
            text=[MARKS[verdict].glyph] * len(at),
            textfont={"size": 11, "color": [_ink(drawn, row, column, theme) for row, column in at]},
        )  # fmt: skip


def _ink(ember: Array | None, row: int, column: int, theme: Theme) -> str:
    """Text or page colour, whichever stands out more on the cell."""
    if ember is None:
        return theme.text
    stops = theme.ember
    fill = stops[round(float(ember[row, column]) / EMBER_DECADES * (len(stops) - 1))]
    return max((theme.text, theme.bg), key=lambda ink: abs(_light(ink) - _light(fill)))


def _light(colour: str) -> float:
    red, green, blue = channels(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _outline(chart: go.Figure, grid: Grid, at: str, theme: Theme) -> None:
    """A frame around the cells that lie at or under `at`, unless that is all of them."""
    if not at:
        return
    inside = np.array([[_within(path, at) for path in row] for row in grid.path])
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    if not rows.size or inside.all():
        return
    single = rows.size == columns.size == 1
    chart.add_shape(
        type="rect", x0=columns[0] - 0.5, x1=columns[-1] + 0.5,
        y0=rows[0] - 0.5, y1=rows[-1] + 0.5,
        line={"color": theme.accent, "width": 3 if single else 1.5},
    )  # fmt: skip


def _within(path: str, at: str) -> bool:
    return bool(path) and (path == at or path.startswith(f"{at}."))


def _axes(chart: go.Figure, grid: Grid, ticks: Sequence[str], title: str) -> None:
    labels = [for_html(shorten(name, _LABEL_LENGTH), 40) for name in grid.rows]
    chart.update_yaxes(
        autorange="reversed", ticks="", showgrid=False,
        tickvals=list(range(len(grid.rows))), ticktext=labels,
    )  # fmt: skip
    kept = [(i, text) for i, text in enumerate(ticks) if text]
    chart.update_xaxes(
        ticks="", title_text=title, tickangle=0, range=[-0.5, len(grid.columns) - 0.5],
        tickvals=[i for i, _text in kept], ticktext=[text for _i, text in kept],
    )  # fmt: skip
    chart.update_layout(margin={"l": 8, "r": 2, "t": 4, "b": 40})


def _sparse(columns: Sequence[str], at: str) -> list[str]:
    """About nine labels, the column of `at` in bold and its neighbours left out."""
    every = max(1, -(-len(columns) // 9))
    here = next((i for i, name in enumerate(columns) if f".{name}." in f".{at}."), None)
    labels = []
    for i, name in enumerate(columns):
        crowded = here is not None and every > 1 and abs(i - here) < max(1, every // 2)
        labels.append(for_html(name) if i % every == 0 and not crowded else "")
    if here is not None:
        labels[here] = f"<b>{for_html(columns[here])}</b>"
    return labels


def _block_hover(grid: Grid, metric: Metric) -> Array:
    return _hover(grid, lambda row, column: (metric.label, grid.value[row, column]))


def _metric_hover(grid: Grid, metrics: Sequence[Metric]) -> Array:
    def third(row: int, column: int) -> tuple[str, float]:
        return metrics[column].label, grid.value[row, column]

    return _hover(grid, third)


def _hover(grid: Grid, third: Any) -> Array:
    """(rows, columns, 2): the name, then total, added here and the raw metric, a line each."""
    text = np.full((*grid.pair.shape, 2), "", object)
    for row, column in np.argwhere(grid.pair >= 0):
        at = row, column
        label, value = third(row, column)
        first = _(
            "total {times} floor, {verdict}",
            times=times_floor(grid.total[at]),
            verdict=told(word(str(grid.verdict[at]))),
        )
        if grid.count[at] > 1:
            first = _("{line}, worst of {n}", line=first, n=grid.count[at])
        lines = (
            first,
            _("added here {amount}", amount=_known(grid.added[at])),
            f"{told(label)} {error(value)}" if label not in (TOTAL, HERE) else "",
        )
        text[at] = (
            for_html(grid.path[at] or _("model")),
            "<br>".join(line for line in lines if line),
        )
    return text


def _known(added: float) -> str:
    if np.isnan(added):
        return _("{undefined} (inputs unknown)", undefined=UNDEFINED)
    return _("{times} floor", times=times_floor(added))
