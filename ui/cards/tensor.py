"""The head of the Tensor page: which pair, its verdict and figures, its neighbours, its problem."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from analysis.views_rows import trail
from charts.names import for_html, plain
from core.comparison import Pair
from core.errors import NotHereError
from core.numbers import cosine, count, error, shape, share, times_floor
from core.tensors import TensorInfo
from core.words import head as head_of
from core.words import word
from language import _, listing, say, told
from metrics import METRICS
from ui import url
from ui.cards.scope import nearest
from ui.frame import View
from ui.markup import anchor, muted, name, table, verdict_word

Row = Mapping[Hashable, Any]
_MOST_LINKS = 8


@dataclass(frozen=True, slots=True)
class Subject:
    """The pair of the page: its number, its row in the table, and the pair itself."""

    number: int
    row: Row
    pair: Pair
    asked: bool  # False: the address names no tensor and one was picked


def find(view: View) -> Subject:
    """The pair the address names; without a name the first divergence, else the largest error."""
    asked = url.get("t")
    number = _pick(view) if asked is None else number_of(view, asked)
    row = view.table.iloc[number].to_dict()
    return Subject(number, row, view.comparison.pairs[number], asked is not None)


def number_of(view: View, asked: str) -> int:
    """The pair of a tensor; NotHereError says where it went, or what has a similar name."""
    at = (view.table["tensor"] == asked).to_numpy().nonzero()[0]
    if not len(at):
        raise _not_here(view, asked)
    return int(at[0])


def head(view: View, subject: Subject) -> None:
    """Breadcrumb, name, verdict and figures."""
    tensor, row = subject.pair.reference, subject.row
    place = (
        _("{slot}, call {call}", slot=tensor.slot_label, call=tensor.call)
        if tensor.call
        else tensor.slot_label
    )
    where = [
        "" if tensor.step is None else say("step {step}", step=tensor.step),
        "" if tensor.rank is None else say("rank {rank}", rank=tensor.rank),
    ]
    with st.container(horizontal=True, vertical_alignment="bottom", key="tensor-head"):
        st.html(
            f'{_breadcrumb(tensor)}<div class="px-title">'
            f'<h1 class="px-mono">{for_html(tensor.operator or tensor.name)}</h1>'
            f"{verdict_word(row['verdict'], _verdict(view, subject))}</div>"
            f'<p class="px-note">{for_html(listing([place, *where]), 200)}'
            f"{muted(_aside(view, subject))}</p>"
        )
        if subject.pair.stats is not None:
            st.html(_figures(row), width="content")


def neighbours(view: View, subject: Subject) -> None:
    """Links to the other tensors of the same call and to the ones before and after it."""
    rows, tensor = view.table, subject.pair.reference
    call = rows[
        (rows["operator"] == tensor.operator)
        & (rows["call"] == tensor.call)
        & _same(rows["step"], tensor.step)
        & _same(rows["rank"], tensor.rank)
        & (rows["pair"] != subject.number)
    ]
    beside = rows.iloc[[n for n in (subject.number - 1, subject.number + 1) if 0 <= n < len(rows)]]
    parts = [(_("Same operator"), _links(call.to_dict("records"), by_slot=True))]
    for words, number in ((_("Before"), subject.number - 1), (_("After"), subject.number + 1)):
        found = beside[beside["pair"] == number].to_dict("records")
        parts.append((words, _links(found, by_slot=False)))
    html = "".join(f"<span>{muted(words)} {links}</span>" for words, links in parts if links)
    st.html(f'<nav class="px-beside" aria-label="{for_html(_("Neighbours"))}">{html}</nav>')


def problem(subject: Subject) -> None:
    """Why the pair has no values to show, with both sides' shape and format."""
    a, b = subject.pair.reference, subject.pair.candidate
    rows = [
        (label, shape(t.shape), t.dtype, count(t.size), name(t.id))
        for label, t in ((told(word("reference")), a), (told(word("candidate")), b))
    ]
    why = for_html(subject.pair.problem or "", 400)
    title = (
        _("Not compared: {why}", why=why)
        if why
        else _("Compared by statistics only: no values to show")
    )
    cells = [[for_html(c) for c in row[:4]] + [row[4]] for row in rows]
    st.html(
        f'<div class="px-explain"><h2>{title}</h2>'
        + table(
            [_("Side"), _("Shape"), _("Format"), _("Elements"), _("Tensor")],
            cells,
            numeric=[3],
            label=_("Sides"),
        )
        + f"<p>{anchor(url.link('layers', at=a.operator), _('Show its operator on Layers'))}</p>"
        "</div>"
    )


