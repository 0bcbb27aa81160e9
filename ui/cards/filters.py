"""The filters of a list of pairs: chosen in a popover, kept in the address, said in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pandas as pd
import streamlit as st

from analysis.filters import CHOICES, Filter, from_text, options, to_text
from charts.names import for_html, plain
from core.words import head, word
from language import _, say, told
from ui import url
from ui.markup import anchor

WORDS, PATTERN = "q", "re"
PARAMETERS = (WORDS, PATTERN, *CHOICES)
_EXAMPLE = r"layers\.(1|2)\..*proj"
_RESTART = ("p", "span")  # what a new filter makes meaningless
_METHODS: Mapping[str, str] = {
    "mapping": say("your mapping"),
    "exact": say("equal names"),
    "normalised": say("names by rule"),
    "sequence": say("order"),
    "fingerprint": say("equal weights"),
    "statistics": say("similar values"),
}


def asked() -> Filter:
    """The filter of the address."""
    chosen = {name: from_text(url.get(name) or "") for name in CHOICES}
    return Filter(
        words=url.get(WORDS) or "",
        pattern=url.get(PATTERN) or "",
        chosen={name: values for name, values in chosen.items() if values},
    )


def choose(rows: pd.DataFrame) -> Filter:
    """The field for words and the popover with all other conditions; `rows` give its options."""
    found = asked()
    more = found.conditions - bool(found.words.strip())
    label = _("Filters ({n})", n=more) if more else _("Filters")
    with st.popover(label, key="filters", on_change="rerun") as opened:
        if opened.open:
            _pattern(found)
            for name in CHOICES:
                _choice(rows, name, found)
    st.session_state["filter-words"] = found.words
    st.text_input(
        _("Filter"), key="filter-words", placeholder=_("Filter: name, class, dtype, verdict"),
        label_visibility="collapsed", width=230, on_change=_save, args=(WORDS, "filter-words"),
    )  # fmt: skip
    return found


def in_words(found: Filter, without: Callable[[str], str]) -> str:
    """Every condition as a phrase with a link that drops it (HTML); `without` gives the address."""
    return "".join(
        f'<span class="px-condition">{for_html(phrase, 300)} '
        + anchor(without(name), "✕", title=_("Drop: {condition}", condition=plain(phrase, 200)))
        + "</span>"
        for name, phrase in _phrases(found)
    )


def _phrases(found: Filter) -> Iterator[tuple[str, str]]:
    if found.words.strip():
        yield WORDS, _("matching “{words}”", words=found.words)
    if found.pattern:
        yield PATTERN, _("name fits {pattern}", pattern=found.pattern)
    templates = _templates()
    for name, values in found.chosen.items():
        shown = _(" or ").join(_label(name, value) for value in values)
        yield name, templates[name].replace("{values}", shown)


def _templates() -> Mapping[str, str]:
    return {
        "verdict": _("verdict {values}"),
        "class": _("class {values}"),
        "op": _("call {values}"),
        "pass": _("pass {values}"),
        "dtype": _("dtype {values}"),
        "match": _("matched by {values}"),
    }


def _label(name: str, value: str) -> str:
    if name == "verdict":
        return told(head(value))
    if name == "pass":
        return told(word(value))
    if name == "match" and value in _METHODS:
        return told(_METHODS[value])
    return plain(value, 80)


def _labels() -> Mapping[str, str]:
    return {
        "verdict": _("Verdict"), "class": _("Class"), "op": _("Functional call"),
        "pass": _("Pass"), "dtype": _("Dtype of either side"), "match": _("Method of match"),
    }  # fmt: skip


def _pattern(found: Filter) -> None:
    st.session_state["filter-pattern"] = found.pattern
    st.text_input(
        _("Name, as a regular expression"), key="filter-pattern",
        placeholder=_EXAMPLE, on_change=_save, args=(PATTERN, "filter-pattern"),
    )  # fmt: skip


def _choice(rows: pd.DataFrame, name: str, found: Filter) -> None:
    """A picker of several values, where rows have several; what the address asks for stays."""
    chosen = list(found.chosen.get(name, ()))
    offered = list(dict.fromkeys([*options(rows, name), *chosen]))
    if len(offered) < 2 and not chosen:
        return
    widget = f"filter-{name}"
    st.session_state[widget] = chosen
    st.multiselect(
        _labels()[name], offered, key=widget, format_func=lambda value: _label(name, value),
        placeholder=_("any"), on_change=_save_several, args=(name, widget),
    )  # fmt: skip


def _save(name: str, widget: str) -> None:
    url.put(**{name: st.session_state[widget] or None}, **dict.fromkeys(_RESTART))


def _save_several(name: str, widget: str) -> None:
    url.put(**{name: to_text(st.session_state[widget]) or None}, **dict.fromkeys(_RESTART))
