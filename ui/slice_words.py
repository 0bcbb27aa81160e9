"""What the slice component says, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from analysis.views import SliceView
from core.numbers import count, error, share
from language import _


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


def help_texts() -> Mapping[str, str]:
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


def words(view: SliceView, *, ulp_dtype: str) -> Mapping[str, object]:
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
            "ulp": _("Error, ulp of {dtype}", dtype=ulp_dtype),
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