def _pick(view: View) -> int:
    if view.judgement.first_divergence is not None:
        return view.judgement.first_divergence
    known = view.rows[view.rows["times_floor"].notna()]
    if known.empty:
        raise NotHereError(
            _("No pair of this comparison could be compared."), _("See Overview for why.")
        )
    return int(known.sort_values("times_floor", ascending=False)["pair"].to_list()[0])


def _not_here(view: View, asked: str) -> NotHereError:
    for run, rest in (
        ("reference", view.comparison.unmatched_reference),
        ("candidate", view.comparison.unmatched_candidate),
    ):
        if any(tensor.id == asked for tensor in rest):
            return NotHereError(
                _(
                    "{asked} was recorded by the {side} only, so there is nothing to compare.",
                    asked=plain(asked),
                    side=word(run),
                ),
                _("Overview lists everything that found no partner."),
            )
    near = nearest(asked, [str(t) for t in view.table["tensor"]])
    hint = _("Nearest: {near}.", near=listing(near)) if near else _("Pick one on Layers.")
    return NotHereError(_("This comparison has no tensor {asked!r}.", asked=plain(asked)), hint)


def _breadcrumb(tensor: TensorInfo) -> str:
    links = [anchor(url.link("layers"), _("whole model"))]
    links += [
        anchor(url.link("layers", at=at), segment, title=at)
        for segment, at in trail(tensor.operator)
    ]
    return (
        f'<nav class="px-crumb" aria-label="{for_html(_("Path"))}">{"<i>/</i>".join(links)}</nav>'
    )


def _verdict(view: View, subject: Subject) -> str:
    first = subject.number == view.judgement.first_divergence
    verdict = str(subject.row["verdict"])
    return (
        _("{verdict}, first divergence", verdict=head_of(verdict))
        if first
        else told(head_of(verdict))
    )


def _aside(view: View, subject: Subject) -> str:
    if subject.asked:
        return ""
    first = subject.number == view.judgement.first_divergence
    if first:
        return _(" · the address names no tensor: this is the first divergence")
    return _(" · the address names no tensor: this is the largest error")


def _figures(row: Row) -> str:
    equal = row["equal_fraction"]
    cells = (
        (
            _("Times floor"),
            times_floor(row["times_floor"]),
            _("Relative L2 error per rounding floor"),
        ),
        (
            _("Added here"),
            times_floor(row["added"]),
            _("Error the operator puts on top of its inputs'"),
        ),
        (_("Relative L2"), error(row["relative_l2"]), told(METRICS["relative_l2"].help)),
        (_("Cosine"), cosine(row["cosine_distance"]), told(METRICS["cosine_distance"].help)),
        (_("Max |error|"), error(row["max_abs_error"]), told(METRICS["max_abs_error"].help)),
        (_("Equal"), share(equal, 1), told(METRICS["equal_fraction"].help)),
        (_("Elements"), count(int(row["elements"])), _("Shape {shape}", shape=row["shape"])),
    )
    loud = row["verdict"] if row["verdict"] in ("fault", "watch") else ""
    return '<dl class="px-figures">' + "".join(
        f'<div title="{for_html(help_, 600)}"><dt>{for_html(label)}</dt>'
        f'<dd{_tone(loud if not i else "")}>{value}</dd></div>'
        for i, (label, value, help_) in enumerate(cells)
    ) + "</dl>"  # fmt: skip


def _tone(verdict: str) -> str:
    return f' class="px-state px-{verdict}"' if verdict else ""


def _same(column: pd.Series, value: int | None) -> pd.Series:
    return column.isna() if value is None else column == value


def _links(rows: Iterable[Row], *, by_slot: bool) -> str:
    links = [
        anchor(
            url.link("tensor", t=row["tensor"]),
            str(row["slot"]) if by_slot else f"{row['operator']} · {row['slot']}",
            mono=True,
            title=_(
                "{tensor}, {times} floor, {verdict}",
                tensor=row["tensor"],
                times=times_floor(row["times_floor"]),
                verdict=word(row["verdict"]),
            ),
        )
        for row in list(rows)[:_MOST_LINKS]
    ]
    return " ".join(links)
