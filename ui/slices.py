"""The slice component: reference, candidate and error of one slice as three linked canvases.

One block of bytes goes to the browser: five float32 images, one of flags, and a header saying what
they are. Changing the third view, moving the cursor and resizing need no round trip; another slice
needs one. What is picked travels apart, so that picking an element does not send the images again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from analysis.selection import Part, Window
from analysis.views import SliceView
from charts.tokens import Theme
from language import _
from ui.slice_words import help_texts, note, words

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
        "exact": view.seen == view.elements,
        "shown": scene.part.text(scene.shape),
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
        "help": help_texts(),
        "words": words(view, ulp_dtype=scene.ulp_dtype),
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


def _window(window: Window | None) -> dict[str, int] | None:
    if window is None:
        return None
    return {"axis": window.axis, "start": window.start, "stop": window.stop}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
