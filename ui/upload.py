"""The folder upload: a browser component that streams a dump folder to the server."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

import streamlit as st

import language
from language import _
from language.catalogue import LOCALES
from store import workspace

USER = "local"  # there are no accounts: whoever may see the pages may upload
_HERE = Path(__file__).parent / "components"
_component = st.components.v2.component(
    "px_upload",
    html=(_HERE / "upload.html").read_text(encoding="utf-8"),
    css=(_HERE / "upload.css").read_text(encoding="utf-8"),
    js="".join((_HERE / name).read_text(encoding="utf-8") for name in ("blake3.js", "upload.js")),
)


class Uploaded(TypedDict):
    """A complete upload; `id` is also the id of the run it became."""

    id: str
    name: str


def folder_upload(label: str, *, slot: str, hint: str) -> Uploaded | None:
    """A drop zone with a button; gives each complete upload once, None before and after.

    An upload belongs to its slot (`reference`, `candidate`) and goes on over reruns and page
    changes. `label` names the zone for screen readers, `hint` stands in it.
    """
    taken = f"upload-taken-{slot}"
    base = (st.get_option("server.baseUrlPath") or "").strip("/")
    sent = _component(
        key=f"upload-{slot}",
        data={
            "label": label,
            "hint": hint,
            "slot": slot,
            "base": f"/{base}/" if base else "/",
            "token": _token(),
            "words": _words(),
            "taken": st.session_state.get(taken, ""),
        },
        on_uploaded_change=lambda: None,
    ).uploaded
    if not sent or sent["nonce"] == st.session_state.get(taken):
        return None
    st.session_state[taken] = sent["nonce"]  # until the browser hears of it, it repeats itself
    return Uploaded(id=str(sent["id"]), name=str(sent["name"]))


def _words() -> dict[str, str]:
    """What the component says, in the reader's language; `{…}` are filled in the browser."""
    return {
        "language": language.current(),
        "locale": LOCALES[language.current()].replace("_", "-"),
        "choose": _("Choose folder…"),
        "folder": _("Folder"),
        "what": _("Contents"),
        "upload": _("Upload"),
        "leave": _("You may leave this page; the upload goes on. Keep the browser tab open."),
        "cancel": _("Cancel"),
        "replace": _("Replace"),
        "answered": _("The server answered {status}."),
        "unreachable": _("The server cannot be reached."),
        "gone": _("A file can no longer be read: {error}"),
        "waiting": _("waiting for the server"),
        "writing": _("writing to disk"),
        "part": _("{percent} %"),
        "left": _("{percent} %, {time} left"),
        "file": _("{number} file"),
        "files": _("{number} files"),
        "whole": _("{files}, {total}"),
        "still": _("{files}, {sent} of {total}"),
        "moving": _("{files}, {sent} of {total}, {speed}"),
        "interrupted": _(
            "The upload of {name} was interrupted. Choose the same folder again and it goes on "
            "where it stopped."
        ),
        "uploaded": _("uploaded"),
        "stopped": _("stopped"),
        "kept": _("{error} What was sent is kept: choose the same folder to go on."),
        "heard": _("uploading, {percent} percent"),
        "none": _("The folder holds no files."),
    }


def _token() -> str:
    """One token a session: a new one in each rerun would redraw the component each time."""
    if "upload-token" not in st.session_state:
        st.session_state["upload-token"] = workspace.default().upload_token(USER)
    return str(st.session_state["upload-token"])
