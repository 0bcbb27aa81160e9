"""Loops of the pass over pairs that fit float32, as vector instructions."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types

from metrics.engine.jit import intrinsic
from metrics.engine.lanes import F32, F64, I32, I64, LANES, Lanes, index
from metrics.engine.planes import GROUP, Counter
from metrics.engine.steps import Memory, Variable, memories, repeated, steps, sums_of

# Sums that `sweep` leaves: of reference, error, their magnitudes, squares and product.
S_A, S_E, S_ABS_A, S_ABS_E, S_AA, S_EE, S_AE, S_PEAK = 0, 1, 2, 3, 4, 5, 6, 7
SWEPT = 8
MAGNITUDE, _HIDDEN, _EXPONENT = 0x7FFFFFFF, 0x00800000, 0x7F800000
JOINT_SHIFT = 14  # makes rows of the exponent of float32
JOINT_WIDTH = 512
JOINT_FIRST = 873  # exponent of float64 before that of the least error: keys begin there
VALUE_SHIFT = 19  # leaves sign, 8 exponent bits, 4 of the significand


class _Sweep:
    """Sums over errors of a stretch of a row."""

    def __init__(self, builder: Any, a: Memory, b: Memory, terms: Memory, keys: Memory) -> None:
        self.a, self.b, self.keys = a, b, keys
        spread = (Lanes.spread(builder, terms.number(i)) for i in range(2))
        self.atol, self.rtol = spread
        zero = Lanes.of(builder, F64, 0.0).value
        self.sums = [Variable(builder, zero) for _ in range(7)]
        self.first = Lanes.of(builder, I32, JOINT_FIRST)
        none = Lanes.of(builder, I64, 0).value
        self.peak, self.outside = Variable(builder, none), Variable(builder, index(0))
        self.builder = builder

    def step(self, at: Any, mask: Lanes | None) -> tuple[Lanes, Lanes, Lanes]:
        """Reference, error, and bits of its magnitude."""
        stored = self.a.load(at, mask)
        a, b = stored.widened(), self.b.load(at, mask).widened()
        e = b - a
        size_a, size_e = a.magnitude(), e.magnitude()
        bits = size_e.bits_as(I64)
        for total, term in zip(self.sums, (a, e, size_a, size_e), strict=False):
            total.set(total.lanes() + term)
        for total, x, y in zip(self.sums[4:], (a, e, a), (a, e, e), strict=True):
            total.set(x.times_plus(y, total.lanes()))
        self.peak.set(self.peak.lanes().larger(bits))
        outside = size_e > size_a * self.rtol + self.atol
        self.outside.set(self.builder.add(self.outside.get(), outside.how_many()))
        row = (stored.bits_as(I32) & _EXPONENT) >> JOINT_SHIFT
        column = (bits.upper_halves() >> 20).larger(self.first)
        self.keys.store(at, row + column)
        return a, e, bits

    def finish(self, swept: Memory) -> Any:
        """Write the sums; how many elements were out of tolerance."""
        zero = Lanes.of(self.builder, F64, 0.0)
        sums = [each.lanes() for each in self.sums]
        together = sums_of(self.builder, [*sums, zero])
        together = self.builder.insert_element(
            together,
            self.builder.bitcast(self.peak.lanes().reduced("umax"), F64),
            ir.Constant(I32, S_PEAK),
        )
        place = self.builder.bitcast(swept.cell(index(0)), together.type.as_pointer())
        self.builder.store(together, place, align=8)
        return self.outside.get()


@intrinsic
def sweep(
    typing_context: Any,  # noqa: ARG001
    a: Any,
    b: Any,
    terms: Any,
    keys: Any,
    swept: Any,
    count: Any,
) -> Any:
    """Fill `swept` with sums and `keys` with joint keys; elements out of tolerance."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = (F32, F32, F64, I32, F64)
        arrays = memories(context, builder, signature, arguments, kinds)
        work = _Sweep(builder, *arrays[:4])

        def step(at: Any, mask: Lanes | None) -> None:
            work.step(at, mask)

        steps(builder, arguments[-1], step)
        return work.finish(arrays[4])

    return types.int64(a, b, terms, keys, swept, count), generate


