"""The page Matching: the mapping as a table to edit, a file to keep, and a new comparison by it."""

from __future__ import annotations

import io
from dataclasses import replace

import pandas as pd
import streamlit as st

from analysis.matching import mapping_from_text, mapping_text
from analysis.matching.mapping import COLUMNS, mapping_rows
from charts.names import for_html, for_markdown
from core.comparison import ACCEPTED_FROM, MappingRow
from core.errors import ExplorerError
from core.numbers import count
from core.words import word
from language import _, listing, told
from ui import url
from ui.frame import View
from ui.markup import heading

_MOST = 2000  # rows that can be edited here; the file holds all
_MEGABYTES = 50
_SHOWN = {"open": "open", "adapted": "adapted", "all": "all"}


def answer(view: View) -> None:
    """How the pairs were found, in a sentence."""
    methods = view.table["match"].value_counts()
    suggested = int((view.table["confidence"] < ACCEPTED_FROM).sum())
    alone = len(view.comparison.unmatched_reference) + len(view.comparison.unmatched_candidate)
    sure = len(view.table) - suggested
    said = _("{n} pairs are sure, {m} wait for your word, {k} tensors are alone.",
             n=count(sure), m=count(suggested), k=count(alone))  # fmt: skip
    by = told(
        listing(f"{count(int(n))} {told(word(str(method)))}" for method, n in methods.items())
    )
    st.html(
        f'<div class="px-title"><h1>{for_html(said, 300)}</h1></div>'
        f'<p class="px-says">{for_html(_("Found by: {methods}.", methods=by), 400)}</p>'
    )


def table(view: View) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Some of the mapping's rows as they are, and as edited: what of them can change may have.

    The index is a row's place in the whole mapping.
    """
    labels = {"open": _("open"), "adapted": _("adapted"), "all": _("all")}
    with st.container(horizontal=True, vertical_alignment="center", key="mapping-head"):
        st.html(heading(_("Mapping"), _("set accept, or write another candidate")))
        shown = url.choose(
            _("Rows"), _SHOWN, key="show", labels=labels, style="segments", visible=False
        )
    chosen, total = _wanted(view, shown)
    if total > _MOST:
        st.caption(_("The first {n} of {total}; the file holds all of them.",
                     n=count(_MOST), total=count(total)))  # fmt: skip
    if chosen.empty:
        said = {
            "open": _("Nothing is open: every tensor has its pair."),
            "adapted": _("No pair had to be adapted: all have the same shape on both sides."),
        }
        st.html(f'<p class="px-note">{for_html(said.get(shown, _("No tensors.")), 300)}</p>')
        return chosen, chosen
    edited: pd.DataFrame = st.data_editor(
        chosen,
        key=f"mapping-{view.comparison.id}-{shown}",
        hide_index=True,
        disabled=["reference", "method", "confidence", "note"],
        column_config={
            "reference": st.column_config.TextColumn(_("Reference"), width="large"),
            "candidate": st.column_config.TextColumn(_("Candidate"), width="large"),
            "accept": st.column_config.SelectboxColumn(_("Accept"), options=["yes", "no", "?"]),
            "adaptation": st.column_config.TextColumn(_("Adaptation")),
            "method": st.column_config.TextColumn(_("Found by")),
            "confidence": st.column_config.TextColumn(_("Confidence")),
            "note": st.column_config.TextColumn(_("Note")),
        },
    )
    return chosen, edited


def actions(view: View, rows: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """Keep it as a file, take one from a file, compare again."""
    given_rows, edited = rows
    with st.container(horizontal=True, vertical_alignment="bottom", key="mapping-actions"):
        st.download_button(
            _("Mapping as CSV"), lambda: _csv(view, edited), mime="text/csv", on_click="ignore",
            file_name=f"mapping-{view.comparison.id[:8]}.csv", key="mapping-csv",
        )  # fmt: skip
        st.download_button(
            _("As JSON"), lambda: mapping_text(view.comparison, "json"), on_click="ignore",
            file_name=f"mapping-{view.comparison.id[:8]}.json", mime="application/json",
            key="mapping-json",
        )  # fmt: skip
        same = edited.equals(given_rows)
        st.button(
            _("Compare again with this mapping"), type="secondary" if same else "primary",
            key="mapping-compare", on_click=_again, args=(view, edited),
        )  # fmt: skip
    given = st.file_uploader(
        _("Or use a mapping file"), type=["csv", "json"], key="mapping-file",
        max_upload_size=_MEGABYTES,
    )  # fmt: skip
    if given is not None:
        st.button(
            _("Compare again with {name}", name=for_markdown(given.name, 60)),
            key="mapping-file-compare",
            on_click=_again_with, args=(view, given.getvalue().decode("utf-8", "replace")),
        )  # fmt: skip
    refused = st.session_state.pop("refused-mapping", None)
    if refused:
        st.error(refused)


def _wanted(view: View, shown: str) -> tuple[pd.DataFrame, int]:
    """The first rows that are asked for, and how many there are; only those are decoded."""
    table = view.table
    masks = {"adapted": table["adaptation"] != "", "open": table["confidence"] < ACCEPTED_FROM}
    numbers = table.index[masks[shown]] if shown in masks else table.index
    kept = [int(number) for number in numbers[:_MOST]]
    alone = len(view.comparison.unmatched_reference) + len(view.comparison.unmatched_candidate)
    places = [*kept, *range(len(table), len(table) + alone)]
    rows = pd.DataFrame(mapping_rows(view.comparison, kept), columns=list(COLUMNS), index=places)
    if shown == "adapted":
        rows, alone = rows.loc[kept], 0
    return rows.head(_MOST), len(numbers) + alone


def _csv(view: View, edited: pd.DataFrame) -> str:
    """The whole mapping with what was edited."""
    rows = pd.DataFrame(mapping_rows(view.comparison), columns=list(COLUMNS))
    rows.loc[edited.index, list(COLUMNS)] = edited
    text = io.StringIO()
    rows.to_csv(text, index=False)
    return text.getvalue()


def _again(view: View, edited: pd.DataFrame) -> None:
    """Start a comparison of the same runs with the mapping as edited. In a callback."""
    _again_with(view, _csv(view, edited))


def _again_with(view: View, text: str) -> None:
    """Start a comparison of the same runs with this mapping. In a callback."""
    try:
        rows: tuple[MappingRow, ...] = mapping_from_text(text)
        reference, candidate = view.workspace.runs_of(view.comparison.id)
        settings = replace(view.comparison.settings, mapping=rows)
        job = view.workspace.submit(reference, candidate, settings)
    except ExplorerError as error:
        st.session_state["refused-mapping"] = f"{error.message} {error.hint}"
        return
    if job.comparison_id:
        url.go_after("overview", c=job.comparison_id)
    else:
        url.go_after("runs", job=job.id)
