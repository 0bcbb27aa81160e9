"""The chosen tensor's distribution through layers and steps, and what its formats do to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from analysis.views_ridges import (
    bands,
    health,
    lasting,
    moved_from,
    outlier_channels,
    pattern,
    ridges,
)
from charts.names import for_html
from charts.ridges import MOST, quantile_bands, ridge_height, ridgeline
from charts.template import CONFIG
from core.numbers import count, error, share
from core.stats import PairStats
from core.words import word
from language import _, told
from metrics import METRICS
from ui import chart, url
from ui.frame import View
from ui.kept import kept
from ui.markup import anchor, heading, key, muted, table


@dataclass(frozen=True, slots=True)
class Family:
    """Tensors that are one and the same through the layers, or through the steps."""

    rows: pd.DataFrame
    stats: tuple[PairStats, ...]
    labels: tuple[str, ...]

    @property
    def tensors(self) -> tuple[str, ...]:
        """Their ids."""
        return tuple(str(t) for t in self.rows["tensor"])


def draw(view: View, chosen: int, extra: Mapping[int, PairStats]) -> None:
    """Ridgeline over layers and quantile bands, then saturation and outlier channels."""
    if chosen < 0:
        return
    layers, steps = kept(
        view, "families",
        lambda: (_family(view, chosen, extra, along="block"),
                 _family(view, chosen, extra, along="step")),
        chosen, len(extra),
    )  # fmt: skip
    if not layers.stats:
        return
    left, right = st.columns([1.2, 1], gap="medium")
    with left:
        _ridges(view, chosen, layers)
    with right:
        _bands(view, layers, steps)
    _health(layers)


def _family(view: View, chosen: int, extra: Mapping[int, PairStats], *, along: str) -> Family:
    """The chosen tensor's counterparts; a step apart they have the same operator."""
    row = view.table.iloc[chosen]
    table = view.table[(view.table["slot"] == row["slot"]) & (view.table["call"] == row["call"])]
    if along == "step":
        alike = table["operator"] == row["operator"]
        fixed: tuple[str, ...] = ("rank",)
    else:
        wanted = pattern(str(row["operator"]))
        alike = table["operator"].astype(str).map(pattern) == wanted
        fixed = ("step", "rank")
    for name in fixed:
        alike &= table[name].isna() if pd.isna(row[name]) else table[name] == row[name]
    rows = table[alike]
    rows = rows.sort_values("step", kind="stable") if along == "step" else rows
    found = _held(view, _thinned(rows, chosen), extra)
    if along == "step":
        labels = tuple("–" if pd.isna(s) else str(int(s)) for s in found[0]["step"])
    else:
        labels = tuple(_differing([str(o) for o in found[0]["operator"]]))
    return Family(found[0], found[1], labels)


def _held(
    view: View, rows: pd.DataFrame, extra: Mapping[int, PairStats]
) -> tuple[pd.DataFrame, tuple[PairStats, ...]]:
    stats = {int(n): extra.get(int(n)) or view.comparison.pairs[int(n)].stats for n in rows["pair"]}
    kept = rows[[stats[int(n)] is not None for n in rows["pair"]]]
    return kept, tuple(s for s in stats.values() if s is not None)


def _thinned(rows: pd.DataFrame, chosen: int) -> pd.DataFrame:
    if len(rows) <= MOST:
        return rows
    kept = set(np.linspace(0, len(rows) - 1, MOST - 1).astype(int))
    kept.add(int(np.flatnonzero(rows["pair"].to_numpy() == chosen)[0]))
    return rows.iloc[sorted(kept)]


def _differing(names: Sequence[str]) -> list[str]:
    """What tells operators of one pattern apart: their numbers."""
    split = [name.split(".") for name in names]
    if len({len(parts) for parts in split}) != 1 or len(split) < 2:
        return list(names)
    open_ = [i for i in range(len(split[0])) if len({parts[i] for parts in split}) > 1]
    return [".".join(parts[i] for i in open_) for parts in split]


