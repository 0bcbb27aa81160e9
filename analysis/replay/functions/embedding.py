"""Look-ups and masks: results that must be exact."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from analysis.replay.registry import Answer, Answers, Attributes, Operands, function
from core.errors import CompareError
from core.findings import Fact
from core.runs import Array
from language import say


def _looked_up(given: Operands) -> Array:
    weight = given.parameter("weight", "embedding")
    if weight is None or not given.whole:
        raise CompareError(say("The table or the ids were not captured."))
    ids = given.whole[0]
    if ids.size and (ids.min() < 0 or ids.max() >= len(weight)):
        raise CompareError(say("An id is outside the table."))
    return weight[ids]


def _estimate(given: Operands, outputs: Mapping[str, Array]) -> Mapping[str, Fact]:
    """A constant that the embedding is multiplied by, as the slope of the output on the table."""
    value = _looked_up(given)
    energy = float(np.sum(value**2))
    return {"scale": float(np.sum(outputs["0"] * value)) / energy} if energy else {}


@function("embedding", rows="leading", continuous={"scale": 1.02}, estimate=_estimate, scale=(1.0,))
def embedding(given: Operands, attributes: Attributes) -> Answers:
    """Rows of the table by id, perhaps scaled; unscaled ones are copies."""
    scale = float(attributes["scale"])
    return {"0": Answer(value=_looked_up(given) * scale, exact=scale == 1.0)}


def _window(given: Operands, outputs: Mapping[str, Array]) -> Mapping[str, Fact]:
    """The window as the longest distance that the mask allows, plus one; 0 when all are allowed."""
    behind = _behind(given, outputs["0"].shape)
    seen = np.broadcast_to(behind, outputs["0"].shape)[outputs["0"].astype(bool)]
    longest = int(seen.max()) + 1 if seen.size else 0
    return {"window": longest if longest <= int(behind.max()) else 0}


def _behind(given: Operands, shape: tuple[int, ...]) -> Array:
    """How far each key stands behind each query, from slots or from the shape."""
    slots = [v for v in given.whole if v.ndim == 1]
    queries = slots[0] if slots else np.arange(shape[-1] - shape[-2], shape[-1])
    keys = slots[1] if len(slots) > 1 else np.arange(shape[-1])
    behind: Array = queries[:, None] - keys[None, :]
    return behind


@function("causal_mask", estimate=_window, window=(0,))
def causal_mask(given: Operands, attributes: Attributes) -> Answers:
    """Allowed where the key is not ahead, within the window, and not padding."""
    shape = given.shapes["0"]
    behind = _behind(given, shape)
    allowed = behind >= 0
    if attributes["window"]:
        allowed &= behind < int(attributes["window"])
    padding = next((v for v in given.inputs.values() if v.ndim == 2), None)
    if padding is not None and len(shape) == 4:
        allowed = allowed[None, None] & (padding[:, None, None, :] > 0)
    return {"0": Answer(value=np.broadcast_to(allowed, shape), exact=True)}
