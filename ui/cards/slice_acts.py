"""What the user does in the slice, written into the address."""

from __future__ import annotations

from typing import Any

from analysis import selection
from analysis.selection import Part, Window
from core.comparison import Pair
from ui import url
from ui.cards.worst import the_worst, worst
from ui.frame import View


def follow(act: Any, view: View, pair: Pair, part: Part) -> None:
    """Writes what the user did in the slice into the address. In a callback."""
    shape = pair.shape
    if "mode" in act:
        url.put(view=act["mode"])
    elif "log" in act or "full" in act:
        url.put(**{name: "1" if on else None for name, on in act.items()})
    elif "element" in act:
        url.put(el=", ".join(str(int(i)) for i in act["element"]))
    elif act.get("worst"):
        found = worst(view, pair) or the_worst(view, pair)
        if found:
            index = found[0].index
            url.put(
                sel=selection.around(part, shape, index).text(shape),
                el=", ".join(str(i) for i in index),
            )
    else:
        url.put(sel=changed(part, shape, act).text(shape))


def changed(part: Part, shape: tuple[int, ...], act: dict[str, Any]) -> Part:
    """The part after the user fixed an axis elsewhere, showed other axes, zoomed or fitted."""
    if "axis" in act:
        return selection.moved(part, int(act["axis"]), int(act["index"]))
    if "axes" in act:
        return _other_axes(part, shape, int(act["axes"]["down"]), int(act["axes"]["across"]))
    if part.across is None:
        return part
    spans: dict[str, Any] = act.get("window") or {}
    down, across = (
        None if w is None else Window(w.axis, *_span(spans.get(name), shape[w.axis]))
        for name, w in (("down", part.down), ("across", part.across))
    )
    return Part(part.fixed, down, across)


def _other_axes(part: Part, shape: tuple[int, ...], down: int, across: int) -> Part:
    if down == across:  # the picker was set to the other one's axis: swap them
        before = (part.down.axis if part.down else -1, part.across.axis if part.across else -1)
        down, across = (before[1], before[0]) if -1 not in before else before
    return selection.shown_axes(part, shape, down=down if down >= 0 else None, across=across)


def _span(span: Any, size: int) -> tuple[int, int]:
    if not span:
        return 0, size
    start = min(max(0, int(span[0])), size - 1)
    return start, max(start + 1, min(int(span[1]), size))
