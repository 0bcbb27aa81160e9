"""The slice of a pair with its pickers, and the element picked in it. Its state is the address."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from analysis import selection
from analysis.selection import Part
from analysis.views import HEIGHT, WIDTH
from analysis.views_cut import DIRECT, elements_of, whole, widened
from charts.names import for_html
from core.comparison import Pair
from core.errors import ExplorerError, NotHereError, SelectionError
from core.numbers import count
from core.stats import PairStats
from language import _, told
from metrics.formats import FORMATS
from ui import slices, url
from ui.cards import inspector, slice_acts
from ui.cards.tensor import Subject
from ui.cards.values import names, rms
from ui.cards.worst import worst_index
from ui.frame import View

POLL_S = 1.0


@st.fragment  # type: ignore[untyped-decorator]
def draw(view: View, subject: Subject) -> None:
    """Three linked images and the picked element. Runs alone when only the slice changes."""
    with explained():
        _draw(view, subject)


@contextmanager
def explained() -> Iterator[None]:
    """Says in the part's own place what the user can put right.

    A fragment runs without the frame around it, and a slice that does not fit, or a dump that is
    gone, leaves the rest of the page true.
    """
    try:
        yield
    except ExplorerError as error:
        st.html(
            f'<div class="px-part" role="alert"><h3>{for_html(error.message, 1000)}</h3>'
            f"<p>{for_html(error.hint, 1000)}</p></div>"
        )


def _draw(view: View, subject: Subject) -> None:
    pair, stats = subject.pair, subject.pair.stats
    if stats is None:
        return
    shape = pair.shape
    picked, wrong = _asked(shape)
    part = widened(_part(shape, stats, picked), shape, HEIGHT, WIDTH)
    try:
        seen = view.workspace.slice_view(
            view.comparison.id, whole=whole(part, shape).text(shape),
            huge=elements_of(part) > DIRECT, selection=part.text(shape), rms=rms(stats),
            **names(pair),
        )  # fmt: skip
    except NotHereError as gone:
        _thumbnail(view, subject, stats, gone)
        return
    slices.draw(
        seen, _scene(subject, stats, part, picked), theme=view.theme, key="slice",
        on_act=lambda act: slice_acts.follow(act, view, pair, part),
    )  # fmt: skip
    if seen.seen < seen.elements:
        st.fragment(_waiting, run_every=POLL_S)(view, pair, part)
    inspector.draw(view, pair, picked, wrong)


def _waiting(view: View, pair: Pair, part: Part) -> None:
    """Looks whether every element was read by now, and draws the page again when they are."""
    shape, stats = pair.shape, pair.stats
    if stats is None:
        return
    seen = view.workspace.slice_view(
        view.comparison.id, whole=whole(part, shape).text(shape), huge=True,
        selection=part.text(shape), rms=rms(stats), **names(pair),
    )  # fmt: skip
    if seen.seen == seen.elements:
        st.rerun()
    st.html(f'<p class="px-note" role="status">{for_html(_reading(seen.elements), 300)}</p>')


def _reading(elements: int) -> str:
    return _(
        "All {elements} elements are being read for exact block maxima; this picture is a sample "
        "until then.",
        elements=count(elements),
    )


def part_of(pair: Pair) -> Part:
    """The slice of a compared pair that is on screen."""
    assert pair.stats is not None
    return _part(pair.shape, pair.stats, _asked(pair.shape)[0])


def _part(shape: tuple[int, ...], stats: PairStats, picked: tuple[int, ...] | None) -> Part:
    """The slice the address names, else the one through the picked or the worst element."""
    asked = url.get("sel")
    if asked is not None:
        return selection.parse(asked, shape)
    return selection.default(shape, picked if picked is not None else worst_index(shape, stats))


def _asked(shape: tuple[int, ...]) -> tuple[tuple[int, ...] | None, str]:
    """The element the address names, or why it names none."""
    try:
        return _picked(shape), ""
    except SelectionError as error:
        return None, f"{told(error.message)} {told(error.hint)}"


def _picked(shape: tuple[int, ...]) -> tuple[int, ...] | None:
    asked = url.get("el")
    if asked is None:
        return None
    part = selection.parse(asked, shape)
    if part.across is not None:
        raise SelectionError(
            _("{asked!r} names more than one element.", asked=asked), _("Write one index per axis.")
        )
    return part.index(0, 0)


def _scene(
    subject: Subject, stats: PairStats, part: Part, picked: tuple[int, ...] | None
) -> slices.Scene:
    tensor, candidate = subject.pair.reference, subject.pair.candidate
    floor = float(subject.row["floor"])
    unit = floor * rms(stats)
    mode = url.get("view") or "floor"
    known = FORMATS.get(stats.dtype)
    cursor = picked if picked is not None else worst_index(tensor.shape, stats)
    return slices.Scene(
        shape=tensor.shape,
        dims=slices.names_of_axes(tensor.dims, tensor.shape),
        dtypes=(tensor.dtype, candidate.dtype),
        ulp_dtype=stats.dtype,
        part=part,
        unit=unit if math.isfinite(unit) and unit > 0 else None,
        relative_from=known.unit_roundoff if known and known.unit_roundoff else 1e-3,
        cursor=cursor,
        mode=mode if mode in slices.MODES else "floor",
        worst=stats.equal < stats.count,
        log=url.get("log") == "1",
        full=url.get("full") == "1",
    )


def _thumbnail(view: View, subject: Subject, stats: PairStats, gone: NotHereError) -> None:
    """The picture kept with a comparison whose dumps are not here; without one, the error."""
    small = view.workspace.thumbnail(view.comparison.id, subject.number)
    if small is None:
        raise gone
    words = _("This is the small picture that was saved with the comparison.")
    st.html(f'<p class="px-note">{for_html(gone.message, 1000)} {words}</p>')
    part = selection.parse(small.selection, subject.pair.shape)
    slices.draw(
        small.view, _scene(subject, stats, part, None), theme=view.theme, key="slice",
        on_act=lambda act: url.put(view=act["mode"]) if "mode" in act else None,
    )  # fmt: skip
