"""How much was compared, how it came out, how it was matched, and what is in one run only."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from analysis.coverage_text import oddity_in_words, shares_in_words
from charts.names import for_html
from charts.tokens import MARKS
from core.comparison import Comparison
from core.coverage import Coverage
from core.numbers import count, shape, share
from core.tensors import TensorInfo
from core.words import word
from language import _, listing, say, told
from ui import url
from ui.markup import heading, muted, table, verdict_word

_COLOURS = {
    "fault": "fault",
    "watch": "watch-mark",
    "inherited": "reference",
    "rounding": "line-strong",
}
_ONLY = {
    "reference": say("In the reference only"),
    "candidate": say("In the candidate only"),
}
_PROSE = 600  # characters of a line with names in it
_METHODS = {
    "mapping": say("by your mapping"),
    "exact": say("by name"),
    "normalised": say("by rule"),
    "sequence": say("by order"),
    "fingerprint": say("by weights"),
    "statistics": say("by values"),
}


def draw(comparison: Comparison, pairs: pd.DataFrame) -> None:
    """A bar, a row per verdict, then the tensors in one run only and how pairs were matched."""
    counts = pairs["verdict"].value_counts()
    unmatched = {
        "reference": len(comparison.unmatched_reference),
        "candidate": len(comparison.unmatched_candidate),
    }
    whole = len(pairs) + sum(unmatched.values())
    shares = [*((v, int(counts.get(v, 0))) for v in MARKS), *unmatched.items()]
    bar = "".join(_share(name, n, whole) for name, n in shares if n)
    rows = [
        (verdict_word(v), count(int(counts.get(v, 0))), share(int(counts.get(v, 0)), whole))
        for v in MARKS
    ]
    rows += [(muted(_ONLY[side]), count(n), share(n, whole)) for side, n in unmatched.items() if n]
    st.html(
        f'{heading(_("Coverage"))}<div class="px-bar" aria-hidden="true">{bar}</div>'
        + table(["", "", ""], rows, numeric=(1, 2), label=_("Coverage by verdict"))
        + f'<p class="px-muted">{for_html(_matched(pairs))}</p>'
        + _honesty(comparison.coverage)
    )


def _share(name: str, number: int, whole: int) -> str:
    """One piece of the bar, at least a hundredth of it wide; hatched when nothing was compared."""
    width = f"flex:{max(number, whole / 100):g}"
    if name in _COLOURS:
        return f'<i style="{width};background:var(--px-{_COLOURS[name]})"></i>'
    return f'<i class="px-hatched" style="{width}"></i>'


def _matched(pairs: pd.DataFrame) -> str:
    methods = pairs["match"].value_counts()
    found = [(int(methods.get(method, 0)), words) for method, words in _METHODS.items()]
    said = listing(f"{count(n)} {told(words)}" for n, words in found if n)
    return _("Matched: {methods}", methods=said)


def _honesty(coverage: Coverage | None) -> str:
    """What was compared of the reference, what waits for a word, what is odd about the dumps."""
    if coverage is None:
        return ""
    lines = [_("Compared: {shares_in_words}.", shares_in_words=shares_in_words(coverage))]
    if coverage.suggested:
        lines.append(
            _(
                "{suggested} suggested pairs wait to be accepted.",
                suggested=count(coverage.suggested),
            )
        )
    lines += [_("{what}.", what=oddity_in_words(oddity)) for oddity in coverage.oddities]
    return "".join(f'<p class="px-muted">{for_html(line, _PROSE)}</p>' for line in lines)


def unmatched(comparison: Comparison) -> None:
    """The tensors in one run only, by module and by name; opened by the address."""
    sides = {
        "reference": comparison.unmatched_reference,
        "candidate": comparison.unmatched_candidate,
    }
    total = sum(map(len, sides.values()))
    if not total:
        return
    title = _("{n} tensors in one run only", n=count(total))
    with st.expander(title, expanded=url.get("list") == "unmatched", key="unmatched"):
        if comparison.coverage is not None:
            groups = [
                (told(word(m.side)), m.module, m.tensors) for m in comparison.coverage.unmatched
            ]
            columns = [_("in the"), _("module"), _("tensors")]
            st.dataframe(pd.DataFrame(groups, columns=columns), hide_index=True)
        frame = pd.DataFrame([_line(side, t) for side, ts in sides.items() for t in ts])
        st.dataframe(frame, hide_index=True)


def _line(side: str, tensor: TensorInfo) -> dict[str, str]:
    return {
        _("in the"): told(word(side)),
        _("tensor"): tensor.name,
        _("slot"): tensor.slot_label,
        _("dtype"): tensor.dtype,
        _("shape"): shape(tensor.shape),
    }
