"""Samples: small real dump pairs with a known answer, opened by one click."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pandas as pd
import streamlit as st

from charts.execution import directions, on_path
from charts.names import for_html, for_markdown
from charts.sparkline import sparkline
from charts.tokens import THEMES
from core.comparison import Settings
from core.errors import ExplorerError
from language import _, told
from store.records import JobRecord, RunRecord
from store.workspace import Workspace
from ui import tour, url
from ui.cards import job as progress
from ui.markup import heading, muted, verdict_word
from ui.navigation import ROOT, current_theme

FOLDER = ROOT / "sample_dumps"
_A_ROW = 4


@dataclass(frozen=True, slots=True)
class Sample:
    """One entry of the index; folders as they stand on this server."""

    id: str
    title: str
    story: str
    reference: Path
    candidate: Path


def listed(folder: Path) -> list[Sample]:
    """The samples that `index.json` names and that are there."""
    index = folder / "index.json"
    if not index.exists():
        return []
    entries = (
        Sample(e["id"], e["title"], e["story"], folder / e["reference"], folder / e["candidate"])
        for e in json.loads(index.read_text(encoding="utf-8"))
    )
    return [sample for sample in entries if sample.reference.exists() and sample.candidate.exists()]


def draw(workspace: Workspace) -> None:
    """A card a sample; verdict and path only where that comparison was already made here."""
    st.html(heading(_("Or start from a sample"), _("small real dumps with a known answer")))
    found = listed(FOLDER)
    if not found:
        st.html(f"<p>{muted(_('No samples here. `make samples` records them.'))}</p>")
        return
    known: dict[tuple[str, str], RunRecord] = {
        (run.path, run.origin): run for run in workspace.runs()
    }
    made = [job for job in workspace.jobs() if job.status == "done"]
    for start in range(0, len(found), _A_ROW):
        columns = st.columns(min(_A_ROW, len(found)), gap="small")
        for column, sample in zip(columns, found[start : start + _A_ROW], strict=False):
            with column:
                _card(workspace, sample, _comparison_of(sample, known, made))
    taught = next((s for s in found if s.id == tour.SAMPLE), None)
    tour.draw(_comparison_of(taught, known, made) if taught else None)
    refused = st.session_state.pop("refused-sample", None)
    if refused:
        st.error(refused)


def _comparison_of(
    sample: Sample, known: Mapping[tuple[str, str], RunRecord], made: list[JobRecord]
) -> str | None:
    sides = [
        known.get((str(path.resolve()), "sample")) for path in (sample.reference, sample.candidate)
    ]
    ids = [side.id if side else None for side in sides]
    for job in made:
        if [job.reference_id, job.candidate_id] == ids:
            return job.comparison_id
    return None


def _card(workspace: Workspace, sample: Sample, comparison_id: str | None) -> None:
    with st.container(border=True, key=f"sample-{sample.id}", height="stretch"):
        st.html(
            (_result(workspace, comparison_id) if comparison_id else _pending())
            + f"<h3>{for_html(told(sample.title))}</h3>"
            + f'<p class="px-muted">{for_html(told(sample.story), 400)}</p>'
        )
        st.button(
            _("Open"),
            key=f"open-{sample.id}",
            on_click=_open,
            args=(workspace, sample, comparison_id),
        )


def _pending() -> str:
    said = muted(_("Not compared here yet"))
    return f'<p>{said}</p><div class="px-spark" aria-hidden="true"></div>'


def _result(workspace: Workspace, comparison_id: str) -> str:
    verdict = workspace.judgement(comparison_id).verdict
    drawn = _spark(workspace, comparison_id, current_theme().mode)
    return (
        f'<p>{verdict_word(verdict)}</p><img class="px-spark" '
        f'alt="{for_html(_("Error along execution order"))}" '
        f'src="data:image/svg+xml;base64,{drawn}">'
    )


@lru_cache(maxsize=64)  # a comparison's id is its content, and the workspace keeps few tables
def _spark(workspace: Workspace, comparison_id: str, mode: str) -> str:
    table = workspace.table(comparison_id)
    values = pd.concat([on_path(table, d) for d in directions(table)])["times_floor"].sort_index()
    return b64encode(sparkline(list(values), THEMES[mode]).encode()).decode()


def _open(workspace: Workspace, sample: Sample, comparison_id: str | None) -> None:
    if comparison_id:
        url.go_after("overview", c=comparison_id, **tour.after_sample())
        return
    try:
        reference, candidate = (
            workspace.add_folder(path, label=f"{sample.id} {side}", origin="sample")
            for path, side in ((sample.reference, "reference"), (sample.candidate, "candidate"))
        )
        job = workspace.submit(reference.id, candidate.id, Settings())
    except ExplorerError as error:
        words = f"{for_markdown(error.message, 400)} {for_markdown(error.hint, 400)}"
        st.session_state["refused-sample"] = words
    else:
        url.put(ref=reference.id, cand=candidate.id)
        progress.start(job)
