"""Further distributions of one pair, and what another tolerance or a format alone would give."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from analysis.views_detail import (
    BIN_WIDTH,
    Cumulative,
    Density,
    cumulative,
    density,
    error_octaves,
    quantiles,
)
from analysis.views_lens import Lens, lenses
from analysis.views_tolerance import Refused, refused
from charts.detail import cumulative_chart, density_chart, error_histogram, quantile_chart
from charts.names import for_html
from core.comparison import Pair
from core.numbers import count, error, share, times_floor
from core.stats import PairStats
from language import _
from metrics.formats import FORMATS
from ui import url
from ui.cards.distributions import Drawn, grid_of
from ui.cards.tensor import Subject
from ui.frame import View
from ui.markup import heading

_STEPS = ("0", *(f"{n}e{e}" for e in range(-9, 1) for n in (1, 2, 5)))


@st.fragment  # type: ignore[untyped-decorator]
def draw(view: View, subject: Subject) -> None:
    """Two rows: what if, and four charts. Both come from the statistics alone."""
    stats = subject.pair.stats
    if stats is None or not stats.count:
        return
    tolerance = _what_if(subject, stats)
    aside = _("known to 1/{n} of a value; errors by power of two", n=round(1 / BIN_WIDTH))
    st.html(heading(_("Distributions in detail"), aside))
    grid_of(_charts(view, stats, tolerance), key="detail")


def _what_if(subject: Subject, stats: PairStats) -> tuple[float, float]:
    aside = _("no new pass: from the statistics of all elements")
    st.html(heading(_("What if"), aside))
    left, right = st.columns([1.4, 1], gap="medium")
    with left:
        tolerance = _tolerance(subject.pair, stats)
    with right:
        st.html(_lens_table(lenses(stats), subject))
    return tolerance


def _tolerance(pair: Pair, stats: PairStats) -> tuple[float, float]:
    """Two sliders and what they would refuse; the comparison's own tolerance stands first."""
    st.html(f'<h3 class="px-small">{for_html(_("If the tolerance were"))}</h3>')
    with st.container(horizontal=True, key="tolerance"):
        atol = _slider("atol", pair.tolerance.atol)
        rtol = _slider("rtol", pair.tolerance.rtol)
    if (atol, rtol) == (pair.tolerance.atol, pair.tolerance.rtol):
        words = _(
            "{n} of {total} elements are outside, {share}: counted, with the comparison's own.",
            n=count(stats.mismatches), total=count(stats.count),
            share=share(stats.mismatches, stats.count),
        )  # fmt: skip
    else:
        words = _refused_words(refused(stats, atol=atol, rtol=rtol))
    st.html(f'<p class="px-says" role="status">{for_html(words, 400)}</p>')
    return atol, rtol


def _slider(name: str, own: float) -> float:
    steps = {text: float(text) for text in _STEPS}
    if own not in steps.values():
        steps[f"{own:g}"] = own
    options = [text for text, _value in sorted(steps.items(), key=lambda item: item[1])]
    asked = url.get(name)
    default = next(text for text in options if steps[text] == own)
    key = f"what-if-{name}"
    st.session_state[key] = asked if asked in steps else default
    if asked is not None and asked not in steps:
        words = _("The link asks for {name} {asked}, which is not a step.", name=name, asked=asked)
        st.html(f'<p class="px-note">{for_html(words, 200)}</p>')
    chosen = st.select_slider(
        name,
        options,
        key=key,
        help=_("An element is outside when |candidate − reference| > atol + rtol · |reference|."),
        on_change=lambda: url.put(**{name: st.session_state[key]}),
    )
    return steps[str(chosen)]


def _refused_words(found: Refused) -> str:
    if found.surely == found.at_most:
        return _(
            "{n} of {total} elements would be outside, {share}.",
            n=count(found.surely), total=count(found.total),
            share=share(found.surely, found.total),
        )  # fmt: skip
    return _(
        "About {share} of {total} elements would be outside: {low} at least, {high} at most.",
        share=share(round(found.likely), found.total), total=count(found.total),
        low=count(found.surely), high=count(found.at_most),
    )  # fmt: skip


