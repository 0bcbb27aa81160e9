"""The colours of the product, light and dark, and what each of them means.

The one table: pages, charts, components and reports take colours from a `Theme`, never from a
literal. Contrast, distance under simulated colour blindness and the lightness of every scale are
computed by tests/test_tokens.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from core.comparison import Verdict
from language import say

Mode = Literal["light", "dark"]
Scale = tuple[str, ...]

EMBER_DECADES = 3.0  # ember and inherited grey run from 1x to 1000x the floor on every page


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """One column of the token table. Fields are colours `#RRGGBB`, scales run from low to high.

    `accent` is for links, focus and selection and never for data; `fault` and `watch` only for
    error that an operator adds; `muted` doubles as the colour of rounding, inherited and
    uncompared. `watch` is the text colour, `watch_mark` the colour of its triangle.
    """

    mode: Mode
    bg: str
    surface_1: str
    surface_2: str
    line: str
    line_strong: str
    text: str
    muted: str
    accent: str
    accent_soft: str
    on_accent: str
    fault: str
    fault_soft: str
    watch: str
    watch_mark: str
    watch_soft: str
    reference: str
    candidate: str
    further: Scale
    ember: Scale
    inherited: Scale
    signed: Scale
    values: Scale


def _stops(colours: str) -> Scale:
    return tuple(colours.split())


LIGHT = Theme(
    mode="light",
    bg="#FFFFFF",
    surface_1="#F6F7F8",
    surface_2="#ECEEF0",
    line="#DDE1E4",
    line_strong="#C3CAD0",
    text="#17202A",
    muted="#5F6B76",
    accent="#0B6477",
    accent_soft="#E4F1F3",
    on_accent="#FFFFFF",
    fault="#A4161A",
    fault_soft="#FBECEA",
    watch="#7D5300",
    watch_mark="#CF7F12",
    watch_soft="#FCF3E3",
    reference="#7B8794",
    candidate="#6A35C0",
    further=("#1F6FB5", "#00795F", "#B2468B", "#8C6D31"),
    ember=_stops("#E8E6E2 #E7CDA4 #E6B170 #E39346 #D97528 #C95B20 #B24528 #963630 #772D33 #611B2C"),
    inherited=("#E8E6E2", "#5A636C"),
    signed=_stops(
        "#00649F #317DB7 #5F98C7 #8AB3D6 #B7CFE5 #F2F0EE #E2C6B4 #D0A385 #BE8259 #AB632B #914900"
    ),
    values=_stops("#292E34 #4F555B #797F85 #A5ACB2 #D4DAE1 #ECF3FA"),
)

DARK = Theme(
    mode="dark",
    bg="#11161B",
    surface_1="#181E24",
    surface_2="#212830",
    line="#2E3740",
    line_strong="#46525D",
    text="#E8ECEF",
    muted="#9AA7B3",
    accent="#5CC4D6",
    accent_soft="#15333A",
    on_accent="#06212A",
    fault="#FF6F5E",
    fault_soft="#3A1E1C",
    watch="#F2CC60",
    watch_mark="#F2CC60",
    watch_soft="#33290F",
    reference="#7C8894",
    candidate="#BC9BFF",
    further=("#6FB1EE", "#45C5A4", "#EE8FC8", "#D1B36B"),
    ember=_stops("#353031 #603336 #843933 #A3442B #BD561D #D16E14 #DE8926 #E7A649 #ECC273 #F4DD96"),
    inherited=("#353031", "#9AA4AE"),
    signed=_stops(
        "#71BFFF #58A2DE #4C84B3 #416787 #35495B #2A2827 #584132 #81583D #AA6F47 #D28751 #FA9E5B"
    ),
    values=_stops("#0B1014 #2E3339 #595E64 #878D93 #B8BEC5 #DDE3EA"),
)

THEMES: Mapping[str, Theme] = {"light": LIGHT, "dark": DARK}


@dataclass(frozen=True, slots=True)
class Mark:
    """A verdict's shape and word. `glyph` is a character, `path` an SVG path in a 12 x 12 box."""

    word: str
    glyph: str
    symbol: str  # Plotly's name of the shape
    path: str
    filled: bool = True
    dash: str = ""


_CIRCLE = "M6 2.5a3.5 3.5 0 1 0 0 7a3.5 3.5 0 1 0 0-7Z"
MARKS: Mapping[Verdict, Mark] = {
    "fault": Mark(say("Fault"), "◆", "diamond", "M6 .8 11.2 6 6 11.2 .8 6Z"),
    "watch": Mark(say("Watch"), "▲", "triangle-up", "M6 1 11.4 10.6H.6Z"),
    "inherited": Mark(say("Inherited"), "→", "triangle-right", "M2 6h6M6 3l3 3-3 3", filled=False),
    "rounding": Mark(say("Rounding"), "●", "circle", _CIRCLE),
    "uncompared": Mark(
        say("Uncompared"), "◌", "circle-open-dot", _CIRCLE, filled=False, dash="1.8 1.6"
    ),
}


def verdict_text(theme: Theme, verdict: Verdict) -> str:
    """Colour of a verdict's word: spent on fault and watch, grey for the rest."""
    return {"fault": theme.fault, "watch": theme.watch}.get(verdict, theme.muted)


def verdict_mark(theme: Theme, verdict: Verdict) -> str:
    """Colour of a verdict's shape and of its share in a bar."""
    return {"fault": theme.fault, "watch": theme.watch_mark}.get(verdict, theme.muted)


def colorscale(stops: Sequence[str]) -> list[list[float | str]]:
    """Evenly spaced stops as Plotly writes a colour scale."""
    last = len(stops) - 1
    return [[i / last, colour] for i, colour in enumerate(stops)]


def ember_position(times_floor: float) -> float:
    """Position in [0, 1] on ember and inherited grey: log scale, 1x to 1000x. NaN stays NaN."""
    if math.isnan(times_floor):
        return math.nan
    if times_floor <= 1:
        return 0.0
    return min(1.0, math.log10(times_floor) / EMBER_DECADES)


def colour_at(stops: Sequence[str], position: float) -> str:
    """Colour between the two nearest stops, mixed channel by channel, at a position in [0, 1]."""
    place = position * (len(stops) - 1)
    low = min(int(place), len(stops) - 2)
    pairs = zip(channels(stops[low]), channels(stops[low + 1]), strict=True)
    mixed = (round(a + (b - a) * (place - low)) for a, b in pairs)
    return "#" + "".join(f"{value:02X}" for value in mixed)


def channels(colour: str) -> tuple[int, int, int]:
    """Red, green and blue of `#RRGGBB`, each 0 to 255."""
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue


def faded(colour: str, opacity: float) -> str:
    """The colour with an opacity, as CSS and Plotly write it."""
    return f"rgba({','.join(map(str, channels(colour)))},{opacity:g})"
