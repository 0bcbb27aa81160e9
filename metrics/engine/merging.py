"""Sums of disjoint parts put together: Chan, Golub and LeVeque (1979), in one fixed order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from metrics.engine import layout as at
from metrics.engine.jit import inlined, kernel
from metrics.engine.loading import Floats


@inlined
def _rescaled(sums: Floats, mean: int, energies: int, exponent: int, top: float) -> None:
    """Bring mean and squared deviations of one quantity to units of 2^top."""
    shift = int(sums[exponent] - top)
    if shift:
        sums[mean] = math.ldexp(sums[mean], shift)
        sums[energies] = math.ldexp(sums[energies], 2 * shift)
        sums[exponent] = top


@inlined
def merge_own(total: Floats, part: Floats, own: int) -> None:
    """Count, mean, squared deviations and exponent of one side."""
    count = part[own]
    if count == 0.0:
        return
    if total[own] == 0.0:
        total[own : own + 4] = part[own : own + 4]
        return
    if total[own + 3] != part[own + 3]:
        _aligned_own(total, part, own)
    n = total[own] + count
    delta = part[own + 1] - total[own + 1]
    share = count / n
    total[own + 2] += part[own + 2] + delta * delta * (total[own] * share)
    total[own + 1] += delta * share
    total[own] = n


@inlined
def _aligned_own(total: Floats, part: Floats, own: int) -> None:
    top = max(total[own + 3], part[own + 3])
    if total[own + 1] == 0.0 and total[own + 2] == 0.0:
        top = part[own + 3]
    elif part[own + 1] == 0.0 and part[own + 2] == 0.0:
        top = total[own + 3]
    _rescaled(total, own + 1, own + 2, own + 3, top)
    _rescaled(part, own + 1, own + 2, own + 3, top)


@inlined
def _align(total: Floats, part: Floats) -> None:
    """One exponent for each of reference, candidate and error in both; zeros adopt any."""
    tops = (0.0, 0.0, 0.0)
    means = (at.MEAN_A, at.MEAN_B, at.MEAN_E)
    for i in range(3):
        mean, exponent = means[i], at.K_A + i
        top = max(total[exponent], part[exponent])
        if total[mean] == 0.0 and total[mean + 1] == 0.0:
            top = part[exponent]
        elif part[mean] == 0.0 and part[mean + 1] == 0.0:
            top = total[exponent]
        if i == 0:
            tops = (top, tops[1], tops[2])
        elif i == 1:
            tops = (tops[0], top, tops[2])
        else:
            tops = (tops[0], tops[1], top)
    _at_exponents(total, tops[0], tops[1], tops[2])
    _at_exponents(part, tops[0], tops[1], tops[2])


@inlined
def _at_exponents(sums: Floats, top_a: float, top_b: float, top_e: float) -> None:
    a, b, e = int(sums[at.K_A] - top_a), int(sums[at.K_B] - top_b), int(sums[at.K_E] - top_e)
    sums[at.CO_B] = math.ldexp(sums[at.CO_B], a + b)
    sums[at.DOT_B] = math.ldexp(sums[at.DOT_B], a + b)
    sums[at.CO_E] = math.ldexp(sums[at.CO_E], a + e)
    sums[at.DOT_E] = math.ldexp(sums[at.DOT_E], a + e)
    sums[at.ABS_A] = math.ldexp(sums[at.ABS_A], a)
    sums[at.ABS_E] = math.ldexp(sums[at.ABS_E], e)
    _rescaled(sums, at.MEAN_A, at.M2_A, at.K_A, top_a)
    _rescaled(sums, at.MEAN_B, at.M2_B, at.K_B, top_b)
    _rescaled(sums, at.MEAN_E, at.M2_E, at.K_E, top_e)


@inlined
def merge_sums(total: Floats, part: Floats) -> None:
    """Add the sums of a later part of the pair to those of an earlier one; `part` is used up."""
    merge_own(total, part, at.OWN_A)
    merge_own(total, part, at.OWN_B)
    count = part[at.N]
    if count == 0.0:
        return
    if total[at.N] == 0.0:
        total[: at.OWN_A] = part[: at.OWN_A]
        return
    if (
        total[at.K_A] != part[at.K_A]
        or total[at.K_B] != part[at.K_B]
        or total[at.K_E] != part[at.K_E]
    ):
        _align(total, part)
    n = total[at.N] + count
    share = count / n
    weight = total[at.N] * share
    a = part[at.MEAN_A] - total[at.MEAN_A]
    b = part[at.MEAN_B] - total[at.MEAN_B]
    e = part[at.MEAN_E] - total[at.MEAN_E]
    total[at.M2_A] += part[at.M2_A] + a * a * weight
    total[at.M2_B] += part[at.M2_B] + b * b * weight
    total[at.M2_E] += part[at.M2_E] + e * e * weight
    total[at.CO_B] += part[at.CO_B] + a * b * weight
    total[at.CO_E] += part[at.CO_E] + a * e * weight
    total[at.MEAN_A] += a * share
    total[at.MEAN_B] += b * share
    total[at.MEAN_E] += e * share
    for i in range(at.DOT_B, at.K_A):
        total[i] += part[i]
    total[at.N] = n


@inlined
def align_profile(profile: Any, row: int, exponent: float, empty: bool) -> int:
    """Make a row of energies ready for more at another exponent; by how much to shift the latter.

    The last column holds the exponent of each row: energies are in units of 2^2k.
    """
    last = profile.shape[1] - 1
    own = profile[row, last]
    if own == exponent or empty:
        return 0
    top = max(own, exponent)
    if not profile[row, :last].any():
        top = exponent
    profile[row, last] = top
    if top != own:
        for i in range(last):
            profile[row, i] = math.ldexp(profile[row, i], 2 * int(own - top))
    return int(exponent - top)


@kernel
def close_segment(total: Floats, part: Floats, profile: Any, piece: Any) -> None:
    """Add a segment's sums and profiles to those of all before it, and clear them."""
    merge_sums(total, part)
    part[:] = 0.0
    last = profile.shape[1] - 1
    for row in range(2):
        shift = 0
        if piece[row, last] != profile[row, last]:
            shift = align_profile(profile, row, piece[row, last], not piece[row, :last].any())
        for i in range(last):
            profile[row, i] += math.ldexp(piece[row, i], 2 * shift) if shift else piece[row, i]
    for i in range(last):
        profile[2, i] = max(profile[2, i], piece[2, i])
    piece[:] = 0.0


def compile_merging() -> None:
    """Compile what only long pairs need."""
    sums, profile = np.zeros(at.SUMS), np.zeros((3, 1))
    close_segment(sums.copy(), sums, profile.copy(), profile)
