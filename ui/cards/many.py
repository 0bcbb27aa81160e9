"""The page Many runs: every candidate against one reference, and one in units of another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from analysis.three_way import FAULT, WATCH, ThreeWay, judged, ratios
from analysis.views_grid import Grid
from analysis.views_many import candidate_grid
from charts.execution import on_path
from charts.heatmap import Metric, block_heatmap
from charts.many import paths
from charts.names import for_html, shorten
from core.comparison import Verdict
from core.numbers import count, error, times_floor
from language import _, n_
from store.records import ComparisonRecord
from ui import chart, clicks, url
from ui.frame import View
from ui.kept import kept
from ui.markup import anchor, heading, muted, name, table, verdict_word

_MOST = 12  # candidates side by side
_PATHS = 6


@dataclass(frozen=True, slots=True)
class Many:
    """The comparisons that share the view's reference, newest first, and their tables by label."""

    records: tuple[ComparisonRecord, ...]
    tables: Mapping[str, pd.DataFrame]
    labels: Mapping[str, str]  # comparison id -> label, made unique


def gather(view: View) -> Many:
    """The candidates, and the answer in a sentence."""
    records = tuple(view.workspace.siblings(view.comparison.id)[:_MOST])
    labels: dict[str, str] = {}
    for record in records:
        label = record.label_candidate
        labels[record.id] = label if label not in labels.values() else f"{label} {record.id[:4]}"
    tables = {labels[record.id]: view.workspace.table(record.id) for record in records}
    made = Many(records, tables, labels)
    said = f'<div class="px-title"><h1>{for_html(_answer(made), 300)}</h1></div>'
    if len(records) == 1:
        hint = _("Compare another run with the same reference on Runs: it then stands beside this.")
        said += f'<p class="px-says">{for_html(hint, 300)}</p>'
    st.html(said)
    return made


def listed(made: Many) -> None:
    """One row a candidate."""
    head = [
        _("Verdict"), _("Candidate"), _("First divergence"), _("Worst added"),
        _("At the last output"), _("Compared"),
    ]  # fmt: skip
    rows = [_row(record, made) for record in made.records]
    st.html(
        heading(_("Candidates"), _("against the same reference"))
        + table(head, rows, numeric=(3, 4, 5), label=_("Candidates"))
    )


def by_layer(view: View, made: Many) -> None:
    """Candidates against layers; a click opens the layer in that comparison."""
    grid, figure, _same = kept(view, "candidates", lambda: _map(view, made), *_parts(made))
    ids = {label: comparison for comparison, label in made.labels.items()}

    def opened(row: int, column: int) -> None:
        label, _newline, path = str(grid.path[row, column]).partition("\n")
        if label in ids:
            url.go_after("layers", c=ids[label], at=path or None)

    st.html(heading(_("By layer"), _("the worst output of each; click a cell to open it")))
    clicks.heatmap(figure, key="many", alt=_("Candidates by layer"), on_cell=opened)


def _parts(made: Many) -> tuple[tuple[str, int], ...]:
    """What stands for the tables; whoever keeps by it keeps the tables too."""
    return tuple((label, id(rows)) for label, rows in made.tables.items())


def _map(view: View, made: Many) -> tuple[Grid, go.Figure, Many]:
    grid = candidate_grid(made.tables)
    return grid, block_heatmap(
        grid, colour="both", metric=Metric(_("relative L2"), 0.0), at="", title="layer",
        theme=view.theme,
    ), made  # fmt: skip


def _paths(
    view: View, shown: Mapping[str, pd.DataFrame]
) -> tuple[go.Figure, Mapping[str, pd.DataFrame]]:
    drawn = {label: on_path(rows, "forward") for label, rows in shown.items()}
    return paths(drawn, theme=view.theme), shown


def along(view: View, made: Many) -> None:
    """The paths, one below the other."""
    shown = dict(list(made.tables.items())[:_PATHS])
    aside = _("times floor, one axis for all")
    if len(made.tables) > _PATHS:
        aside += _("; the newest {n} of {total}", n=_PATHS, total=len(made.tables))
    st.html(heading(_("Error along execution order"), aside))
    figure, _same = kept(view, "candidate-paths", lambda: _paths(view, shown), *_parts(made))
    ids = {label: comparison for comparison, label in made.labels.items()}

    def opened(point: list[str]) -> None:
        url.go_after("tensor", c=ids[point[0]], t=point[1])

    chart.clickable(figure, key="many-paths", on_click=opened,
                    alt=_("Error of every candidate along execution order"))  # fmt: skip


def three_way(made: Many) -> None:
    """One candidate as the yardstick of the others: their error over its error."""
    if len(made.tables) < 2:
        return
    options = {comparison: made.labels[comparison] for comparison in made.labels}
    with st.container(horizontal=True, vertical_alignment="center", key="three-way"):
        st.html(
            heading(
                _("In units of another candidate"),
                _("error over the yardstick's error, or over two floors where that is larger"),
            )
        )
        yardstick = url.choose(
            _("Yardstick"), options, key="yard", labels=options, visible=False, width=260
        )
    base = made.tables[yardstick]
    rows = [
        _ratio_row(label, judged(ratios(rows, base)), base)
        for label, rows in made.tables.items()
        if label != yardstick
    ]
    head = [
        _("Verdict"), _("Candidate"), _("First output beyond"), _("Median ratio"), _("Worst ratio"),
        _("Outputs"),
    ]  # fmt: skip
    note = _(
        "A trusted run of the same format, or a repeat of the reference, is an honest yardstick: "
        "above {watch} times its error is worth a look, above {fault} times a fault.",
        watch=f"{WATCH:g}", fault=f"{FAULT:g}",
    )  # fmt: skip
    st.html(
        table(head, rows, numeric=(3, 4, 5), label=_("Ratios"))
        + f'<p class="px-says">{for_html(note, 400)}</p>'
    )


def _ratio_row(label: str, found: ThreeWay, base: pd.DataFrame) -> tuple[str, ...]:
    operators = base.set_index("tensor")["operator"]
    where = str(operators.get(found.first, "")) if found.first else ""
    return (
        verdict_word(_verdict(found.verdict)),
        for_html(label, 60),
        name(where) if where else muted(_("none")),
        error(found.median),
        error(found.worst),
        count(found.compared),
    )


def _verdict(word: str) -> Verdict:
    known: dict[str, Verdict] = {"fault": "fault", "watch": "watch", "rounding": "rounding"}
    return known.get(word, "uncompared")


def _row(record: ComparisonRecord, made: Many) -> tuple[str, ...]:
    label = made.labels[record.id]
    where = record.first_divergence
    link = anchor(url.link("overview", c=record.id), label)
    return (
        verdict_word(record.verdict),
        link,
        name(shorten(where, 60)) if where else muted(_("none")),
        times_floor(record.worst_added),
        times_floor(_last(made.tables[label])),
        f"{count(record.compared)} / {count(record.total)}",
    )


def _last(rows: pd.DataFrame) -> float:
    outputs = rows[rows["slot"].str.startswith(("forward_output", "value"))]
    known = outputs[outputs["times_floor"].notna()]
    return float(known["times_floor"].iloc[-1]) if len(known) else float("nan")


def _answer(made: Many) -> str:
    total = len(made.records)
    off = sum(record.verdict in ("fault", "watch") for record in made.records)
    if total == 1:
        return _("Only one candidate was compared with this reference so far.")
    if not off:
        return _("All {total} candidates agree with the reference to rounding.", total=total)
    return n_(
        "{number} of {total} candidates parts from the reference.",
        _("{number} of {total} candidates part from the reference."),
        off,
        total=total,
    )
