"""The page Formats: what each tensor of one run would lose in each format, and which would do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pandas as pd
import streamlit as st

from analysis.lab import IDEAL, SCHEMES, GridFit, Loss, lab, recommended, steps
from analysis.views_rows import kinds, of_kind
from charts.formats import MOST_ROWS, beyond_ideal, db, loss_map
from charts.names import common_prefix, for_html, shorten
from charts.template import CONFIG
from core.comparison import Pair
from core.numbers import count, error, share
from language import _, n_
from ui import url
from ui.frame import View
from ui.markup import anchor, heading, muted, table

MOST = 240  # tensors tried at once; more are an even choice of them
_SIDES = {"reference": "reference", "candidate": "candidate"}
_PAGE = 50
_LEVELS = {"20": 20.0, "30": 30.0, "40": 40.0, "50": 50.0}


@dataclass(frozen=True, slots=True)
class Lab:
    """Losses of the tensors shown, in execution order; `total` is how many there are."""

    side: str
    losses: Mapping[str, Sequence[Loss]]
    fits: Mapping[str, GridFit]
    rows: pd.DataFrame
    total: int
    least_db: float


def choose(view: View) -> Lab:
    """The pickers, then the work in a worker; the answer stands first."""
    said = st.empty()
    with st.container(horizontal=True, vertical_alignment="center", key="formats-bar"):
        labels = {"reference": _("reference"), "candidate": _("candidate")}
        side = url.choose(
            _("Run"), _SIDES, key="side", labels=labels, style="segments", visible=False
        )
        present = kinds(view.rows)
        kind = url.choose(
            _("Tensors"), {k: k for k in present}, key="kind", labels=present, visible=False,
            width=200,
        )  # fmt: skip
        levels = {k: f"SQNR ≥ {k} dB, {error(10 ** (-v / 20))}" for k, v in _LEVELS.items()}
        least = url.choose(
            _("Loss allowed"), _LEVELS, key="db", labels=levels, default="30", visible=False,
            width=200,
        )  # fmt: skip
    rows = _floats(of_kind(view.rows, kind), side)
    chosen = rows.iloc[:: -(-len(rows) // MOST) or 1] if len(rows) > MOST else rows
    with st.spinner(_("Trying every format on {n} tensors", n=count(len(chosen)))):
        made = Lab(side, _losses(view, chosen, side), _fits(view, chosen), chosen, len(rows), least)
    said.html(f'<div class="px-title"><h1>{for_html(_answer(made), 300)}</h1></div>')
    return made


def heat(view: View, made: Lab) -> None:
    """Tensors against formats, the worst rows where there are too many."""
    names = dict(zip(made.rows["tensor"], _names(made.rows), strict=True))
    ranked = sorted(made.losses.items(), key=lambda item: -_badness(item[1]))[:MOST_ROWS]
    order = {tensor: n for n, tensor in enumerate(made.losses)}
    shown = sorted(ranked, key=lambda item: order[item[0]])
    aside = _("loss beyond what the format costs anyway")
    if len(made.losses) > MOST_ROWS:
        aside += _("; the {n} worst of {total}", n=MOST_ROWS, total=count(made.total))
    ramp = ",".join(view.theme.ember)
    keys = (
        f'<span>1× <i class="px-ramp" style="width:72px;background:linear-gradient(90deg,{ramp})">'
        f"</i> 100×</span><span>◆ {for_html(_('out of range'))}</span>"
    )
    st.html(heading(_("What each tensor would lose"), aside, keys))
    if not shown:
        st.html(f'<p class="px-note">{muted(_("No tensor of this kind holds floats."))}</p>')
        return
    figure = loss_map([(names[tensor], losses) for tensor, losses in shown], theme=view.theme)
    st.plotly_chart(figure, theme=None, key="formats", config=CONFIG, alt=_answer(made))


def recommendations(made: Lab) -> None:
    """The narrowest format that fits each tensor, and how it would do in some others."""
    aside = _("fewest bits that reach {db} dB with nothing out of range", db=f"{made.least_db:g}")
    st.html(heading(_("Which format would do"), aside))
    head = [
        _("Operator"), _("Slot"), _("Now"), _("Recommended"), "SQNR", "bf16", "fp16", "e4m3 tensor",
        "int8 row", _("Elements tried"),
    ]  # fmt: skip
    names = _names(made.rows)
    rows = [
        _recommendation(row, name, made.losses[row["tensor"]], made)
        for row, name in zip(made.rows.to_dict("records"), names, strict=True)
        if row["tensor"] in made.losses
    ]
    st.html(table(head, rows[:_PAGE], numeric=range(4, 10), label=_("Recommended formats")))
    if len(rows) > _PAGE:
        more = _("{n} more tensors are not listed.", n=count(len(rows) - _PAGE))
        st.html(f'<p class="px-note">{muted(more)}</p>')


def quantised(made: Lab) -> None:
    """Candidates that lie on an integer grid, against the ideal of rounding to it."""
    if not made.fits:
        return
    aside = _("rms distance from the reference in steps; rounding to nearest gives {ideal}",
              ideal=f"{IDEAL:.3f}")  # fmt: skip
    st.html(heading(_("Quantised tensors of the candidate"), aside))
    names = dict(zip(made.rows["tensor"], _names(made.rows), strict=True))
    rows = [
        (
            anchor(url.link("tensor", t=tensor), shorten(names[tensor], 44), mono=True),
            f"{count(fit.rows)} / {count(fit.rows_total)}",
            error(fit.rmse_steps),
            share(fit.clipped, 1),
        )
        for tensor, fit in list(made.fits.items())[:_PAGE]
    ]
    head = [_("Operator"), _("Rows on a grid"), _("Error in steps"), _("Clipped")]
    st.html(table(head, rows, numeric=(1, 2, 3), label=_("Quantised tensors")))


def _floats(rows: pd.DataFrame, side: str) -> pd.DataFrame:
    dtypes = rows[f"dtype_{side}"].astype(str)
    return rows[dtypes.str.contains("float")]


def _losses(view: View, rows: pd.DataFrame, side: str) -> dict[str, Sequence[Loss]]:
    pairs = [view.comparison.pairs[n] for n in rows["pair"]]
    ids = {_side(pair, side): pair.reference.id for pair in pairs}
    peaks = {_side(pair, side): _peak(pair, side) for pair in pairs}
    found = view.workspace.ask(view.comparison.id, lab, side=side, tensors=tuple(ids), peaks=peaks)
    return {ids[tensor]: list(group) for tensor, group in groupby(found, key=lambda x: x.tensor)}


def _fits(view: View, rows: pd.DataFrame) -> Mapping[str, GridFit]:
    pairs = [view.comparison.pairs[n] for n in rows["pair"]]
    ids = tuple((pair.reference.id, pair.candidate.id) for pair in pairs)
    return view.workspace.ask(view.comparison.id, steps, pairs=ids)


def _side(pair: Pair, side: str) -> str:
    return pair.reference.id if side == "reference" else pair.candidate.id


def _peak(pair: Pair, side: str) -> float:
    if pair.stats is None:
        return 0.0
    stats = pair.stats.reference if side == "reference" else pair.stats.candidate
    return stats.max_abs if stats.finite else 0.0


def _names(rows: pd.DataFrame) -> list[str]:
    prefix = common_prefix([str(path) for path in rows["operator"].unique()])
    several = rows["operator"].duplicated(keep=False)
    return [
        (str(path).removeprefix(prefix) or "model") + (f" {slot}" if twice else "")
        for path, slot, twice in zip(rows["operator"], rows["slot"], several, strict=True)
    ]


def _badness(losses: Sequence[Loss]) -> float:
    return max((value for loss in losses if (value := beyond_ideal(loss)) == value), default=0.0)


def _answer(made: Lab) -> str:
    best = Counter(recommended(losses, made.least_db) for losses in made.losses.values())
    if not best:
        return _("No tensor of this kind holds floats.")
    unfit = best.pop("", 0)
    if not best:
        return _("None of the formats fits any of these tensors.")
    name, number = best.most_common(1)[0]
    rest = n_("; {number} fits none", _("; {number} fit none"), unfit) if unfit else ""
    return _(
        "{n} of {total} tensors would do with {scheme}{rest}.",
        n=count(number), total=count(len(made.losses)), scheme=SCHEMES[name].label, rest=rest,
    )  # fmt: skip


def _recommendation(
    row: Mapping[Any, Any], name: str, losses: Sequence[Loss], made: Lab
) -> tuple[str, ...]:
    by_scheme = {loss.scheme: loss for loss in losses}
    best = recommended(losses, made.least_db)
    shown = [_level(by_scheme[key]) for key in ("bfloat16", "float16", "e4m3_tensor", "int8_row")]
    return (
        anchor(url.link("tensor", t=row["tensor"]), shorten(name, 44), mono=True),
        muted(str(row["slot"])),
        muted(str(row[f"dtype_{made.side}"])),
        f"<b>{SCHEMES[best].label}</b>" if best else muted(_("none fits")),
        db(by_scheme[best].sqnr_db) if best else "–",
        *shown,
        count(losses[0].elements),
    )


def _level(loss: Loss) -> str:
    text = db(loss.sqnr_db)
    return text if loss.fits else muted(text)
