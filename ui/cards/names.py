"""What the names of a dump mean: a template that is tried on them while it is typed."""

from __future__ import annotations

import streamlit as st

from charts.names import for_html, for_markdown
from core.errors import ExplorerError
from core.numbers import count
from language import _
from loaders.naming import Naming
from loaders.template import HELP, preview
from store.records import RunRecord
from store.workspace import Workspace
from ui.markup import Side, muted, name, table

_SHOWN = 12
_EXAMPLE = "step{step}/rank{rank}/{module}.{slot}.{argument}"


def draw(workspace: Workspace, side: Side, record: RunRecord) -> None:
    """A popover with the template, what it makes of the dump's names, and Save."""
    with st.popover(_("Names"), key=f"names-{side}", on_change="rerun") as opened:
        if opened.open:
            st.fragment(_wizard)(workspace, side, record)


def _wizard(workspace: Workspace, side: Side, record: RunRecord) -> None:
    st.markdown(_("Say what a name means, for trees that somebody's own script wrote."))
    text = st.text_input(
        _("Template"),
        record.provenance.get("template", ""),
        key=f"template-{side}",
        placeholder=_EXAMPLE,
        help=for_markdown(HELP, 1000),
    )
    try:
        names = workspace.names(record.id)
        if text:
            _tried(text, names)
        else:
            st.html(_names(names))
    except ExplorerError as error:
        st.error(f"{for_markdown(error.message, 400)} {for_markdown(error.hint, 800)}")
        return
    st.button(
        _("Read the dump with it") if text else _("Read the dump without one"),
        key=f"template-save-{side}", type="primary", on_click=_save,
        args=(workspace, record.id, text),
    )  # fmt: skip


def _tried(text: str, names: tuple[str, ...]) -> None:
    found = preview(text, names)
    share = f"{count(len(found.matches))} / {count(len(names))}"
    st.html(f'<p class="px-says">{for_html(_("{share} names fit.", share=share))}</p>')
    head = [_("Name"), _("Module"), _("Slot"), _("Step"), _("Rank"), _("Call")]
    rows = [_row(text_, naming) for text_, naming in found.matches[:_SHOWN]]
    if rows:
        st.html(table(head, rows, label=_("Names that fit")))
    if found.misses:
        st.html(f'<p class="px-says">{for_html(_("These do not fit:"))}</p>')
        st.html(_names(found.misses))


def _row(text: str, naming: Naming) -> tuple[str, ...]:
    numbers = (naming.step, naming.rank, naming.call)
    slot = f"{naming.pass_} {naming.slot} {naming.argument}".strip()
    return (
        name(text, limit=60),
        name(naming.module, limit=40),
        muted(slot),
        *("–" if number is None else str(number) for number in numbers),
    )


def _names(names: tuple[str, ...]) -> str:
    items = "".join(f"<li>{name(text, limit=90)}</li>" for text in names[:_SHOWN])
    more = len(names) - _SHOWN
    rest = f"<li>{muted(_('{n} more', n=count(more)))}</li>" if more > 0 else ""
    return f'<ul class="px-leaves">{items}{rest}</ul>'


def _save(workspace: Workspace, run_id: str, text: str) -> None:
    workspace.set_template(run_id, text or None)
