"""The repro bundle of an open finding: what the owner of the kernel needs, as one file."""

from __future__ import annotations

import streamlit as st

from analysis.views_findings import replay_of
from core.errors import ExplorerError
from core.findings import Diagnosis, Finding
from language import _
from ui.frame import View


def draw(view: View, diagnosis: Diagnosis, finding: Finding) -> None:
    """The page's one primary button, where the operator was replayed."""
    if replay_of(diagnosis, finding) is None:
        return
    st.download_button(
        _("Repro bundle"),
        lambda: _made(view, finding.tensor),
        file_name=f"{view.comparison.id[:8]}-{finding.id}.zip",
        mime="application/zip",
        type="primary",
        on_click="ignore",
        key="bundle",
        help=_("Inputs, parameters, outputs, the float64 answer, and a script that reruns it."),
    )


def _made(view: View, tensor: str) -> bytes:
    """The bundle; what keeps it from being made is the file's content, so that nothing is lost."""
    try:
        return view.workspace.bundle(view.comparison.id, tensor)
    except ExplorerError as error:
        return str(error).encode()
