"""Parts what is finite in a block from what is not, for both kinds of blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine import layout as at
from metrics.engine.jit import inlined
from metrics.engine.loading import Ints


@inlined
def sieve(
    a: Any,
    b: Any,
    count: int,
    own_a: Any,
    own_b: Any,
    both_a: Any,
    both_b: Any,
    where: Ints,
    counts: Ints,
) -> tuple[int, int, int]:
    """Part the finite values of each side, and of both, from the rest, which is counted.

    `both_a` and `both_b` may be `a` and `b` themselves: nothing is written ahead of what is read.
    """
    n_a = n_b = n = 0
    for i in range(count):
        p, q = a[i], b[i]
        fine_a, fine_b = abs(p) < np.inf, abs(q) < np.inf
        if fine_a:
            own_a[n_a] = p
            n_a += 1
        else:
            _count_odd(p, at.SIDE_A, counts)
        if fine_b:
            own_b[n_b] = q
            n_b += 1
        else:
            _count_odd(q, at.SIDE_B, counts)
        if fine_a and fine_b:
            both_a[n], both_b[n], where[n] = p, q, i
            n += 1
        elif p != p and q != q:
            counts[at.NAN_BOTH] += 1
        elif p == q:
            counts[at.INF_EQUAL] += 1
    return n_a, n_b, n


@inlined
def _count_odd(value: float, side: int, counts: Ints) -> None:
    if value != value:
        counts[side + at.OWN_NAN] += 1
    elif value > 0:
        counts[side + at.OWN_PLUS] += 1
    else:
        counts[side + at.OWN_MINUS] += 1
