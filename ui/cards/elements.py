"""Elements as an HTML table: index, both values, error, ulps apart, and the bits that differ."""

from __future__ import annotations

import math
from collections.abc import Iterable

from analysis.views_elements import Bits, Element
from charts.names import for_html
from core.comparison import Pair
from core.numbers import UNDEFINED, count, element, error, times_floor
from language import _, say, told
from ui import url
from ui.markup import anchor, table

_APART = say("ulp apart")
_HEADS = (
    say("reference"),
    say("candidate"),
    say("error"),
    say("× floor"),
    _APART,
    say("reference bits"),
    say("candidate bits"),
)


def rows_of(found: Iterable[Element], pair: Pair, *, unit: float, head: str) -> str:
    """A table of elements; `unit` is the error that counts as 1x the floor, NaN without one."""
    a, b = pair.reference, pair.candidate
    with_floor = not math.isnan(unit) and unit > 0
    heads = [h for h in _HEADS if with_floor or h != "× floor"]
    rows = [
        [
            _index(each, pair),
            _mono(element(each.reference, a.dtype)),
            _mono(element(each.candidate, b.dtype)),
            _mono(error(each.error)),
            *([_times(each, unit)] if with_floor else []),
            _spaced(UNDEFINED if math.isnan(each.ulps) else count(int(each.ulps))),
            _bits(each.bits[0], each.bits[1]),
            _bits(each.bits[1], each.bits[0]),
        ]
        for each in found
    ]
    shown = [_spaced(told(h)) if h is _APART else told(h) for h in heads]
    return table([head, *shown], rows, numeric=range(1, len(heads) - 1), label=head)


def _index(each: Element, pair: Pair) -> str:
    text = ", ".join(map(str, each.index))
    href = url.link("tensor", t=pair.reference.id, el=text, view=url.get("view"))
    return anchor(href, f"[{text}]", mono=True, title=_("show it in the slice"))


def _times(each: Element, unit: float) -> str:
    return UNDEFINED if math.isnan(each.error) else times_floor(abs(each.error) / unit)


def _spaced(text: str) -> str:
    return f'<span class="px-spaced">{text}</span>'


def _mono(text: str) -> str:
    return f'<span class="px-mono">{for_html(text)}</span>'


def _bits(own: Bits | None, other: Bits | None) -> str:
    """Hexadecimal, then sign, exponent and mantissa apart; what differs is bold and fault coloured.

    Sides of different formats are written without emphasis: their bits do not correspond.
    """
    if own is None:
        return UNDEFINED
    alike = other is not None and other.dtype == own.dtype
    fields = [
        _field(mine, other.fields[i] if alike and other else mine)
        for i, mine in enumerate(own.fields)
    ]
    rounded = _("rounded to {dtype}; the dump holds more", dtype=own.dtype)
    hover = "" if own.exact else f' title="{for_html(rounded)}"'
    return (
        f'<span class="px-mono px-bits"{hover}><i>{own.hexadecimal}</i> {" ".join(fields)}'
        f"{'' if own.exact else ' ≈'}</span>"
    )


def _field(mine: str, other: str) -> str:
    return "".join(m if m == o else f"<b>{m}</b>" for m, o in zip(mine, other, strict=True))
