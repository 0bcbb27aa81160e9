"""Reading memory and doing next to nothing with it, compiled."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(nogil=True)
def xor(words):  # type: ignore[no-untyped-def]
    """XOR of all words."""
    total = np.uint64(0)
    for word in words:
        total ^= word
    return total
