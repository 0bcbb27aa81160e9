"""Which part of a tensor is on screen, as the text that links and commands carry.

One item per axis: an index fixes the axis, `:` or `start:stop` shows it. The first shown axis runs
down and the second across; a leading `y` or `x` says otherwise: `0, 9, :, :`, `0, x:, y10:90`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.errors import SelectionError
from language import say

_ITEM = re.compile(r"(?P<way>[yx])?(?:(?P<index>[+-]?\d+)|(?P<start>\d*):(?P<stop>\d*))")


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch [start, stop) of one axis."""

    axis: int
    start: int
    stop: int

    @property
    def length(self) -> int:
        """Number of elements along the axis."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a tensor with at most two axes left.

    `fixed` holds one index per axis, None on the shown ones. With `across` alone the part is a
    vector, with neither it is one element.
    """

    fixed: tuple[int | None, ...]
    down: Window | None = None
    across: Window | None = None

    @property
    def selection(self) -> tuple[int | slice, ...]:
        """The same as `Run.read` takes it: shown axes keep the tensor's order."""
        items: list[int | slice] = [0 if at is None else at for at in self.fixed]
        for window in (self.down, self.across):
            if window is not None:
                items[window.axis] = slice(window.start, window.stop)
        return tuple(items)

    @property
    def transposed(self) -> bool:
        """Whether the axis that runs down comes after the one that runs across."""
        return bool(self.down and self.across and self.down.axis > self.across.axis)

    def index(self, row: int, column: int) -> tuple[int, ...]:
        """The tensor's index of a place in the part, counted from the part's own corner."""
        at = [0 if i is None else i for i in self.fixed]
        for window, offset in ((self.down, row), (self.across, column)):
            if window is not None:
                at[window.axis] = window.start + offset
        return tuple(at)

    def text(self, shape: Sequence[int]) -> str:
        """The part as `parse` reads it; whole axes are a bare colon."""
        items = [str(at) for at in self.fixed]
        for way, window in (("y", self.down), ("x", self.across)):
            if window is not None:
                whole = (window.start, window.stop) == (0, shape[window.axis])
                span = ":" if whole else f"{window.start}:{window.stop}"
                items[window.axis] = (way if self.transposed else "") + span
        return ", ".join(items)


def parse(text: str, shape: Sequence[int]) -> Part:
    """The part a text names; SelectionError says which item does not fit and what the shape is."""
    items = [item.strip() for item in text.split(",")] if text.strip() else []
    if len(items) != len(shape):
        raise SelectionError(
            say(
                "The selection {text!r} has {items} items, the tensor {shape} axes.",
                text=text,
                items=len(items),
                shape=len(shape),
            ),
            say(
                "Write one index or colon per axis, for example {default!r}.",
                default=default(shape).text(shape),
            ),
        )
    fixed: list[int | None] = []
    shown: list[tuple[str, Window]] = []
    for axis, (item, size) in enumerate(zip(items, shape, strict=True)):
        way, found = _item(item, axis, size)
        fixed.append(found if isinstance(found, int) else None)
        if isinstance(found, Window):
            shown.append((way, found))
    return _arranged(tuple(fixed), shown, text)


def default(shape: Sequence[int], around: Sequence[int] | None = None) -> Part:
    """The last two axes longer than one, the others fixed where `around` says, else at 0.

    A tensor with a single long axis becomes a vector, one without any a single element.
    """
    at = tuple(around) if around is not None else (0,) * len(shape)
    long = [axis for axis, size in enumerate(shape) if size != 1][-2:]
    fixed = tuple(None if axis in long else index for axis, index in enumerate(at))
    windows = [Window(axis, 0, shape[axis]) for axis in long]
    if not windows:
        return Part(fixed)
    return Part(fixed, down=windows[0] if len(windows) > 1 else None, across=windows[-1])


def shown_axes(part: Part, shape: Sequence[int], *, down: int | None, across: int) -> Part:
    """The part with other axes shown; one no longer shown is fixed at its window's start."""
    corner = part.index(0, 0)
    kept = {w.axis: w for w in (part.down, part.across) if w is not None}
    windows = {
        axis: kept.get(axis, Window(axis, 0, shape[axis]))
        for axis in (down, across)
        if axis is not None
    }
    fixed = tuple(None if axis in windows else at for axis, at in enumerate(corner))
    return Part(fixed, None if down is None else windows[down], windows[across])


def moved(part: Part, axis: int, index: int) -> Part:
    """The part with one fixed axis at another index."""
    return replace(part, fixed=(*part.fixed[:axis], index, *part.fixed[axis + 1 :]))


def at(part: Part, shape: Sequence[int], axis: int, index: int, *, beside: int = 16) -> Part:
    """The part at one index of an axis.

    A fixed axis is fixed there; the window of a shown one closes in on the index and `beside`
    neighbours on each side, as it is more than a line.
    """
    if part.fixed[axis] is not None:
        return moved(part, axis, index)
    start, stop = max(0, index - beside), min(shape[axis], index + beside + 1)
    down, across = (
        Window(axis, start, stop) if window is not None and window.axis == axis else window
        for window in (part.down, part.across)
    )
    return Part(part.fixed, down, across)


def around(part: Part, shape: Sequence[int], index: Sequence[int]) -> Part:
    """The part moved so that an element is in it; windows that miss it open."""
    fixed = tuple(None if at is None else i for at, i in zip(part.fixed, index, strict=True))
    down, across = (
        window
        if window is None or window.start <= index[window.axis] < window.stop
        else Window(window.axis, 0, shape[window.axis])
        for window in (part.down, part.across)
    )
    return Part(fixed, down, across)


def _item(item: str, axis: int, size: int) -> tuple[str, int | Window]:
    match = _ITEM.fullmatch(item)
    if match is None:
        raise SelectionError(
            say("{item!r} is not an index or a range.", item=item), say("Write 3, : or 10:90.")
        )
    if match["index"] is not None:
        index = int(match["index"])
        index += size if index < 0 else 0
        if not 0 <= index < size:
            raise SelectionError(
                say(
                    "Index {item} does not fit axis {axis}, which has {size} elements.",
                    item=item,
                    axis=axis,
                    size=size,
                ),
                say("Write 0 to {size}.", size=size - 1) if size else say("The tensor is empty."),
            )
        return "", index
    start = int(match["start"] or 0)
    stop = min(int(match["stop"] or size), size)
    if size and not 0 <= start < stop:
        raise SelectionError(
            say(
                "The range {item} of axis {axis} holds nothing; the axis has {size} elements.",
                item=item,
                axis=axis,
                size=size,
            ),
            say("Write a start below its stop within 0:{size}.", size=size),
        )
    return match["way"] or "", Window(axis, min(start, size), stop)


def _arranged(fixed: tuple[int | None, ...], shown: list[tuple[str, Window]], text: str) -> Part:
    if len(shown) > 2:
        raise SelectionError(
            say("The selection {text!r} leaves {shown} axes to show.", text=text, shown=len(shown)),
            say("Leave two at most."),
        )
    if not shown:
        return Part(fixed)
    if len(shown) == 1:
        return Part(fixed, across=shown[0][1])
    (first_way, first), (second_way, second) = shown
    if first_way and first_way == second_way:
        raise SelectionError(
            say("The selection {text!r} shows two axes the same way.", text=text),
            say("Use y and x."),
        )
    if first_way == "x" or second_way == "y":
        first, second = second, first
    return Part(fixed, down=first, across=second)
