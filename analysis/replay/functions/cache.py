"""State carried from step to step."""

from __future__ import annotations

import numpy as np

from analysis.replay.registry import Answer, Answers, Attributes, Operands, function
from core.errors import CompareError
from language import say


@function("cache")
def cache(given: Operands, _: Attributes) -> Answers:
    """Keys and values so far: what was there, with the new ones at their slots; all copies.

    Slots that no captured call has filled are free.
    """
    if not given.whole:
        raise CompareError(say("The slots were not captured."))
    slots = given.whole[0].reshape(-1)
    made = {}
    for name, new in enumerate(given.floats):
        shape = given.shapes.get(str(name), ())
        if len(shape) != 4 or new.shape[2] != slots.size:
            raise CompareError(say("The cache is not (batch, heads, slots, channels)."))
        value, known = np.zeros(shape), np.zeros(shape, bool)
        before = given.earlier.get(str(name))
        if before is not None:
            value[:, :, : before.shape[2]] = before
            known[:, :, : before.shape[2]] = True
        value[:, :, slots] = new
        known[:, :, slots] = True
        made[str(name)] = Answer(value=value, free=~known, exact=True)
    return made
