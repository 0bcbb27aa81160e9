"""What stands at the right end of every screen's top: the language, and the list of keys."""

from __future__ import annotations

import html
from collections.abc import Sequence
from urllib.parse import urlencode

import streamlit as st

import language
from charts.names import for_html
from language import LANGUAGES, _
from ui import url

_GO = {"o": "overview", "l": "layers", "t": "tensor", "f": "findings", "d": "drift", "r": "runs"}


def draw() -> None:
    """Languages as links that keep the view, and the button that lists the keys."""
    with st.container(key="tools"):
        st.html(
            f'<nav class="px-tools" aria-label="{for_html(_("Language"))}">{_languages()}'
            f'<button type="button" class="px-help" aria-label="{for_html(_("Keys"))}">?</button>'
            "</nav>"
        )


def keys() -> dict[str, str]:
    """Where `g` and a letter go."""
    return {letter: url.link(page) for letter, page in _GO.items()}


def help_rows() -> Sequence[tuple[str, str]]:
    """The keys and what they do, for the list that `?` opens."""
    return (
        ("/", _("find any module or tensor")),
        ("j  k", _("next, previous finding")),
        ("g o", _("Overview")),
        ("g l", _("Layers")),
        ("g t", _("Tensor")),
        ("g f", _("Findings")),
        ("g d", _("Drift")),
        ("g r", _("Runs")),
        ("u", _("up one level")),
        ("w", _("cursor to the worst element")),
        ("[  ]", _("previous, next slice")),
        ("← ↑ → ↓", _("move the cursor by an element")),
        ("⇧ ← ↑ → ↓", _("move the view by a quarter")),
        ("+  −  0", _("zoom in, zoom out, whole slice")),
        ("y", _("copy the link")),
        ("p", _("present the findings")),
        ("esc", _("leave the presenter")),
        ("?", _("this list")),
    )


def _languages() -> str:
    return "".join(_language(code, name) for code, name in LANGUAGES.items())


def _language(code: str, name: str) -> str:
    if code == language.current():
        return f'<span lang="{code}" aria-current="true">{name}</span>'
    query = urlencode([*_asked(), (url.LANGUAGE, code)])
    return f'<a class="px-go" lang="{code}" href="?{html.escape(query)}">{name}</a>'


def _asked() -> list[tuple[str, str]]:
    """The address as it stands, without the language."""
    return [(key, value) for key, value in st.query_params.items() if key != url.LANGUAGE]
