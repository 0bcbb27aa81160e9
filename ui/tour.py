"""The tour: ten steps over a sample, five minutes. The step is in the address, keys walk it.

Each step belongs to a page and points at a part of it; whoever leaves, or follows any other link,
is out of the tour and where they were.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import streamlit as st

from charts.names import for_html
from core.errors import ExplorerError
from language import _, say, told
from store import workspace as store
from ui import url

STEP = "tour"
SAMPLE = "decoder-fault"


@dataclass(frozen=True, slots=True)
class Step:
    """One stop: the page, the key of the container it points at, what is said there."""

    page: str
    part: str
    title: str
    text: str
    params: Mapping[str, str] = field(default_factory=dict)


STEPS: Sequence[Step] = (
    Step("runs", "guide", say("Two runs that should agree"), say(
        "One model ran on two machines, and the numbers differ. Each run left a dump: what every "
        "operator was given and gave back. This page takes two dumps; for the tour a sample will "
        "do.")),
    Step("runs", f"sample-{SAMPLE}", say("A sample with a planted fault"), say(
        "In this small decoder one operator of the candidate is wrong. Press Open in the sample; "
        "the comparison takes some seconds, and the tour goes on there.")),
    Step("overview", "verdict", say("The answer comes first"), say(
        "One sentence says whether this is rounding or a fault, where it begins, and on which "
        "side. Everything below is its evidence.")),
    Step("overview", "path", say("Error along the model"), say(
        "A dot is an output, from first to last. Height is the error in multiples of what rounding "
        "explains; the grey band is rounding itself. The diamond is where the runs part, and what "
        "follows merely inherits. Click a dot to open its tensor.")),
    Step("overview", "next", say("What to look at, and how much was compared"), say(
        "The five places worth opening, worst first. Beside them: how many pairs were compared, "
        "and what the two dumps say about themselves, differences in bold.")),
    Step("layers", "heat", say("Grey until proven guilty"), say(
        "Operators down, layers across. A cell is coloured only where the operator adds error of "
        "its own; inherited error stays grey. Choose other axes and colours above.")),
    Step("layers", "operators-head", say("Every tensor, as a list"), say(
        "Sort by any column, filter by name, class, verdict and more. Each filter is in the "
        "address, so a link shows a colleague what you see.")),
    Step("tensor", "slice", say("Down to one element"), say(
        "Reference, candidate and error side by side, under one cursor. The pattern of the error "
        "is the first clue; below are both values, bit by bit.")),
    Step("findings", "finding-actions", say("Why, and how sure"), say(
        "The operator was computed again in float64 from each run's own inputs, so one side alone "
        "is found guilty. Causes that leave nothing unexplained come first, with what to check "
        "next.")),
    Step("report", "", say("Take it to whoever can mend it"), say(
        "One HTML file that needs no server, or PDF, Markdown, a workbook; with names hashed "
        "where they must not leave. That is all. Now drop your own dumps on Runs.")),
)  # fmt: skip


def current() -> int | None:
    """Number of the step the address asks for, from 1; None outside of the tour."""
    asked = url.get(STEP) or ""
    return int(asked) if asked.isdecimal() and 1 <= int(asked) <= len(STEPS) else None


def start() -> str:
    """Address of the first step."""
    return url.link("runs", **{STEP: 1})


def after_sample() -> dict[str, int]:
    """What the address of a sample's comparison carries while the tour is on."""
    return {} if current() is None else {STEP: 3}


def draw(opened: str | None = None) -> None:
    """The panel of the step, with a frame around the part it speaks of; nothing outside the tour.

    `opened` is the comparison of the sample, where the page knows one.
    """
    number = current()
    if number is None:
        return
    step = STEPS[number - 1]
    mark = f"<style>.st-key-{step.part}{{{_FRAME}}}</style>" if step.part else ""
    links = f"{_back(number)}{_next(number, opened)}{_link(_left(), _('Leave'), 'Escape')}"
    said = _("Step {n} of {total}", n=number, total=len(STEPS))
    st.html(
        f'<aside class="px-tour" aria-label="{for_html(_("Tour"))}" '
        f'data-part="{html.escape(step.part)}"><p class="px-muted">{for_html(said)}</p>'
        f"<h2>{for_html(told(step.title))}</h2>"
        f"<p>{for_html(told(step.text), 1000)}</p>"
        f"<p class='px-tour-links'>{links}</p></aside>{mark}"
    )


_FRAME = "outline:2px solid var(--px-accent);outline-offset:6px;border-radius:4px"


def address(number: int, opened: str | None = None) -> str | None:
    """Where a step is shown; None before the first, after the last, and without a comparison."""
    if not 1 <= number <= len(STEPS):
        return None
    step, compared = STEPS[number - 1], url.get("c") or opened
    if step.page == "runs":
        return url.link("runs", **{STEP: number})
    if compared is None:
        return None
    more = {"t": _tensor(compared)} if step.page == "tensor" else {}
    return url.link(step.page, c=compared, **more, **step.params, **{STEP: number})


def _tensor(compared: str) -> str | None:
    """The tensor at which the runs part."""
    workspace = store.default()
    try:
        first = workspace.judgement(compared).first_divergence
        return None if first is None else str(workspace.table(compared)["tensor"].iat[first])
    except ExplorerError:
        return None


def _back(number: int) -> str:
    href = address(number - 1)
    return _link(href, _("Back"), "ArrowLeft") if href else ""


def _next(number: int, opened: str | None) -> str:
    if number == len(STEPS):
        return _link(url.link("runs"), _("To Runs"), "ArrowRight")
    href = address(number + 1, opened)
    return _link(href, _("Next"), "ArrowRight") if href else ""


def _link(href: str, word: str, key: str) -> str:
    """A link that a key follows as well."""
    return (
        f'<a class="px-go px-button" data-key="{key}" href="{html.escape(href)}">'
        f"{for_html(word)}</a>"
    )


def _left() -> str:
    """The same view without the tour."""
    kept = {key: value for key, value in st.query_params.items() if key != STEP}
    return url.query(**kept) or "?"
