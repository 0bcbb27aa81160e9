"""Comparisons made before on this server, newest first."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from charts.names import for_html, plain
from core.numbers import ago, count, times_floor
from language import _, say
from store.records import ComparisonRecord
from store.workspace import Workspace
from ui import url
from ui.markup import anchor, heading, muted, name, table, verdict_word

_HEAD = [
    say("Verdict"),
    say("Comparison"),
    say("First divergence"),
    say("Worst added"),
    say("Compared"),
    say("When"),
]
_EMPTY = say("None yet. Open a sample above, or drop two folders and press Compare.")
_SHOWN = 10
_MOST = 1000


def draw(workspace: Workspace) -> None:
    """The last ten, or all of them when the address says so."""
    everything = url.get("recent") == "all"
    records = workspace.recent(limit=_MOST if everything else _SHOWN + 1)
    shown = records if everything else records[:_SHOWN]
    more = anchor(url.link("runs", recent="all"), _("All")) if len(records) > len(shown) else ""
    st.html(heading(_("Recent comparisons"), keys=more) + _table(shown))


def _table(records: list[ComparisonRecord]) -> str:
    if not records:
        return f'<p class="px-muted">{for_html(_EMPTY, 200)}</p>'
    now = datetime.now(UTC)
    rows = [_row(record, now) for record in records]
    return table(
        [for_html(each) for each in _HEAD], rows, numeric=(3, 4, 5), label=_("Recent comparisons")
    )


def _row(record: ComparisonRecord, now: datetime) -> list[str]:
    sides = _(
        "{label_reference} against {label_candidate}",
        label_reference=plain(record.label_reference, 40),
        label_candidate=plain(record.label_candidate, 40),
    )
    where = record.first_divergence
    return [
        verdict_word(record.verdict),
        anchor(url.link("overview", c=record.id), sides),
        name(where) if where else muted(_("none")),
        times_floor(record.worst_added),
        f'<span class="px-muted">{count(record.compared)} / {count(record.total)}</span>',
        f'<span class="px-muted">{for_html(ago(record.created, now))}</span>',
    ]
