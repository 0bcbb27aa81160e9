"""The folder upload: a browser component that streams a dump folder to the server."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

import streamlit as st

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
    told = _component(
        key=f"upload-{slot}",
        data={
            "label": label,
            "hint": hint,
            "slot": slot,
            "base": f"/{base}/" if base else "/",
            "token": _token(),
            "taken": st.session_state.get(taken, ""),
        },
        on_uploaded_change=lambda: None,
    ).uploaded
    if not told or told["nonce"] == st.session_state.get(taken):
        return None
    st.session_state[taken] = told["nonce"]  # until the browser hears of it, it repeats itself
    return Uploaded(id=str(told["id"]), name=str(told["name"]))


def _token() -> str:
    """One token a session: a new one in each rerun would redraw the component each time."""
    if "upload-token" not in st.session_state:
        st.session_state["upload-token"] = workspace.default().upload_token(USER)
    return str(st.session_state["upload-token"])
