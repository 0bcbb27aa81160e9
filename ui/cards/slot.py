"""One side's slot on Runs: drop a folder, name one on the server, take one already read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from charts.names import for_html, for_markdown, plain
from core.errors import ExplorerError
from core.numbers import count, size
from store.records import RunRecord
from store.workspace import Workspace
from ui import upload, url
from ui.cards import names
from ui.markup import Side, anchor, key

_ROLE: Mapping[Side, str] = {
    "reference": "the side you trust",
    "candidate": "the side under test",
}
PARAMETER: Mapping[Side, str] = {"reference": "ref", "candidate": "cand"}
_POLL_S = 0.7


def draw(workspace: Workspace, side: Side) -> RunRecord | None:
    """The slot; the run in it once that is read."""
    chosen = url.get(PARAMETER[side])
    with st.container(border=True, key=f"slot-{side}"):
        record = None if chosen is None else _known(workspace, side, chosen)
        if record is None:
            _empty(workspace, side)
        elif record.status == "reading":
            st.fragment(_reading, run_every=_POLL_S)(workspace, side, record.id)
        else:
            _read(workspace, side, record)
    usable = record is not None and record.status == "ready" and record.comparison_id is None
    return record if usable else None


def _known(workspace: Workspace, side: Side, run_id: str) -> RunRecord | None:
    try:
        return workspace.run(run_id)
    except ExplorerError as error:
        st.warning(f"{for_markdown(error.message)} {for_markdown(error.hint)}")
        del side
        return None


def _title(side: Side, state: str = "", kind: str = "") -> None:
    st.html(
        f'<div class="px-slot">{key(side)}<h2>{side.capitalize()}</h2>'
        f'<span class="px-muted">{_ROLE[side]}</span>'
        f'<span class="px-state {kind}">{for_html(state)}</span></div>'
    )


def _empty(workspace: Workspace, side: Side) -> None:
    _title(side)
    with st.container(key=f"drop-{side}"):
        finished = upload.folder_upload(
            f"{side.capitalize()} dump", slot=side, hint="Drop a dump folder here"
        )
    if finished:
        url.put(**{PARAMETER[side]: finished["id"]})
        st.rerun()
    with st.container(horizontal=True, key=f"other-{side}"):
        _from_server(workspace, side)
        _from_list(workspace, side)


def _from_server(workspace: Workspace, side: Side) -> None:
    with st.popover("Folder on the server", key=f"server-{side}"):
        if not workspace.folders:
            st.markdown(
                "No folder of the server is open to this page. Its operator names some in "
                "`PX_FOLDERS` and starts it again."
            )
            return
        st.text_input(
            "Path of a dump folder on the server",
            key=f"path-{side}",
            placeholder=str(workspace.folders[0] / "gpu_bf16"),
            help=f"Inside {', '.join(for_markdown(str(f)) for f in workspace.folders)}.",
            on_change=_add_folder,
            args=(workspace, side),
        )
        refused = st.session_state.pop(f"refused-{side}", None)
        if refused:
            st.error(refused)


def _add_folder(workspace: Workspace, side: Side) -> None:
    path = st.session_state[f"path-{side}"].strip()
    if not path:
        return
    try:
        record = workspace.add_folder(Path(path), label=Path(path).name, origin="folder")
    except ExplorerError as error:
        # Said where the path was typed, which is still on the screen, rather than instead of it.
        words = f"{for_markdown(error.message, 400)} {for_markdown(error.hint, 400)}"
        st.session_state[f"refused-{side}"] = words
    else:
        url.put(**{PARAMETER[side]: record.id})


def _from_list(workspace: Workspace, side: Side) -> None:
    ready = [run for run in workspace.runs() if run.status == "ready"]
    runs = {run.id: run for run in ready if run.comparison_id is None}
    if runs:
        st.selectbox(
            "Already on this server",
            list(runs),
            index=None,
            key=f"list-{side}",
            placeholder="Already on this server",
            format_func=lambda run_id: _choice(runs[run_id]),
            label_visibility="collapsed",
            on_change=_take,
            args=(side,),
        )


def _choice(run: RunRecord) -> str:
    return f"{plain(run.label, 60)} · {count(run.tensors)} tensors, {size(run.nbytes)}"


def _take(side: Side) -> None:
    url.put(**{PARAMETER[side]: st.session_state[f"list-{side}"]})


def _replace(side: Side) -> None:
    url.put(**{PARAMETER[side]: None})


def _reading(workspace: Workspace, side: Side, run_id: str) -> None:
    _title(side, "reading")
    record = workspace.run(run_id)
    st.html(f'<dl class="px-facts">{_fact("Folder", record.label, mono=True)}</dl>')
    st.progress(0.0, text="Listing the tensors")
    if record.status != "reading":
        st.rerun()


def _read(workspace: Workspace, side: Side, record: RunRecord) -> None:
    if record.comparison_id is not None:
        _title(side, "a saved comparison", "px-read")
        opened = anchor(url.link("overview", c=record.comparison_id), "Open it")
        st.html(f"<p>{for_html(record.label)} holds a comparison, not a dump. {opened}</p>")
        st.button("Replace", key=f"replace-{side}", on_click=_replace, args=(side,))
        return
    failed = record.status == "failed"
    _title(side, "not readable" if failed else "✓ read", "px-fault" if failed else "px-read")
    st.html(f'<dl class="px-facts">{"".join(_facts(record))}</dl>')
    with st.container(horizontal=True, key=f"done-{side}"):
        st.button("Replace", key=f"replace-{side}", on_click=_replace, args=(side,))
        if not failed:
            names.draw(workspace, side, record)


def _facts(record: RunRecord) -> list[str]:
    folder = _fact("Folder", record.label, mono=True)
    if record.status == "failed":
        return [folder, _fact("Why", record.error), _fact("To do", record.error_hint)]
    problems = len(record.problems)
    refused = f"; {count(problems)} items could not be read" if problems else ""
    return [
        folder,
        _fact("Contents", f"{_contents(record)}{refused}"),
        _fact("Format", record.format or "not recorded"),
        _fact("Written by", _writer(record.provenance)),
    ]


def _fact(label: str, value: str, *, mono: bool = False) -> str:
    kind = ' class="px-mono"' if mono else ""
    return f"<dt>{label}</dt><dd{kind}>{for_html(value, 400)}</dd>" if value else ""


def _contents(record: RunRecord) -> str:
    parts = [f"{count(record.tensors)} tensors", size(record.nbytes)]
    for name, numbers in (("step", record.steps), ("rank", record.ranks)):
        if len(numbers) == 1:
            parts.append(f"{name} {numbers[0]}")
        elif numbers:
            parts.append(f"{len(numbers)} {name}s")
    return ", ".join(parts)


def _writer(provenance: Mapping[str, str]) -> str:
    words = [provenance.get(name, "") for name in ("framework", "framework_version")]
    made_with = " ".join(word for word in words if word)
    device = provenance.get("device", "")
    return " on ".join(part for part in (made_with, device) if part) or "not recorded"
