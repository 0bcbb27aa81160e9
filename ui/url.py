"""The address is the state: what each parameter means, how it is read, written and linked.

Path = what (a key of `PAGES`; the empty path is Runs), query = how:

| name | holds |
|---|---|
| c | comparison id |
| t | id of the reference's tensor |
| m | metric id, or `times_floor` |
| at | module path drilled into |
| f | id of a finding |
| sel | slice as text, `0, 2:5` |
| step, rank | the one step or rank shown; absent: all |
| job | comparison being computed (Runs) |
| lang | language, once it was chosen; else the browser's |
| present | 1: presenter (Findings) |

Pages add their own. Ids, never labels or positions. The four of `CARRIED` and the language go along
with every link from page to page. A link of Streamlit's own navigation has no query, so the last
complete address of the session stands in for it; the frame then writes it into the address bar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar
from urllib.parse import urlencode

import streamlit as st

from charts.names import for_markdown
from language import LANGUAGES, Said, _, say, told

T = TypeVar("T")

PAGES: Mapping[str, str] = {
    "runs": say("Runs"),
    "overview": say("Overview"),
    "layers": say("Layers"),
    "tensor": say("Tensor"),
    "findings": say("Findings"),
    "drift": say("Drift"),
    "formats": say("Formats"),
    "many": say("Many runs"),
    "matching": say("Matching"),
    "report": say("Report"),
}
CARRIED = ("c", "m", "step", "rank")
LANGUAGE = "lang"
_SPOKEN = "spoken"  # session key: the language chosen
_LAST = "address"  # session key: the carried parameters of the last page shown
_PENDING = "go"  # session key: address of the page to open next


def get(name: str, default: str | None = None) -> str | None:
    """What the address says, or for a carried parameter of an address without `c`, said last."""
    value = st.query_params.get(name)
    if value is None and name in CARRIED and "c" not in st.query_params:
        value = st.session_state.get(_LAST, {}).get(name)
    return default if value is None else value


def carried() -> dict[str, str]:
    """The parameters that go along from page to page, as they stand now."""
    values = {name: get(name) for name in CARRIED}
    return {name: value for name, value in values.items() if value is not None} | chosen_language()


def chosen_language() -> dict[str, str]:
    """The language as a parameter, when somebody chose one; it then holds for the session."""
    asked = st.query_params.get(LANGUAGE)
    if asked in LANGUAGES:
        st.session_state[_SPOKEN] = asked
    spoken = st.session_state.get(_SPOKEN)
    return {} if spoken is None else {LANGUAGE: spoken}


def language() -> str:
    """Code of the language to speak: the one chosen, else the browser's, else English."""
    chosen = chosen_language().get(LANGUAGE)
    browser = (st.context.locale or "").partition("-")[0].lower()
    return chosen or (browser if browser in LANGUAGES else next(iter(LANGUAGES)))


def remember() -> None:
    """Keeps the carried parameters for an address that comes without them."""
    st.session_state[_LAST] = carried()


def query(**params: object) -> str:
    """`?a=1&b=2` in the given order, None dropped, empty when nothing is left."""
    kept = [(name, str(value)) for name, value in params.items() if value is not None]
    return f"?{urlencode(kept)}" if kept else ""


def link(page: str, **params: object) -> str:
    """Relative address of a page: the carried parameters, overridden and followed by `params`.

    Step and rank belong to a comparison and do not go along to another one.
    """
    if page == "runs":
        return "./" + query(**(chosen_language() | params))
    base = carried()
    if "c" in params and params["c"] != base.get("c"):
        base = {name: value for name, value in base.items() if name in ("m", LANGUAGE)}
    return page + query(**(base | params))


def put(**params: object) -> None:
    """Writes parameters into the address; None removes. In callbacks or before widgets are made."""
    for name, value in params.items():
        if value is not None:
            st.query_params[name] = str(value)
        elif name in st.query_params:
            del st.query_params[name]


def go(page: str, **params: object) -> None:
    """Opens another page as `link` would name it. In the script's body; does not return."""
    go_after(page, **params)
    st.rerun()


def go_after(page: str, **params: object) -> None:
    """Opens another page once the callback that asks for it is done."""
    st.session_state[_PENDING] = link(page, **params)


def pending() -> str | None:
    """Where this session was asked to go, once; the frame's browser component goes there.

    Not `st.switch_page`: that leaves an entry in the browser's history that names the old page with
    the new page's query, and Back would stop at it.
    """
    target = st.session_state.pop(_PENDING, None)
    return None if target is None else str(target)


def choose(
    label: str,
    options: Mapping[str, T],
    *,
    key: str,
    labels: Mapping[str, str] | None = None,
    default: str | None = None,
    style: Literal["select", "segments"] = "select",
    visible: bool = True,
    then: Callable[[], None] | None = None,
    **look: Any,
) -> T:
    """A picker that shows the parameter `key` and edits it; returns the chosen option's value.

    `options` maps what the address carries to values, `labels` to what is shown. A value in the
    address that is not among the options is called out, never silently replaced. `then` runs in the
    callback after the address is written, to drop parameters that the choice makes meaningless.
    """
    names = labels or {}
    asked = get(key)
    chosen = default or next(iter(options))
    if asked is not None and asked in options:
        chosen = asked
    elif asked is not None:
        st.warning(
            _(
                "The link asks for {label} **{asked}**, which is not here. Showing {chosen} "
                "instead.",
                label=label.lower(),
                asked=for_markdown(asked),
                chosen=for_markdown(names.get(chosen, chosen)),
            )
        )
    widget = f"pick-{key}"
    st.session_state[widget] = chosen
    shown: dict[str, Any] = {
        "format_func": lambda option: _label(names.get(option, option)),
        "key": widget,
        "label_visibility": "visible" if visible else "collapsed",
        "on_change": _save,
        "args": (key, widget, then),
    }
    if style == "segments":
        st.segmented_control(label, list(options), required=True, **shown, **look)
    else:
        st.selectbox(label, list(options), **shown, **look)
    return options[chosen]


def _label(text: str) -> str:
    """What was said is told; a name of a dump is shown as it is."""
    return told(text) if isinstance(text, Said) else text


def _save(key: str, widget: str, then: Callable[[], None] | None) -> None:
    put(**{key: st.session_state[widget]})
    if then is not None:
        then()
