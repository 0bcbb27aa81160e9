"""Ulp errors of a block in units of one format, as vector instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from metrics.engine.jit import intrinsic, touch
from metrics.engine.lanes import F32, I16, I32, I64, LANES, Lanes, index
from metrics.engine.narrow_lanes import MAGNITUDE, VALUE_SHIFT
from metrics.engine.planes import GROUP, Counter
from metrics.engine.steps import Memory, Variable, memories, repeated

Ordinal = Callable[[Lanes, Lanes], Lanes]
D_FLIPS, D_LARGEST = 0, 1


def comparing(ordinal: Ordinal) -> Any:
    """The loop that counts distances in units of one format.

    `ordinal(magnitude, value)` is the place of float32 among the magnitudes of the format.
    `ahead` holds addresses of what both sides will read next, then the bytes of their elements: as
    much as the block has is asked for.
    """

    @intrinsic
    def compare(
        typing_context: Any,  # noqa: ARG001
        a: Any,
        b: Any,
        ulps: Any,
        planes: Any,
        carries: Any,
        masks: Any,
        found: Any,
        ahead: Any,
        groups: Any,
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kinds = (F32, F32, I32, I32, I32, I16, I64, I64)
            arrays = memories(context, builder, signature, arguments, kinds)
            _comparison(builder, ordinal, arrays, arguments[-1])
            return context.get_dummy_value()

        return types.void(a, b, ulps, planes, carries, masks, found, ahead, groups), generate

    return compare


def _comparison(builder: Any, ordinal: Ordinal, arrays: list[Memory], groups: Any) -> None:
    a, b, ulps, planes, carries, masks, found, ahead = arrays
    next_a, next_b, width_a, width_b = (ahead.number(i) for i in range(4))
    none = Lanes.of(builder, I32, 0)
    flips, largest = Variable(builder, none.value), Variable(builder, none.value)
    counter = Counter(builder, planes, carries)
    one = Lanes.of(builder, I32, 1)
    with repeated(builder, groups) as group:
        start = builder.mul(group, index(GROUP))
        marks = []
        for j in range(0, GROUP, LANES):
            at = builder.add(start, index(j))
            for address, width in ((next_a, width_a), (next_b, width_b)):
                touch(builder, builder.add(address, builder.mul(at, width)))
            values = a.load(at), b.load(at)
            x, y = (each.bits_as(I32) for each in values)
            p, q = x & MAGNITUDE, y & MAGNITUDE
            opposite = (x ^ y).negative()
            zero = p.smaller(q)
            flipped = Lanes(builder, builder.and_(opposite.value, zero.is_not(0).value))
            flips.set(flipped.where(flips.lanes() + 1, flips.lanes()))
            differ = (x ^ y) > (1 << VALUE_SHIFT) - 1
            builder.store(differ.mask_bits(), masks.cell(builder.lshr(at, index(4))))
            p, q = ordinal(p, values[0]), ordinal(q, values[1])
            distance = opposite.where(p + q, p.larger(q) - p.smaller(q))
            ulps.store(at, distance)
            largest.set(largest.lanes().larger(distance))
            # Bit k for bin k + 1; a shift by 32, of a distance beyond 2^31, is bin 1 instead.
            length = Lanes.of(builder, I32, 32) - (distance - 1).leading_zeros()
            marks.append(distance.is_not(0).where(one << (length & 31), 0))
        counter.add(marks, group)
    counter.finish()
    total = builder.zext(flips.lanes().reduced("add"), I64)
    top = builder.zext(largest.lanes().reduced("umax"), I64)
    for place, value in ((D_FLIPS, total), (D_LARGEST, top)):
        builder.store(value, found.cell(index(place)))


def _fine(magnitude: Lanes, value: Lanes) -> Lanes:  # noqa: ARG001
    return magnitude


def _rounded(magnitude: Lanes, precision: int) -> Lanes:
    """Round to even, in ordered integers."""
    drop = 24 - precision
    even = (magnitude >> drop) & 1
    return (magnitude + even + ((1 << (drop - 1)) - 1)) >> drop


def _aligned(precision: int) -> Ordinal:
    """Of a format with the exponents of float32."""

    def ordinal(magnitude: Lanes, value: Lanes) -> Lanes:  # noqa: ARG001
        return _rounded(magnitude, precision)

    return ordinal


def _shifted(precision: int, min_exponent: int) -> Ordinal:
    """Of a format whose subnormals begin above those of float32."""
    first = (min_exponent + 126) << (precision - 1)
    normal = (min_exponent + 127) << 23
    scale = float(np.float32(2.0 ** (precision - 1 - min_exponent)))

    def ordinal(magnitude: Lanes, value: Lanes) -> Lanes:
        builder = value.builder
        small = magnitude < normal
        size = small.where(value.magnitude(), 0.0)
        magic = Lanes.of(builder, F32, 8388608.0)  # from 2^23 on float32 holds integers only
        steps_up = (size * Lanes.of(builder, F32, scale) + magic) - magic
        return small.where(steps_up.rounded_integers(), _rounded(magnitude, precision) - first)

    return ordinal


# Precision and exponent of the smallest normal of each format below.
KNOWN = ((24, -126), (11, -126), (8, -126), (11, -14), (4, -6), (4, -7), (3, -14), (3, -15), (2, 0))
_COMPARE = [
    comparing(
        _fine if form == (24, -126) else _aligned(form[0]) if form[1] == -126 else _shifted(*form)
    )
    for form in KNOWN
]
(
    compare_fine, compare_tf32, compare_bfloat16, compare_float16, compare_e4m3,
    compare_e4m3_fnuz, compare_e5m2, compare_e5m2_fnuz, compare_e2m1,
) = _COMPARE  # fmt: skip