@intrinsic
def sweep_row(
    typing_context: Any,  # noqa: ARG001
    a: Any,
    b: Any,
    terms: Any,
    keys: Any,
    swept: Any,
    errors: Any,
    references: Any,
    peaks: Any,
    count: Any,
) -> Any:
    """As `sweep`, and add energies and largest errors to the profiles of the last axis."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = (F32, F32, F64, I32, F64, F64, F64, I64)
        arrays = memories(context, builder, signature, arguments, kinds)
        work = _Sweep(builder, *arrays[:4])
        of_errors, of_references, largest = arrays[5:]

        def step(at: Any, mask: Lanes | None) -> None:
            a, e, bits = work.step(at, mask)
            of_errors.store(at, e.times_plus(e, of_errors.load(at, mask)), mask)
            of_references.store(at, a.times_plus(a, of_references.load(at, mask)), mask)
            largest.store(at, largest.load(at, mask).larger(bits), mask)

        steps(builder, arguments[-1], step)
        return work.finish(arrays[4])

    return types.int64(a, b, terms, keys, swept, errors, references, peaks, count), generate


# Sums that `sweep_centred` leaves: of deviations of reference, candidate and error, of products.
C_A, C_B, C_E, C_AA, C_BB, C_EE, C_AB, C_AE = 0, 1, 2, 3, 4, 5, 6, 7


@intrinsic
def sweep_centred(typing_context: Any, a: Any, b: Any, about: Any, count: Any) -> Any:  # noqa: ARG001
    """Sums of deviations from the three values in `about`, which they replace."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left, right, terms = memories(context, builder, signature, arguments, (F32, F32, F64))
        centres = [Lanes.spread(builder, terms.number(i)) for i in range(3)]
        zero = Lanes.of(builder, F64, 0.0)
        sums = [Variable(builder, zero.value) for _ in range(SWEPT)]

        def step(at: Any, mask: Lanes | None) -> None:
            x, y = left.load(at, mask).widened(), right.load(at, mask).widened()
            both = zip((x, y, y - x), centres, strict=True)
            p, q, r = (_within(mask, value - centre) for value, centre in both)
            for total, term in zip(sums, (p, q, r), strict=False):
                total.set(total.lanes() + term)
            products = ((p, p), (q, q), (r, r), (p, q), (p, r))
            for total, (f, g) in zip(sums[3:], products, strict=True):
                total.set(f.times_plus(g, total.lanes()))

        steps(builder, arguments[-1], step)
        together = sums_of(builder, [each.lanes() for each in sums])
        place = builder.bitcast(terms.cell(index(0)), together.type.as_pointer())
        builder.store(together, place, align=8)
        return context.get_dummy_value()

    return types.void(a, b, about, count), generate


def _within(mask: Lanes | None, values: Lanes) -> Lanes:
    return values if mask is None else mask.where(values, 0.0)


# What `survey` finds in a block: bits of the smallest and largest magnitude, and of the bounds.
V_LEAST, V_TOP, V_LOW, V_HIGH = 0, 1, 2, 3
SURVEYED = 4


@intrinsic
def survey(
    typing_context: Any,  # noqa: ARG001
    values: Any,
    planes: Any,
    carries: Any,
    found: Any,
    groups: Any,
) -> Any:
    """Bounds of a block, and its significand bits, which wait in `carries`.

    Counted is the lowest significand bit that is set: bit k for 24 - k bits, 23 for zero too.
    Bounds of a block with NaN are of its other values.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = (F32, I32, I32, I64)
        stored, held, carried, out = memories(context, builder, signature, arguments, kinds)
        _surveyed(builder, stored, Counter(builder, held, carried), out, arguments[-1])
        return context.get_dummy_value()

    return types.void(values, planes, carries, found, groups), generate


def _surveyed(builder: Any, stored: Memory, counter: Counter, out: Memory, groups: Any) -> None:
    first = stored.load(index(0))
    low, high = Variable(builder, first.value), Variable(builder, first.value)
    least = Variable(builder, Lanes.of(builder, I32, MAGNITUDE).value)
    top = Variable(builder, Lanes.of(builder, I32, 0).value)
    with repeated(builder, groups) as group:
        start = builder.mul(group, index(GROUP))
        marks = []
        for j in range(0, GROUP, LANES):
            value = stored.load(builder.add(start, index(j)))
            bits = value.bits_as(I32)
            magnitude = bits & MAGNITUDE
            least.set(least.lanes().smaller(magnitude))
            top.set(top.lanes().larger(magnitude))
            low.set((value < low.lanes()).where(value, low.lanes()))
            high.set((value > high.lanes()).where(value, high.lanes()))
            mark = bits | _HIDDEN
            marks.append(mark & -mark)
        counter.add(marks, group)
    counter.finish()
    for place, lanes, name in (
        (V_LEAST, least, "umin"), (V_TOP, top, "umax"), (V_LOW, low, "fmin"), (V_HIGH, high, "fmax")
    ):  # fmt: skip
        builder.store(builder.zext(lanes.lanes().reduced(name), I64), out.cell(index(place)))
