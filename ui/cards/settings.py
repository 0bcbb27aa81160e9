"""How to compare the two runs, and the button that does it."""

from __future__ import annotations

import shlex

import streamlit as st

from charts.names import for_markdown
from core.comparison import Settings, Tolerance
from core.errors import ExplorerError
from language import _, say
from store.records import RunRecord
from store.workspace import Workspace
from ui import url
from ui.cards import job as progress
from ui.markup import muted

_CHOICES = {"formats": say("From the formats"), "own": say("My own")}
_DEFAULT = {"atol": "1e-5", "rtol": "1e-3"}


def draw(workspace: Workspace, reference: RunRecord | None, candidate: RunRecord | None) -> None:
    """Tolerance at the left, Compare at the right, what was refused under them."""
    with st.container(horizontal=True, vertical_alignment="center", key="settings"):
        st.html(muted(_("Tolerance")), width="content")
        own = url.choose(
            _("Tolerance"), {name: name == "own" for name in _CHOICES}, key="tol",
            labels=_CHOICES, visible=False, width=180,
        )  # fmt: skip
        if own:
            _number("atol")
            _number("rtol")
        st.space("stretch")
        ready = reference is not None and candidate is not None
        busy = progress.is_running(workspace)
        st.button(
            _("Comparing") if busy else _("Compare") if ready else _("Compare when both are read"),
            type="primary" if ready and not busy else "secondary",
            disabled=busy or not ready,
            key="compare",
            on_click=_compare,
            args=(workspace, reference, candidate),
        )
    refused = st.session_state.pop("refused-compare", None)
    if refused:
        st.error(refused)


def chosen() -> Settings:
    """The settings the address names; numbers it cannot mean are an error for the user."""
    if url.get("tol") != "own":
        return Settings()
    return Settings(Tolerance(*(_parsed(name) for name in ("atol", "rtol"))))


def command(reference: RunRecord | None, candidate: RunRecord | None) -> str:
    """The comparison as a shell command."""
    sides = (
        shlex.quote(run.path) if run is not None else name
        for run, name in ((reference, "REFERENCE"), (candidate, "CANDIDATE"))
    )
    numbers = ""
    if url.get("tol") == "own":
        numbers = "".join(
            f" --{name} {shlex.quote(url.get(name, _DEFAULT[name]) or '')}" for name in _DEFAULT
        )
    return f"python cli.py compare {' '.join(sides)}{numbers}"


def _number(name: str) -> None:
    st.html(muted(name), width="content")
    widget = f"number-{name}"
    st.session_state[widget] = url.get(name, _DEFAULT[name])
    st.text_input(
        name, key=widget, label_visibility="collapsed", width=90, on_change=_save, args=(name,)
    )


def _save(name: str) -> None:
    url.put(**{name: st.session_state[f"number-{name}"].strip() or None})


def _parsed(name: str) -> float:
    text = url.get(name, _DEFAULT[name]) or ""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ExplorerError(
            _("{name} is {text!r}.", name=name, text=text),
            _("It must be a number from 0, such as 1e-3."),
        )
    return value


def _compare(workspace: Workspace, reference: RunRecord, candidate: RunRecord) -> None:
    try:
        job = workspace.submit(reference.id, candidate.id, chosen())
    except ExplorerError as error:
        words = f"{for_markdown(error.message, 400)} {for_markdown(error.hint, 400)}"
        st.session_state["refused-compare"] = words
    else:
        progress.start(job)
