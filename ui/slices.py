"""The slice component: reference, candidate and error of one slice as three linked canvases.

One block of bytes goes to the browser: five float32 images, one of flags, and a header saying what
they are. Changing the third view, moving the cursor and resizing need no round trip; another slice
needs one. What is picked travels apart, so that picking an element does not send the images again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from analysis.selection import Part, Window
from analysis.views import SliceView
from charts.tokens import Theme
from core.numbers import count, error, share
from language import _

_HERE = Path(__file__).parent / "components"
_component = st.components.v2.component(
    "px_slices",
    html='<div class="px-slices"></div>',
    css=(_HERE / "slices.css").read_text(encoding="utf-8"),
    js=(_HERE / "slices.js").read_text(encoding="utf-8"),
)

_cursor = st.components.v2.component(
    "px_cursor", js=(_HERE / "cursor.js").read_text(encoding="utf-8")
)

MODES = ("floor", "signed", "relative", "ulp", "sign")
# Digits that identify a value of a format; 9 stands for the shortest that reads back as float32.
_DIGITS = {"bfloat16": 4, "float16": 5, "float8_e4m3fn": 3, "float8_e5m2": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What the component shows beside the images.

    `unit` is what counts as 1x in the view × floor, None where the format has no floor;
    `relative_from` the relative error at which that view's scale begins. `cursor` is the tensor's
    index of the picked element, `mode` one of `MODES`. `worst` says whether there is a worst
    element to go to. `log` bends colours on both sides of zero, `full` lets them reach from the
    smallest to the largest pixel instead of the middle 99 %.
    """

    shape: tuple[int, ...]
    dims: tuple[str, ...]
    dtypes: tuple[str, str]
    ulp_dtype: str
    part: Part
    unit: float | None
    relative_from: float
    cursor: tuple[int, ...] | None
    mode: str
    worst: bool
    log: bool = False
    full: bool = False


def draw(
    view: SliceView, scene: Scene, *, theme: Theme, key: str, on_act: Callable[[Any], None]
) -> None:
    """Draws the slice; what the user does calls `on_act`, in a callback.

    With one of `{"axis", "index"}` (fix an axis elsewhere), `{"axes": {"down", "across"}}` (show
    others), `{"window": {"down", "across"}}` (zoom, pan), `{"fit"}`, `{"worst"}`, `{"element"}`,
    `{"mode"}`, `{"log"}` or `{"full"}`.
    """
    looks = {"element": scene.cursor, "mode": scene.mode, "log": scene.log, "full": scene.full}
    _cursor(key=f"{key}-cursor", data=looks, height=1)
    _component(
        key=key,
        data=packed(view, scene, theme),
        on_act_change=lambda: on_act(st.session_state[key].get("act") or {}),
    )


def packed(view: SliceView, scene: Scene, theme: Theme) -> bytes:
    """The component's one block of bytes."""
    images = view.images
    header = json.dumps(_header(view, scene, theme), allow_nan=False).encode()
    header += b" " * (-len(header) % 4)
    arrays = (images.reference, images.candidate, images.error, images.relative, images.ulps)
    body = b"".join(np.ascontiguousarray(a, "<f4").tobytes() for a in arrays)
    return len(header).to_bytes(4, "little") + header + body + images.flags.tobytes()


def names_of_axes(dims: Sequence[str], shape: Sequence[int]) -> tuple[str, ...]:
    """The dump's own names where it has one for each axis, else `axis 0` to `axis n`."""
    if len(dims) == len(shape):
        return tuple(name or _("axis {number}", number=i) for i, name in enumerate(dims))
    return tuple(_("axis {number}", number=i) for i in range(len(shape)))


def _header(view: SliceView, scene: Scene, theme: Theme) -> dict[str, Any]:
    height, width = view.images.error.shape
    return {
        "height": height,
        "width": width,
        "rows": view.rows,
        "columns": view.columns,
        "block": view.block,
        "elements": view.elements,
        "limits": [_finite(limit) for limit in view.limits],
        "extent": [_finite(limit) for limit in view.extent],
        "error_limit": view.error_limit,
        "nonfinite": view.nonfinite,
        "shape": scene.shape,
        "dims": scene.dims,
        "fixed": scene.part.fixed,
        "down": _window(scene.part.down),
        "across": _window(scene.part.across),
        "unit": scene.unit,
        "relative_from": scene.relative_from,
        "ulp_dtype": scene.ulp_dtype,
        "digits": [_DIGITS.get(dtype, 9) for dtype in scene.dtypes],
        "has_worst": scene.worst,
        "note": note(view),
        "help": _help(),
        "words": _words(view, scene),
        "colours": {
            name: getattr(theme, name)
            for name in ("fault", "bg", "text", "line_strong", "surface_2")
        },
        "scales": {
            "values": theme.values,
            "signed": theme.signed,
            "ember": theme.ember,
        },
    }