def _ridges(view: View, chosen: int, layers: Family) -> None:
    aside = _("of {n} tensors alike, first at the top", n=count(len(layers.stats)))
    st.html(heading(_("Ridgeline over layers"), aside))
    symlog = (url.get("scale") or "linear") != "linear"
    drawn = kept(
        view, "ridges",
        lambda: ridgeline(
            ridges(layers.stats, symlog=symlog), names=layers.labels, tensors=layers.tensors,
            chosen=str(view.table.iloc[chosen]["tensor"]), theme=view.theme,
        ),
        chosen, len(layers.stats),
    )  # fmt: skip
    chart.clickable(drawn, key="ridges", on_click=_show, alt=_("Ridgeline over layers"))


def _bands(view: View, layers: Family, steps: Family) -> None:
    keys = f"<span>{key('reference')}{told(word('reference'))}</span>"
    keys += f"<span>{key('candidate')}{told(word('candidate'))}</span>"
    several = len(steps.stats) > 1
    family = steps if several else layers
    title = _("Quantiles over steps") if several else _("Quantiles over layers")
    st.html(heading(title, _("1, 25, 50, 75 and 99 %"), keys))
    reference, candidate = bands(family.stats)
    drawn = quantile_bands(
        reference, candidate, names=family.labels, title=_("step") if several else _("layer"),
        theme=view.theme, height=min(360, ridge_height(len(layers.labels))),
    )  # fmt: skip
    st.plotly_chart(drawn, theme=None, key="bands", config=CONFIG, alt=title)
    if several:
        st.html(f'<p class="px-note">{for_html(_between(steps))}</p>')
    else:
        words = _("These dumps hold one step of it; with several, the bands run over the steps.")
        st.html(f'<p class="px-note">{for_html(words)}</p>')


def _between(steps: Family) -> str:
    """How far each side moved by itself from the first step to the last."""
    name = url.get("drift") or "js_divergence"
    metric = METRICS.get(name) or METRICS["js_divergence"]
    ours, theirs = moved_from(steps.stats[0], steps.stats[-1])
    return _(
        "From step {first} to step {last} the reference itself moved by {a}, the candidate by {b} "
        "({metric}).",
        first=steps.labels[0], last=steps.labels[-1], a=error(metric(ours)),
        b=error(metric(theirs)), metric=told(metric.label),
    )  # fmt: skip


def _health(layers: Family) -> None:
    """Saturation, subnormals, peaks and outlier channels of each layer."""
    channels = [outlier_channels(stats) for stats in layers.stats]
    st.html(heading(_("Saturation and outlier channels"), _said(lasting(channels), len(channels))))
    heads = [
        _("Layer"), _("Saturated, reference"), _("candidate"), _("Subnormal, reference"),
        _("candidate"), _("Peak / RMS, reference"), _("candidate"),
        _("Outlier channels of the reference"),
    ]  # fmt: skip
    rows = [_health_row(layers, k, stats, channels[k]) for k, stats in enumerate(layers.stats)]
    st.html(table(heads, rows, numeric=range(1, 7), label=_("Saturation and outlier channels")))
    words = _(
        "Saturated: at the largest value of the format. Subnormal: below its smallest normal "
        "value. An outlier channel has more than 6 times the median channel's RMS along the last "
        "axis; the statistics keep channels for the reference alone."
    )
    st.html(f'<p class="px-note">{for_html(words, 600)}</p>')


def _health_row(
    layers: Family, k: int, stats: PairStats, channels: Mapping[int, float]
) -> list[str]:
    a, b = health(stats.reference), health(stats.candidate)
    tensor = layers.tensors[k]
    named = ", ".join(f"{i} ({ratio:.0f}×)" for i, ratio in list(channels.items())[:6])
    more = len(channels) - 6
    named = _("{named} and {n} more", named=named, n=more) if more > 0 else named
    return [
        anchor(url.link("tensor", t=tensor), layers.labels[k], mono=True, title=tensor),
        share(a.saturated, 1), share(b.saturated, 1), share(a.subnormal, 1),
        share(b.subnormal, 1), error(a.peak), error(b.peak), for_html(named) or muted("–"),
    ]  # fmt: skip


def _said(found: Sequence[tuple[int, int]], layers: int) -> str:
    if not found:
        return _("no channel stands out in several layers")
    index, n = found[0]
    return _(
        "channel {index} stands out in {n} of {layers} layers", index=index, n=n, layers=layers
    )


def _show(customdata: Any) -> None:
    url.put(t=customdata[0])
