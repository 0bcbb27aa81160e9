"""Why: every hypothesis with the error before and after it is assumed."""

from __future__ import annotations

import math

import streamlit as st

from analysis.findings.texts import title_of
from analysis.views_distributions import axis_curve, concentration
from charts.names import for_html
from charts.profiles import axis_profile, title
from charts.template import CONFIG
from core.comparison import Pair
from core.findings import Finding, Hypothesis
from core.numbers import share, times_floor
from language import _, sentences, told
from ui import slices
from ui.frame import View
from ui.markup import heading, muted, table

_LOW, _HIGH = 0.5, 1e4
_EXPLAINED = 2.0  # times floor: what is left is rounding


def draw(finding: Finding) -> None:
    """The table of hypotheses, best first."""
    st.html(
        heading(
            _("Why: one assumption changed at a time"),
            _("what is left of the error, in units of the floor"),
        )
    )
    if not finding.hypotheses:
        said = _("No known mechanism explains this error. The place is certain, the cause is open.")
        st.html(f'<p class="px-note">{muted(said)}</p>')
        return
    rows = [_row(h, best=n == 0) for n, h in enumerate(finding.hypotheses)]
    head = [_("Hypothesis"), _("before ○ after ●"), _("After"), _("Confidence"), ""]
    st.html(f'<div class="px-why">{table(head, rows, numeric=(2, 3), label=_("Hypotheses"))}</div>')


def runner_up(finding: Finding) -> None:
    """The second best explanation and what separates it from the best."""
    if len(finding.hypotheses) < 2:
        return
    second = finding.hypotheses[1]
    parts = [_("{title}.", title=title_of(second))]
    if not math.isnan(second.after):
        parts = [
            _(
                "{title}: {times} would remain.",
                title=title_of(second),
                times=times_floor(second.after),
            )
        ]
    parts.append(_("Confidence {share}.", share=share(second.confidence, 1)))
    said = told(sentences(parts))
    st.html(f'{heading(_("Runner-up"))}<p class="px-says">{for_html(said, 400)}</p>')


def signature(view: View, finding: Finding) -> None:
    """The finding's error along the axis on which it is least even."""
    numbers = view.table.loc[view.table["tensor"] == finding.tensor, "pair"]
    pair = view.comparison.pairs[int(numbers.iloc[0])] if len(numbers) else None
    if pair is None or pair.stats is None:
        return
    axis = _telling_axis(pair)
    if axis is None:
        return
    profile = pair.stats.axes[axis]
    named = slices.names_of_axes(pair.reference.dims, pair.reference.shape)[axis]
    row = view.table[view.table["tensor"] == finding.tensor].iloc[0]
    figure = axis_profile(
        axis_curve(profile), name=named, floor=float(row["floor"]), theme=view.theme
    )
    said = title(named, concentration(profile))
    st.html(f'<h3 class="px-small">{for_html(said, 200)}</h3>')
    st.plotly_chart(figure, theme=None, key="signature", config=CONFIG, alt=said)


def _telling_axis(pair: Pair) -> int | None:
    """The axis whose worst index stands out most; None for scalars."""
    stats = pair.stats
    assert stats is not None
    found = [
        (concentration(profile).ratio, axis)
        for axis, profile in enumerate(stats.axes)
        if pair.reference.shape[axis] > 1 and axis_curve(profile) is not None
    ]
    return max(found, key=lambda f: (not math.isnan(f[0]), f[0]))[1] if found else None


def _row(hypothesis: Hypothesis, *, best: bool) -> tuple[str, ...]:
    name = for_html(title_of(hypothesis), 200)
    return (
        f"<b>{name}</b>" if best else name,
        _dumbbell(hypothesis),
        times_floor(hypothesis.after),
        share(hypothesis.confidence, 1),
        muted(_outcome(hypothesis)),
    )


def _outcome(hypothesis: Hypothesis) -> str:
    before, after = hypothesis.before, hypothesis.after
    if math.isnan(after):
        return _("by its pattern")
    if after <= _EXPLAINED:
        return _("explains all")
    return _("explains a part") if after < before / 2 else _("no better")


def _dumbbell(hypothesis: Hypothesis) -> str:
    if math.isnan(hypothesis.after) or math.isnan(hypothesis.before):
        return ""
    before, after = _at(hypothesis.before), _at(hypothesis.after)
    low, wide = min(before, after), abs(before - after)
    said = _(
        "{before} before, {after} after",
        before=times_floor(hypothesis.before),
        after=times_floor(hypothesis.after),
    )
    return (
        f'<span class="px-dumbbell" role="img" aria-label="{said}" title="{said}">'
        f'<u style="width:{_at(_EXPLAINED):.1f}%"></u>'
        f'<s style="left:{low:.1f}%;width:{wide:.1f}%"></s>'
        f'<i style="left:{before:.1f}%"></i><b style="left:{after:.1f}%"></b></span>'
    )


def _at(value: float) -> float:
    place = math.log(min(max(value, _LOW), _HIGH) / _LOW) / math.log(_HIGH / _LOW)
    return 100 * place
