"""The page Matching: the mapping as a table to edit, a file to keep, and a new comparison by it."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace

import pandas as pd
import streamlit as st

from analysis.matching import mapping_from_text, mapping_text
from analysis.matching.mapping import COLUMNS, mapping_rows
from charts.names import for_html, for_markdown
from core.comparison import MappingRow
from core.errors import ExplorerError
from core.numbers import count
from language import _
from ui import url
from ui.frame import View
from ui.markup import heading

_MOST = 2000  # rows that can be edited here; the file holds all
_MEGABYTES = 50
_SHOWN = {"open": "open", "adapted": "adapted", "all": "all"}


def answer(view: View) -> None:
    """How the pairs were found, in a sentence."""
    methods = Counter(pair.match.method for pair in view.comparison.pairs)
    suggested = sum(pair.match.is_suggested for pair in view.comparison.pairs)
    alone = len(view.comparison.unmatched_reference) + len(view.comparison.unmatched_candidate)
    sure = sum(methods.values()) - suggested
    said = _("{n} pairs are sure, {m} wait for your word, {k} tensors are alone.",
             n=count(sure), m=count(suggested), k=count(alone))  # fmt: skip
    by = ", ".join(f"{count(n)} {_(method)}" for method, n in methods.most_common())
    st.html(
        f'<div class="px-title"><h1>{for_html(said, 300)}</h1></div>'
        f'<p class="px-says">{for_html(_("Found by: {methods}.", methods=by), 400)}</p>'
    )


def table(view: View) -> pd.DataFrame:
    """The mapping's rows; candidate, accept and adaptation can change."""
    labels = {"open": _("open"), "adapted": _("adapted"), "all": _("all")}
    with st.container(horizontal=True, vertical_alignment="center", key="mapping-head"):
        st.html(heading(_("Mapping"), _("set accept, or write another candidate")))
        shown = url.choose(
            _("Rows"), _SHOWN, key="show", labels=labels, style="segments", visible=False
        )
    rows = _mapping(view)
    chosen = rows[_wanted(rows, shown)]
    if len(chosen) > _MOST:
        st.caption(_("The first {n} of {total}; the file holds all of them.",
                     n=count(_MOST), total=count(len(chosen))))  # fmt: skip
    if chosen.empty:
        said = {
            "open": _("Nothing is open: every tensor has its pair."),
            "adapted": _("No pair had to be adapted: all have the same shape on both sides."),
        }
        st.html(f'<p class="px-note">{for_html(said.get(shown, _("No tensors.")), 300)}</p>')
        return rows
    edited = st.data_editor(
        chosen.head(_MOST),
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
    whole = rows.copy()
    whole.loc[edited.index, list(COLUMNS)] = edited
    return whole


def actions(view: View, edited: pd.DataFrame) -> None:
    """Keep it as a file, take one from a file, compare again."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="mapping-actions"):
        st.download_button(
            _("Mapping as CSV"), lambda: _csv(edited), mime="text/csv", on_click="ignore",
            file_name=f"mapping-{view.comparison.id[:8]}.csv", key="mapping-csv",
        )  # fmt: skip
        st.download_button(
            _("As JSON"), lambda: mapping_text(view.comparison, "json"), on_click="ignore",
            file_name=f"mapping-{view.comparison.id[:8]}.json", mime="application/json",
            key="mapping-json",
        )  # fmt: skip
        same = edited.equals(_mapping(view))
        st.button(
            _("Compare again with this mapping"), type="secondary" if same else "primary",
            key="mapping-compare", on_click=_again, args=(view, _csv(edited)),
        )  # fmt: skip
    given = st.file_uploader(
        _("Or use a mapping file"), type=["csv", "json"], key="mapping-file",
        max_upload_size=_MEGABYTES,
    )  # fmt: skip
    if given is not None:
        st.button(
            _("Compare again with {name}", name=for_markdown(given.name, 60)),
            key="mapping-file-compare",
            on_click=_again, args=(view, given.getvalue().decode("utf-8", "replace")),
        )  # fmt: skip
    refused = st.session_state.pop("refused-mapping", None)
    if refused:
        st.error(refused)


def _mapping(view: View) -> pd.DataFrame:
    return pd.DataFrame(mapping_rows(view.comparison), columns=list(COLUMNS))


def _wanted(rows: pd.DataFrame, shown: str) -> pd.Series:
    if shown == "all":
        return pd.Series(True, index=rows.index)
    if shown == "adapted":
        return rows["adaptation"].astype(str) != ""
    alone = (rows["reference"].astype(str) == "") | (rows["candidate"].astype(str) == "")
    return alone | (rows["accept"] == "?")


def _csv(rows: pd.DataFrame) -> str:
    text = io.StringIO()
    rows.to_csv(text, index=False)
    return text.getvalue()


def _again(view: View, text: str) -> None:
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
