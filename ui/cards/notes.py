"""Notes on a place: what people said of it, and a form to say something."""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import UTC, date, datetime

import streamlit as st

from charts.names import for_html
from core.annotations import Annotation, Status
from core.errors import ExplorerError
from core.numbers import ago
from language import _, day, say
from store.workspace import Workspace
from ui.frame import View
from ui.markup import heading, muted

_STATUSES: dict[Status, str] = {
    "note": say("Note"),
    "seen": say("Seen"),
    "accepted": say("Accepted"),
}


def button(view: View, target: str) -> None:
    """A button that opens the form; it says how many notes there are."""
    held = about(view.workspace.annotations(view.comparison.id), target)
    label = _("Notes ({n})", n=len(held)) if held else _("Note")
    with st.popover(label, key="notes", on_change="rerun") as opened:
        if opened.open:
            st.html(listed(held))
            _form(view, target)


def about(annotations: Sequence[Annotation], target: str) -> list[Annotation]:
    """Those on a place or on a module that holds it."""
    return [
        note
        for note in annotations
        if note.target == target or target.startswith((f"{note.target}.", f"{note.target}/"))
    ]


def status_of(annotations: Sequence[Annotation], target: str) -> str:
    """The word for a list: the newest status on a place that still holds, `""` without one."""
    today = datetime.now(UTC).date()
    held = [
        n for n in about(annotations, target) if n.status != "note" and not n.has_expired(today)
    ]
    return _(_STATUSES[held[0].status]) if held else ""


def everywhere(view: View) -> None:
    """All notes of the comparison, with the place of each; nothing when there are none."""
    held = view.workspace.annotations(view.comparison.id)
    if held:
        st.html(heading(_("Notes"), _("newest first")) + listed(held, with_place=True))


def listed(annotations: Sequence[Annotation], *, with_place: bool = False) -> str:
    """Notes as a list."""
    if not annotations:
        return f'<p class="px-says">{for_html(_("Nothing was noted here yet."))}</p>'
    items = "".join(_item(note, with_place=with_place) for note in annotations)
    return f'<ul class="px-notes">{items}</ul>'


def _item(note: Annotation, *, with_place: bool) -> str:
    today = datetime.now(UTC).date()
    word = _(_STATUSES[note.status])
    if note.expires is not None:
        expired = note.has_expired(today)
        until = _("expired {day}") if expired else _("until {day}")
        word += f", {until.format(day=day(note.expires))}"
    link = ""
    if note.link:
        href = html.escape(note.link)
        link = f' <a href="{href}" target="_blank" rel="noreferrer noopener">{_("link")}</a>'
    place = f'<span class="px-mono">{for_html(note.target, 120)}</span>' if with_place else ""
    when = ago(note.created, datetime.now(UTC))
    return (
        f"<li><b>{for_html(word)}</b> {place}{muted(when)}"
        f"<p>{for_html(note.text, 4000)}{link}</p></li>"
    )


def _form(view: View, target: str) -> None:
    with st.form("note", border=False):
        labels = {status: _(word) for status, word in _STATUSES.items()}
        status = st.segmented_control(
            _("What is it"), list(labels), format_func=lambda s: labels[s], default="note"
        )
        text = st.text_area(_("Text, or the reason why it is accepted"), max_chars=4000)
        link = st.text_input(_("Link to a ticket"))
        expires = st.date_input(_("Accepted until"), value=None, min_value="today")
        if st.form_submit_button(_("Keep"), type="primary"):
            _keep(view.workspace, view.comparison.id, target, status or "note", text, link, expires)


def _keep(
    workspace: Workspace,
    comparison_id: str,
    target: str,
    status: Status,
    text: str,
    link: str,
    expires: object,
) -> None:
    try:
        workspace.annotate(
            comparison_id, target, status=status, text=text, link=link,
            expires=expires if isinstance(expires, date) and status == "accepted" else None,
        )  # fmt: skip
    except ExplorerError as error:
        st.error(f"{error.message} {error.hint}")
        return
    st.rerun()