def note(view: SliceView) -> str:
    """What the images leave out or merge, in words."""
    if not view.elements:
        return _("The tensor has no elements.")
    parts = []
    if view.seen < view.elements:
        parts.append(
            _("A first look at {share} of the elements; all of them are being read.",
              share=share(view.seen, view.elements))
        )  # fmt: skip
    if view.block != (1, 1):
        down, across = (count(n) for n in view.block)
        parts.append(
            _("A pixel is {down} × {across} elements: mean of values, largest error.",
              down=down, across=across)
        )  # fmt: skip
    low, high = view.limits
    if np.isfinite(low):
        parts.append(
            _("Value scale {low} to {high} (0.5 to 99.5 %).", low=error(low), high=error(high))
        )
    if any(view.nonfinite):
        parts.append(_nonfinite(*view.nonfinite))
    if view.complex:
        parts.append(_("Complex values: magnitudes are shown."))
    return " ".join(parts)


def _nonfinite(reference: int, candidate: int, unshared: int) -> str:
    sides = {"reference": count(reference), "candidate": count(candidate)}
    if not unshared:
        return _(
            "Non-finite: {reference} in the reference, {candidate} in the candidate, "
            "all shared (hatched).",
            **sides,
        )
    return _(
        "Non-finite: {reference} in the reference, {candidate} in the candidate, "
        "{unshared} not shared (solid).",
        unshared=count(unshared),
        **sides,
    )


def _help() -> Mapping[str, str]:
    """What each third view shows, for its button."""
    return {
        "floor": _("|error| in units of the floor times the tensor's RMS, log scale"),
        "signed": _(
            "candidate − reference; where a pixel holds many, the one of largest magnitude"
        ),
        "relative": _("|error| / max(|reference|, |candidate|, 1 % of the RMS), log scale"),
        "ulp": _("representable values between both, in the coarser format, log scale"),
        "sign": _("Which side is larger: a pattern here is a bias, noise has none"),
    }


def _words(view: SliceView, scene: Scene) -> Mapping[str, object]:
    """What the component says, in the reader's language."""
    facts = {"rows": count(view.rows), "columns": count(view.columns)}
    worst = _("Largest error at {place}.", place=list(view.worst)) if view.worst else _("No error.")
    ends = {"low": "{low}", "high": "{high}"}  # filled in by the component
    alt = {
        side: _(
            "{side} of {rows} by {columns} elements, from {low} to {high}, {odd} non-finite. "
            "{worst}",
            side=word, odd=count(odd), worst=worst, **facts, **ends,
        )
        for (side, word), odd in zip(
            (("reference", _("Reference")), ("candidate", _("Candidate")), ("error", _("Error"))),
            view.nonfinite,
            strict=True,
        )
    }  # fmt: skip
    return {
        "modes": {
            "floor": _("× floor"), "signed": _("Signed"), "relative": _("Relative"),
            "ulp": _("ulp"), "sign": _("Sign"),
        },
        "titles": {
            "floor": _("Error, times floor"), "signed": _("Error, signed"),
            "relative": _("Error, relative"), "sign": _("Sign of the error"),
            "ulp": _("Error, ulp of {dtype}", dtype=scene.ulp_dtype),
        },
        "alt": alt, "reference": _("Reference"), "candidate": _("Candidate"),
        "third": _("third view"), "colours": _("colours"), "down": _("down"),
        "across": _("across"), "scrub": _("scrub"), "whole": _("Whole slice"),
        "worst": _("Worst"), "largest": _("largest"), "mean": _("mean"),
        "none": _("no element picked"), "odd": _("non-finite"), "row": _("row"),
        "folded": _("folded into rows"), "lower": _("lower"), "higher": _("higher"),
        "no_floor": _("This format has no rounding floor."), "log": _("Log"), "full": _("Full"),
        "log_help": _("Colours by logarithm, three decades on each side of zero"),
        "full_help": _("Colours from the smallest to the largest pixel, not 0.5 to 99.5 %"),
        "group": _("Slice of reference, candidate and error"),
        "hint": _(
            "Click picks an element, drag zooms, Shift and drag moves; arrows move the cursor, "
            "with Shift the view."
        ),
    }  # fmt: skip


def _window(window: Window | None) -> dict[str, int] | None:
    if window is None:
        return None
    return {"axis": window.axis, "start": window.start, "stop": window.stop}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
