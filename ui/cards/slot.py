"""One side's slot on Runs: drop a folder, name one on the server, take one already read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from charts.names import for_html, for_markdown, plain
from core.errors import ExplorerError
from core.numbers import count, size
from core.words import head
from language import _, listing, say, told
from store.records import RunRecord
from store.workspace import Workspace
from ui import upload, url
from ui.cards import names
from ui.cards.verdict import ranks_of, steps_of
from ui.markup import Side, anchor, key

_ROLE: Mapping[Side, str] = {
    "reference": say("the side you trust"),
    "candidate": say("the side under test"),
}
_DUMP: Mapping[Side, str] = {
    "reference": say("Reference dump"),
    "candidate": say("Candidate dump"),
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
        f'<div class="px-slot">{key(side)}<h2>{for_html(head(side))}</h2>'
        f'<span class="px-muted">{for_html(_ROLE[side])}</span>'
        f'<span class="px-state {kind}">{for_html(state)}</span></div>'
    )


def _empty(workspace: Workspace, side: Side) -> None:
    _title(side)
    with st.container(key=f"drop-{side}"):
        finished = upload.folder_upload(
            told(_DUMP[side]), slot=side, hint=_("Drop a dump folder here")
        )
    if finished:
        url.put(**{PARAMETER[side]: finished["id"]})
        st.rerun()
    with st.container(horizontal=True, key=f"other-{side}"):
        _from_server(workspace, side)
        _from_list(workspace, side)


def _from_server(workspace: Workspace, side: Side) -> None:
    with st.popover(_("Folder on the server"), key=f"server-{side}"):
        if not workspace.folders:
            st.markdown(
                _(
                    "No folder of the server is open to this page. Its operator names some in "
                    "`PX_FOLDERS` and starts it again."
                )
            )
            return
        st.text_input(
            _("Path of a dump folder on the server"),
            key=f"path-{side}",
            placeholder=str(workspace.folders[0] / "gpu_bf16"),
            help=_(
                "Inside {folders}.",
                folders=told(listing(for_markdown(str(f)) for f in workspace.folders)),
            ),
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
            _("Already on this server"),
            list(runs),
            index=None,
            key=f"list-{side}",
            placeholder=_("Already on this server"),
            format_func=lambda run_id: _choice(runs[run_id]),
            label_visibility="collapsed",
            on_change=_take,
            args=(side,),
        )


def _choice(run: RunRecord) -> str:
    return _(
        "{label} · {n} tensors, {size}",
        label=plain(run.label, 60),
        n=count(run.tensors),
        size=size(run.nbytes),
    )


def _take(side: Side) -> None:
    url.put(**{PARAMETER[side]: st.session_state[f"list-{side}"]})


def _replace(side: Side) -> None:
    url.put(**{PARAMETER[side]: None})


def _reading(workspace: Workspace, side: Side, run_id: str) -> None:
    _title(side, _("reading"))
    record = workspace.run(run_id)
    st.html(f'<dl class="px-facts">{_fact(_("Folder"), record.label, mono=True)}</dl>')
    st.progress(0.0, text=_("Listing the tensors"))
    if record.status != "reading":
        st.rerun()


def _read(workspace: Workspace, side: Side, record: RunRecord) -> None:
    if record.comparison_id is not None:
        _title(side, _("a saved comparison"), "px-read")
        opened = anchor(url.link("overview", c=record.comparison_id), _("Open it"))
        said = _("{label} holds a comparison, not a dump.", label=record.label)
        st.html(f"<p>{for_html(said, 400)} {opened}</p>")
        st.button(_("Replace"), key=f"replace-{side}", on_click=_replace, args=(side,))
        return
    failed = record.status == "failed"
    _title(side, _("not readable") if failed else _("✓ read"), "px-fault" if failed else "px-read")
    st.html(f'<dl class="px-facts">{"".join(_facts(record))}</dl>')
    with st.container(horizontal=True, key=f"done-{side}"):
        st.button(_("Replace"), key=f"replace-{side}", on_click=_replace, args=(side,))
        if not failed:
            names.draw(workspace, side, record)


def _facts(record: RunRecord) -> list[str]:
    folder = _fact(_("Folder"), record.label, mono=True)
    if record.status == "failed":
        return [folder, _fact(_("Why"), record.error), _fact(_("To do"), record.error_hint)]
    problems = len(record.problems)
    contents = _contents(record)
    if problems:
        contents = _(
            "{contents}; {n} items could not be read", contents=contents, n=count(problems)
        )
    return [
        folder,
        _fact(_("Contents"), contents),
        _fact(_("Format"), record.format or _("not recorded")),
        _fact(_("Written by"), _writer(record.provenance)),
    ]


def _fact(label: str, value: str, *, mono: bool = False) -> str:
    kind = ' class="px-mono"' if mono else ""
    return f"<dt>{for_html(label)}</dt><dd{kind}>{for_html(value, 400)}</dd>" if value else ""


def _contents(record: RunRecord) -> str:
    parts = [
        say("{n} tensors", n=count(record.tensors)),
        size(record.nbytes),
        steps_of(record.steps),
        ranks_of(record.ranks),
    ]
    return told(listing(parts))


def _writer(provenance: Mapping[str, str]) -> str:
    words = [provenance.get(name, "") for name in ("framework", "framework_version")]
    made_with = " ".join(word for word in words if word)
    device = provenance.get("device", "")
    if made_with and device:
        return _("{framework} on {device}", framework=made_with, device=device)
    return made_with or device or _("not recorded")
