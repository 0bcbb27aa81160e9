"""How names from dumps are written. They are untrusted text: all that is shown passes here.

What was said by `say` is told here, in the language of whom it is shown to.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Sequence

from language import Said, _, told

LIMIT = 120
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&=])")
_NUMBER = re.compile(r"\d+")


def plain(name: str, limit: int = LIMIT) -> str:
    """The name without control and bidirectional-format characters, cut at `limit` characters."""
    text = told(name) if isinstance(name, Said) else name
    if text.isascii() and text.isprintable():  # as nearly all are
        return text if len(text) <= limit else text[: limit - 1] + "…"
    kept = "".join(c for c in text if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp"))
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


def for_html(name: str, limit: int = LIMIT) -> str:
    """Safe inside HTML text and attributes, and in Plotly's text, which reads some tags."""
    return html.escape(plain(name, limit))


def for_markdown(name: str, limit: int = LIMIT) -> str:
    """Shown letter by letter where Streamlit reads Markdown (labels, captions, titles)."""
    return _MARKDOWN.sub(r"\\\1", plain(name, limit))


def common_prefix(paths: Sequence[str]) -> str:
    """The leading dotted segments all paths share, with the dot: `model.` or nothing.

    Neither the last segment of a path nor the name before a number is part of it: what is left
    after it is never empty and never starts with a bare index.
    """
    if not paths:
        return ""
    split = [path.split(".") for path in (min(paths), max(paths))]
    shared = 0
    for first, last in zip(split[0][:-1], split[1][:-1], strict=False):
        if first != last:
            break
        shared += 1
    while shared and any(segments[shared].isdigit() for segments in split):
        shared -= 1
    return "".join(f"{segment}." for segment in split[0][:shared])


def shorten(path: str, limit: int = 36) -> str:
    """Drops whole segments from the middle, keeping the last two and any number.

    `layers.17.mlp.experts.gate_proj.input` becomes `layers.17…gate_proj.input`.
    """
    segments = path.split(".")
    middle = range(1, len(segments) - 2)
    droppable = [i for i in middle if not segments[i].isdigit()]
    dropped: set[int] = set()
    for index in reversed(droppable):
        if len(_joined(segments, dropped)) <= limit:
            break
        dropped.add(index)
    return _joined(segments, dropped)


def _joined(segments: Sequence[str], dropped: set[int]) -> str:
    text = ""
    for index, segment in enumerate(segments):
        if index in dropped:
            text = text.removesuffix("…") + "…"
        else:
            text += segment if not text or text.endswith("…") else f".{segment}"
    return text


def pattern(paths: Iterable[str]) -> str:
    """Index runs collapsed: `layers.0–31.mlp.down_proj` for the same path in every layer.

    Paths that differ in more than numbers come back as the first one and how many more there are.
    """
    names = list(dict.fromkeys(paths))
    shapes = {_NUMBER.sub("#", name) for name in names}
    if not names or len(names) == 1 or len(shapes) > 1:
        more = len(names) - 1
        return _("{name} and {n} more", name=names[0], n=more) if more > 0 else "".join(names)
    columns = list(zip(*(map(int, _NUMBER.findall(name)) for name in names), strict=True))
    ranges = iter(_range(column) for column in columns)
    return _NUMBER.sub(lambda _found: next(ranges), names[0])


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}–{high}"