def _lens_table(found: tuple[Lens, ...], subject: Subject) -> str:
    """Bars on one log scale: each format's own error, and the one that was measured."""
    floor, measured = float(subject.row["floor"]), float(subject.row["relative_l2"])
    rows = [(lens.scheme.label, lens.relative_l2, _lost(lens), "") for lens in found]
    rows.append((_("as measured"), measured, _("relative L2 error of the pair"), " px-measured"))
    known = [value for _label, value, _help, _class in rows if value > 0]
    title = f'<h3 class="px-small">{for_html(_("If the candidate had only been rounded to"))}</h3>'
    if not known:
        return title + f'<p class="px-note">{for_html(_("There is no error to show."))}</p>'
    low, high = min(known) / 3, max(known)
    body = "".join(
        f'<div class="px-lens{kind}" title="{for_html(help_, 400)}"><span>{for_html(label)}</span>'
        f'<b><i style="width:{_place(value, low, high):.1f}%"></i></b>'
        f"<span>{_cost(value, floor)}</span></div>"
        for label, value, help_, kind in rows
    )
    return f"{title}{body}"


def _place(value: float, low: float, high: float) -> float:
    """Percent of the bar's length, log scale."""
    if not value > 0:
        return 0.0
    if not math.isfinite(value):
        return 100.0
    return 100 * math.log(value / low) / math.log(high / low)


def _cost(value: float, floor: float) -> str:
    if value == 0:
        return "0"
    return times_floor(value / floor) if floor > 0 else error(value)


def _lost(lens: Lens) -> str:
    return _(
        "{help} Relative L2 {error}; {saturated} beyond the range, {underflow} rounded to zero. "
        "Predicted from the histograms of the reference.",
        help=lens.scheme.help, error=error(lens.relative_l2),
        saturated=share(lens.saturated, 1), underflow=share(lens.underflow, 1),
    )  # fmt: skip


def _charts(view: View, stats: PairStats, tolerance: tuple[float, float]) -> list[Drawn]:
    theme = view.theme
    rising, straight = cumulative(stats), quantiles(stats)
    errors, cloud = error_octaves(stats), density(stats)
    known = FORMATS.get(stats.dtype)
    roundoff = known.unit_roundoff if known else 0.0
    return [
        Drawn(
            _("Cumulative (ECDF)"),
            cumulative_chart(rising, theme=theme),
            lambda: _rising_rows(rising),
        ),
        Drawn(
            _("Quantiles, candidate over reference (Q–Q)"),
            quantile_chart(straight, theme=theme),
            lambda: _columns(straight, "share", "reference", "candidate"),
        ),
        Drawn(
            _("|Error| by power of two"),
            error_histogram(errors, theme=theme),
            lambda: _columns(errors, "exponent", "counts"),
        ),
        Drawn(
            _("|Error| against |reference|"),
            density_chart(cloud, roundoff=roundoff, tolerance=tolerance, theme=theme),
            lambda: _density_rows(cloud),
        ),
    ]


def _columns(found: object, *names: str) -> pd.DataFrame:
    """Fields of a curve as columns; nothing for none."""
    return pd.DataFrame({n: getattr(found, n) for n in names} if found is not None else {})


def _rising_rows(found: Cumulative | None) -> pd.DataFrame:
    if found is None:
        return pd.DataFrame()
    sides = [
        pd.DataFrame({"side": side, "value": value, "share": upto})
        for side, (value, upto) in (
            ("reference", found.reference),
            ("candidate", found.candidate),
        )
    ]
    return pd.concat(sides, ignore_index=True)


def _density_rows(found: Density | None) -> pd.DataFrame:
    if found is None:
        return pd.DataFrame()
    columns = [f"|r| 2^{e}" for e in found.size]
    return pd.DataFrame(found.counts, index=found.error, columns=columns).reset_index(
        names="|e| 2^"
    )
