"""Comparisons made before on this server, newest first."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from charts.names import for_html, plain
from core.numbers import ago, count, times_floor
from store.records import ComparisonRecord
from store.workspace import Workspace
from ui import url
from ui.markup import anchor, heading, name, table, verdict_word

_HEAD = ["Verdict", "Comparison", "First divergence", "Worst added", "Compared", "When"]
_SHOWN = 10
_MOST = 1000


def draw(workspace: Workspace) -> None:
    """The last ten, or all of them when the address says so."""
    everything = url.get("recent") == "all"
    records = workspace.recent(limit=_MOST if everything else _SHOWN + 1)
    shown = records if everything else records[:_SHOWN]
    more = anchor(url.link("runs", recent="all"), "All") if len(records) > len(shown) else ""
    st.html(heading("Recent comparisons", keys=more) + _table(shown))


def _table(records: list[ComparisonRecord]) -> str:
    if not records:
        return (
            '<p class="px-muted">None yet. Open a sample above, or drop two folders and press '
            "Compare.</p>"
        )
    now = datetime.now(UTC)
    rows = [_row(record, now) for record in records]
    return table(_HEAD, rows, numeric=(3, 4, 5), label="Recent comparisons")


def _row(record: ComparisonRecord, now: datetime) -> list[str]:
    sides = f"{plain(record.label_reference, 40)} against {plain(record.label_candidate, 40)}"
    where = record.first_divergence
    return [
        verdict_word(record.verdict),
        anchor(url.link("overview", c=record.id), sides),
        name(where) if where else '<span class="px-muted">none</span>',
        times_floor(record.worst_added),
        f'<span class="px-muted">{count(record.compared)} / {count(record.total)}</span>',
        f'<span class="px-muted">{for_html(ago(record.created, now))}</span>',
    ]
