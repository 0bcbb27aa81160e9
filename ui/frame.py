"""The frame around every page: style, context bar, errors, foot.

`with frame.page("Layers") as view:` gives a page what its address asks for, already looked up.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from charts.names import for_html
from charts.tokens import Theme
from core.comparison import Comparison, Judgement
from core.errors import ExplorerError, NotHereError
from language import _
from store import workspace as store
from ui import browser, context, style, tools, tour, url
from ui.markup import anchor, muted
from ui.navigation import current_theme


@dataclass(frozen=True, slots=True)
class View:
    """What the address asks for.

    `table` holds every pair, `rows` those of the chosen step and rank (all when none is chosen).
    `metric` is a column of both: `times_floor` or a metric id. Tables are read-only.
    """

    comparison: Comparison
    judgement: Judgement
    table: pd.DataFrame
    rows: pd.DataFrame
    workspace: store.Workspace
    theme: Theme
    step: int | None
    rank: int | None
    metric: str


@contextmanager
def page(title: str) -> Iterator[View]:
    """Draws the context bar, hands over the view, and explains what the user can put right.

    The one place where errors meant for the user are caught; everything else is a bug and crashes.
    """
    del title  # the navigation names the page; kept in the call so that a page reads well
    views: list[View] = []
    with shell():
        views.append(_view())
        url.remember()
        tour.draw()
    if not views:
        st.stop()  # the edge has explained why
    with _edge():
        yield views[0]


@contextmanager
def shell() -> Iterator[None]:
    """Style, in-app links and the edge for errors, for a page without a comparison."""
    style.apply(current_theme())
    browser.frame()
    tools.draw()
    with _edge():
        yield


@contextmanager
def _edge() -> Iterator[None]:
    try:
        yield
    except ExplorerError as error:
        explain(error)


def _view() -> View:
    asked = url.get("c")
    if asked is None:
        raise NotHereError(
            _("No comparison is open."), _("Open one on Runs, or start a new one there.")
        )
    workspace = store.default()
    comparison, judgement = workspace.comparison(asked), workspace.judgement(asked)
    table = workspace.table(asked)
    chosen = context.bar(comparison, table)
    return View(
        comparison=comparison,
        judgement=judgement,
        table=table,
        rows=context.narrowed(table, chosen.step, chosen.rank),
        workspace=workspace,
        theme=current_theme(),
        step=chosen.step,
        rank=chosen.rank,
        metric=chosen.metric,
    )


def explain(error: ExplorerError) -> None:
    """What was asked, what is missing, what to do; never a stack trace."""
    with st.container(key="explain"):
        st.html(
            f'<div class="px-explain" role="alert"><h1>{for_html(error.message, 1000)}</h1>'
            f"<p>{for_html(error.hint, 1000)}</p>"
            f"<p>{anchor(url.link('runs'), _('Go to Runs'))}</p></div>"
        )


def show(view: View, **options: str) -> str:
    """The shell command that prints the comparison of the view; empty options are left out."""
    return command("show", view.comparison.id, **options)


def command(*words: str, **options: str) -> str:
    """A shell command of the product; empty options are left out."""
    given = [part for name, value in options.items() if value for part in (f"--{name}", value)]
    return shlex.join(["python", "cli.py", *words, *given])


def foot(command: str) -> None:
    """The shell command that gives the same answer as the page."""
    with st.container(horizontal=True, vertical_alignment="center", key="foot"):
        st.html(muted(_("Same answer from a shell")), width="content")
        st.code(command, language=None, width="content")
