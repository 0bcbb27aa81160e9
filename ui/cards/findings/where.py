"""Where the error enters: shares of each output's error, and each side's distance from exact."""

from __future__ import annotations

import math
from collections import Counter

import streamlit as st

from analysis.views_findings import Entry, around, closest, entry, replay_of
from charts.names import common_prefix, for_html, shorten
from core.findings import Diagnosis, Finding, Replay
from core.numbers import count, share, times_floor
from core.tensors import TensorInfo
from core.words import word
from language import _, listing, say
from ui import url
from ui.frame import View
from ui.markup import anchor, heading, muted, table

_LOW, _HIGH = 0.5, 1000.0  # times floor at both ends of the side bars
_TICKS = (1, 10, 100, 1000)
_LIMIT = 2.0  # an honest operator's ratio is below
_KEYS = (
    ("candidate", say("added by candidate")),
    ("reference", say("added by reference")),
    ("handed", say("inherited from inputs")),
)


def draw(view: View, diagnosis: Diagnosis, finding: Finding) -> None:
    """A bar for each replayed output around the finding, in execution order."""
    shown = around(diagnosis, finding, _near(view, diagnosis, finding))
    st.html(heading(_("Where it enters"), _("share of each output's squared error"), _keys()))
    if not shown:
        st.html(f'<p class="px-note">{muted(_("No operator here could be recomputed."))}</p>')
        return
    _bars(shown, finding.tensor)


def nearest(view: View, diagnosis: Diagnosis) -> None:
    """Without a finding: the outputs that came closest to one."""
    nearest = closest(diagnosis)
    rows = view.table[view.table["tensor"].isin([r.tensor for r in nearest])]
    operators = dict(zip(rows["tensor"], rows["operator"], strict=True))
    shown = [entry(r, operators.get(r.tensor, r.tensor)) for r in nearest]
    st.html(
        heading(_("Closest to the limit"), _("the largest local errors of either side"), _keys())
    )
    if not shown:
        st.html(f'<p class="px-note">{muted(_("No operator could be recomputed."))}</p>')
        return
    _bars(shown, "")


def _near(view: View, diagnosis: Diagnosis, finding: Finding) -> dict[str, TensorInfo]:
    """The replayed tensors of the finding's step and rank; only those are decoded."""
    rows = view.table[view.table["tensor"].isin([r.tensor for r in diagnosis.replays])]
    for name, value in (("step", finding.step), ("rank", finding.rank)):
        rows = rows[rows[name].isna() if value is None else rows[name] == value]
    pairs = view.comparison.pairs
    return {
        str(t): pairs[int(n)].reference for t, n in zip(rows["tensor"], rows["pair"], strict=True)
    }


def _keys() -> str:
    return "".join(
        f'<span><i class="px-box px-{kind}"></i>{for_html(words)}</span>' for kind, words in _KEYS
    )


def sides(diagnosis: Diagnosis, finding: Finding) -> None:
    """Which side is wrong: each side's own error in units of the floor."""
    replay = replay_of(diagnosis, finding)
    st.html(heading(_("Which side is wrong"), _("each replayed in float64 on its own inputs")))
    if replay is None:
        why = diagnosis.not_replayed.get(finding.tensor, _("this output could not be recomputed"))
        st.html(f'<p class="px-note">{muted(_("Open: {why}.", why=why))}</p>')
        return
    rows = "".join(
        _side(side, ratio)
        for side, ratio in (
            ("reference", replay.ratio_reference),
            ("candidate", replay.ratio_candidate),
        )
    )
    ticks = "".join(f'<span style="left:{_at(t):.1f}%">{count(t)}×</span>' for t in _TICKS)
    st.html(
        f'<div class="px-sides" role="img" aria-label="{for_html(_said(replay), 400)}">{rows}'
        f'<div class="px-ticks" aria-hidden="true"><i></i><div>{ticks}</div><b></b></div></div>'
        f'<p class="px-says">{for_html(_said(replay), 400)}</p>'
    )


def _bars(shown: tuple[Entry, ...] | list[Entry], at: str) -> None:
    prefix = common_prefix([f"{e.operator}." for e in shown])
    outputs = Counter(e.operator for e in shown)
    rows = [
        (
            _name(e, prefix, strong=e.tensor == at, slot=outputs[e.operator] > 1),
            _bar(e),
            f"<b>{times_floor(e.times_floor)}</b>"
            if e.tensor == at
            else times_floor(e.times_floor),
        )
        for e in shown
    ]
    body = table(["", "", _("Total")], rows, numeric=(2,), label=_("Shares"))
    st.html(f'<div class="px-shares">{body}</div>')


def _name(shown: Entry, prefix: str, *, strong: bool, slot: bool) -> str:
    """The operator's name, and the output's number where there are several."""
    text = shorten(f"{shown.operator}.".removeprefix(prefix).strip(".") or _whole(shown), 24)
    text += f" .{shown.tensor.rpartition('.')[2]}" if slot else ""
    link = anchor(url.link("tensor", t=shown.tensor), text, mono=True, title=shown.operator)
    return f"<b>{link}</b>" if strong else link


def _whole(shown: Entry) -> str:
    """Name of the block that holds the others."""
    return ".".join(shown.operator.split(".")[-2:]) or _("model")


def _bar(shown: Entry) -> str:
    parts = (
        ("candidate", shown.candidate, _("added by the candidate")),
        ("reference", shown.reference, _("added by the reference")),
        ("handed", shown.inherited, _("inherited from its inputs")),
    )
    if math.isnan(shown.candidate):
        return muted(_("equal on both sides") if shown.times_floor == 0 else _("not finite"))
    said = for_html(listing(f"{share(value, 1)} {words}" for _kind, value, words in parts), 400)
    pieces = "".join(
        f'<i class="px-{kind}" style="width:{100 * value:.2f}%"></i>'
        for kind, value, _words in parts
    )
    return f'<span class="px-stack" role="img" title="{said}" aria-label="{said}">{pieces}</span>'


def _side(side: str, ratio: float) -> str:
    look = "px-over" if ratio > _LIMIT else "px-muted"
    width = _at(ratio) if not math.isnan(ratio) else 0.0
    return (
        f'<div><span>{for_html(word(side))}</span><div class="px-track"><i class="px-{side}" '
        f'style="width:{width:.1f}%"></i></div>'
        f'<span class="{look}"><b>{times_floor(ratio)}</b></span></div>'
    )


def _at(value: float) -> float:
    if math.isinf(value):
        return 100.0
    place = math.log(max(value, _LOW) / _LOW) / math.log(_HIGH / _LOW)
    return 100 * min(1.0, max(0.01, place))


def _said(replay: Replay) -> str:
    ours, theirs = replay.ratio_reference, replay.ratio_candidate
    about = _(
        "The reference is {ours} and the candidate {theirs} the floor.",
        ours=times_floor(ours),
        theirs=times_floor(theirs),
    )
    if ours <= _LIMIT < theirs:
        return _(
            "The candidate. {about} The reference is as close to exact as its format allows.",
            about=about,
        )
    if theirs <= _LIMIT < ours:
        return _(
            "The reference. {about} The candidate is as close to exact as its format allows.",
            about=about,
        )
    if ours > _LIMIT and theirs > _LIMIT:
        return _("Both. {about} A shared reduced-precision mode would look like this.", about=about)
    return _("Neither by size alone. {about} The pattern of the error decides here.", about=about)
