"""Selections as text, and what they pick from a shape."""

from __future__ import annotations

import re

from core.errors import SelectionError
from core.runs import Selection
from language import say

_PART = re.compile(
    r"(?P<index>-?\d+)|(?P<start>-?\d+)?\s*:\s*(?P<stop>-?\d+)?\s*(?::\s*(?P<step>-?\d+)?)?"
)
_HINT = say("Write one index or range an axis, as in `0, 2:5` or `:, ::4`.")
_LONGEST = 400  # of text; 32 axes of three numbers need less


def selection_from_text(text: str, *, shape: tuple[int, ...] | None = None) -> Selection:
    """`"0, 2:5"` as a selection: integers drop an axis, ranges keep it, empty selects all.

    With a shape, an index outside it or an axis too many is a SelectionError too.
    """
    if len(text) > _LONGEST:
        raise SelectionError(say("The selection is too long."), _HINT)
    bare = text.strip().removeprefix("[").removesuffix("]").strip().removesuffix(",")
    selection = tuple(_part(part.strip()) for part in bare.split(",")) if bare else ()
    if shape is not None:
        axes_of(selection, shape)
    return selection


def text_from_selection(selection: Selection) -> str:
    """The text that `selection_from_text` reads back as this selection."""

    def one(part: int | slice) -> str:
        if isinstance(part, int):
            return str(part)
        bounds = ["" if v is None else str(v) for v in (part.start, part.stop)]
        return ":".join(bounds if part.step is None else [*bounds, str(part.step)])

    return ", ".join(one(part) for part in selection)


def axes_of(selection: Selection, shape: tuple[int, ...]) -> tuple[int | range, ...]:
    """What a selection picks, axis by axis: a non-negative index, or the range of kept indices.

    Axes the selection does not mention are kept whole. NumPy's rules for negative numbers.
    """
    if len(selection) > len(shape):
        raise SelectionError(
            say(
                "The selection has {selection} axes, the tensor {shape}.",
                selection=len(selection),
                shape=len(shape),
            ),
            _HINT,
        )
    full = selection + (slice(None),) * (len(shape) - len(selection))
    return tuple(_axis(part, axis, shape) for axis, part in enumerate(full))


def _part(text: str) -> int | slice:
    match = _PART.fullmatch(text)
    if match is None:
        raise SelectionError(
            say("The selection holds {text!r}, which is no index or range.", text=text), _HINT
        )
    if match["index"] is not None:
        return int(match["index"])
    bounds = (match["start"], match["stop"], match["step"])
    start, stop, step = (None if value is None else int(value) for value in bounds)
    if step == 0:
        raise SelectionError(say("A range cannot have the step 0."), _HINT)
    return slice(start, stop, step)


def _axis(part: int | slice, axis: int, shape: tuple[int, ...]) -> int | range:
    length = shape[axis]
    if isinstance(part, slice):
        return range(*part.indices(length))
    if not -length <= part < length:
        raise SelectionError(
            say(
                "Index {part} is outside axis {axis}, which has {length} elements.",
                part=part,
                axis=axis,
                length=length,
            ),
            say("Use 0 to {length}.", length=length - 1)
            if length
            else say("Use a range such as `:`."),
        )
    return part % length
