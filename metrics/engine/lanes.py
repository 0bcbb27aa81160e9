"""Sixteen neighbouring elements at once: vector instructions, said outright.

A loop's step is written once in Python with `Lanes` while numba generates code. The code generator
splits sixteen lanes over the registers of the machine, whatever their width; every lane keeps its
own sum, so the result is the same on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from metrics.engine.jit import pointer_of

LANES = 16
I1, I16, I32, I64 = (ir.IntType(width) for width in (1, 16, 32, 64))
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()
_NAMES = {I1: "i1", I16: "i16", I32: "i32", I64: "i64", F32: "f32", F64: "f64"}
_BYTES = {I16: 2, I32: 4, I64: 8, F32: 4, F64: 8}


def index(value: int) -> Any:
    """A constant position."""
    return ir.Constant(I64, value)


def _vector(kind: Any, lanes: int = LANES) -> Any:
    return ir.VectorType(kind, lanes)


def called(builder: Any, operation: str, result: Any, *arguments: Any) -> Any:
    """One of the code generator's own operations."""
    module = builder.module
    known = module.globals.get(operation)
    if known is None:
        kind = ir.FunctionType(result, [each.type for each in arguments])
        known = ir.Function(module, kind, operation)
    return builder.call(known, arguments)


class Lanes:
    """Values of one kind; integers count as unsigned."""

    __slots__ = ("builder", "value")

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    @classmethod
    def of(cls, builder: Any, kind: Any, number: float) -> Lanes:
        """The same constant everywhere."""
        return cls(builder, ir.Constant(_vector(kind), [number] * LANES))

    @classmethod
    def spread(cls, builder: Any, value: Any) -> Lanes:
        """The same computed value everywhere."""
        none = ir.Constant(_vector(value.type), ir.Undefined)
        first = builder.insert_element(none, value, ir.Constant(I32, 0))
        places = ir.Constant(_vector(I32), [0] * LANES)
        return cls(builder, builder.shuffle_vector(first, none, places))

    @property
    def kind(self) -> Any:
        """The type of one lane."""
        return self.value.type.element

    def __add__(self, other: Lanes | float) -> Lanes:
        return self._either("add", "fadd", other)

    def __sub__(self, other: Lanes | float) -> Lanes:
        return self._either("sub", "fsub", other)

    def __mul__(self, other: Lanes) -> Lanes:
        return self._either("mul", "fmul", other)

    def __and__(self, other: Lanes | int) -> Lanes:
        return self._either("and_", "", other)

    def __or__(self, other: Lanes | int) -> Lanes:
        return self._either("or_", "", other)

    def __xor__(self, other: Lanes) -> Lanes:
        return self._either("xor", "", other)

    def __lshift__(self, other: Lanes | int) -> Lanes:
        return self._either("shl", "", other)

    def __rshift__(self, other: int) -> Lanes:
        return self._either("lshr", "", other)

    def __neg__(self) -> Lanes:
        return Lanes.of(self.builder, self.kind, 0) - self

    def __gt__(self, other: Lanes | float) -> Lanes:
        return self._compared(">", other)

    def __lt__(self, other: Lanes | float) -> Lanes:
        return self._compared("<", other)

    def is_not(self, other: Lanes | float) -> Lanes:
        """A mask."""
        return self._compared("!=", other)

    def negative(self) -> Lanes:
        """A mask of set sign bits."""
        return Lanes(self.builder, self.builder.icmp_signed("<", self.value, self._like(0)))

    def where(self, yes: Lanes, no: Lanes | float) -> Lanes:
        """Values chosen by this mask."""
        return Lanes(self.builder, self.builder.select(self.value, yes.value, yes._like(no)))

    def larger(self, other: Lanes) -> Lanes:
        """The larger integers."""
        return self._named("umax", other)

    def smaller(self, other: Lanes) -> Lanes:
        """The smaller integers."""
        return self._named("umin", other)

    def times_plus(self, factor: Lanes, summand: Lanes) -> Lanes:
        """Self * factor + summand, rounded once."""
        return self._named("fma", factor, summand)

    def magnitude(self) -> Lanes:
        """Floats without their sign."""
        return self._named("fabs")

    def leading_zeros(self) -> Lanes:
        """Zero bits above the highest set bit; the width for 0."""
        name = f"llvm.ctlz.v{LANES}{_NAMES[self.kind]}"
        no = ir.Constant(I1, 0)
        return Lanes(self.builder, called(self.builder, name, self.value.type, self.value, no))

    def bits_as(self, kind: Any) -> Lanes:
        """The same bits as another kind of the same width."""
        return Lanes(self.builder, self.builder.bitcast(self.value, _vector(kind)))

    def widened(self, kind: Any = F64) -> Lanes:
        """The same numbers as a wider kind of integers or floats."""
        widen = self.builder.fpext if kind in (F32, F64) else self.builder.zext
        return Lanes(self.builder, widen(self.value, _vector(kind)))

    def rounded_integers(self) -> Lanes:
        """Floats that hold small integers, as integers."""
        return Lanes(self.builder, self.builder.fptoui(self.value, _vector(I32)))

    def upper_halves(self) -> Lanes:
        """The upper 32 of each 64 bits."""
        pairs = self.builder.bitcast(self.value, _vector(I32, 2 * LANES))
        places = ir.Constant(_vector(I32), list(range(1, 2 * LANES, 2)))
        none = ir.Constant(pairs.type, ir.Undefined)
        return Lanes(self.builder, self.builder.shuffle_vector(pairs, none, places))

    def mask_bits(self) -> Any:
        """A mask as 16 bits."""
        return self.builder.bitcast(self.value, I16)

    def how_many(self) -> Any:
        """Set lanes of a mask."""
        found = called(self.builder, "llvm.ctpop.i16", I16, self.mask_bits())
        return self.builder.zext(found, I64)

    def reduced(self, operation: str) -> Any:
        """All lanes put together: umax, umin, add; bits of fmax, fmin."""
        name = f"llvm.vector.reduce.{operation}.v{LANES}{_NAMES[self.kind]}"
        found = called(self.builder, name, self.kind, self.value)
        return self.builder.bitcast(found, I32) if self.kind == F32 else found

    def _like(self, other: Lanes | float) -> Any:
        if isinstance(other, Lanes):
            return other.value
        return ir.Constant(self.value.type, [other] * LANES)

    def _either(self, integers: str, floats: str, other: Lanes | float) -> Lanes:
        name = floats if self.kind in (F32, F64) else integers
        return Lanes(self.builder, getattr(self.builder, name)(self.value, self._like(other)))

    def _compared(self, how: str, other: Lanes | float) -> Lanes:
        builder = self.builder
        floats = self.kind in (F32, F64)
        compare = builder.fcmp_ordered if floats else builder.icmp_unsigned
        return Lanes(builder, compare(how, self.value, self._like(other)))

    def _named(self, operation: str, *others: Lanes | float) -> Lanes:
        name = f"llvm.{operation}.v{LANES}{_NAMES[self.kind]}"
        like = [self._like(other) for other in others]
        return Lanes(self.builder, called(self.builder, name, self.value.type, self.value, *like))


class Memory:
    """An array that steps read and write sixteen elements of; it need not be aligned."""

    def __init__(self, builder: Any, pointer: Any, kind: Any) -> None:
        self.builder, self.kind = builder, kind
        self._start = builder.bitcast(pointer, kind.as_pointer())

    def load(self, at: Any, mask: Lanes | None = None) -> Lanes:
        """Elements from `at` on; zero outside the mask, where memory is not touched."""
        if mask is None:
            loaded = self.builder.load(self._place(at), align=_BYTES[self.kind])
            return Lanes(self.builder, loaded)
        name = f"llvm.masked.load.v{LANES}{_NAMES[self.kind]}.p0"
        zero = Lanes.of(self.builder, self.kind, 0).value
        align = ir.Constant(I32, _BYTES[self.kind])
        kind = zero.type
        return Lanes(
            self.builder,
            called(self.builder, name, kind, self._place(at), align, mask.value, zero),
        )

    def store(self, at: Any, lanes: Lanes, mask: Lanes | None = None) -> None:
        """Write elements from `at` on, those of the mask."""
        if mask is None:
            self.builder.store(lanes.value, self._place(at), align=_BYTES[self.kind])
            return
        name = f"llvm.masked.store.v{LANES}{_NAMES[self.kind]}.p0"
        align = ir.Constant(I32, _BYTES[self.kind])
        place = self._place(at)
        called(self.builder, name, ir.VoidType(), lanes.value, place, align, mask.value)

    def number(self, at: int) -> Any:
        """One element."""
        return self.builder.load(self.cell(index(at)))

    def cell(self, at: Any) -> Any:
        """Where one element lies."""
        return self.builder.gep(self._start, [at])

    def _place(self, at: Any) -> Any:
        return self.builder.bitcast(self.cell(at), _vector(self.kind).as_pointer())


def memories(
    context: Any, builder: Any, signature: Any, arguments: Any, kinds: Sequence[Any]
) -> list[Memory]:
    """The first arguments of an intrinsic, arrays of these kinds."""
    return [
        Memory(builder, pointer_of(context, builder, array, argument), kind)
        for kind, array, argument in zip(kinds, signature.args, arguments, strict=False)
    ]


class Variable:
    """A value that steps change; the code generator keeps it in registers."""

    def __init__(self, builder: Any, start: Any) -> None:
        self._builder = builder
        self._cell = cgutils.alloca_once(builder, start.type)
        builder.store(start, self._cell)

    def get(self) -> Any:
        """What it is now."""
        return self._builder.load(self._cell)

    def lanes(self) -> Lanes:
        """What it is now, sixteen of them."""
        return Lanes(self._builder, self.get())

    def set(self, value: Any) -> None:
        """Change it."""
        self._builder.store(value.value if isinstance(value, Lanes) else value, self._cell)


def steps(builder: Any, count: Any, step: Callable[[Any, Lanes | None], None]) -> None:
    """Call for code of `step(at, mask)` on sixteen elements each, the rest under a mask."""
    whole = builder.and_(count, index(-LANES))
    slices = cgutils.for_range_slice(builder, index(0), whole, index(LANES))
    with slices as (at, _):
        step(at, None)
    rest = builder.sub(count, whole)
    with builder.if_then(builder.icmp_signed(">", rest, index(0))):
        places = Lanes(builder, ir.Constant(_vector(I32), list(range(LANES))))
        step(whole, Lanes.spread(builder, builder.trunc(rest, I32)) > places)


def sums_of(builder: Any, eight: list[Lanes]) -> Any:
    """Sums over the lanes of eight vectors of float64, as one vector of eight."""
    shuffle = builder.shuffle_vector

    def halves(value: Any, lanes: int) -> Any:
        none = ir.Constant(value.type, ir.Undefined)
        low, high = (
            shuffle(value, none, ir.Constant(_vector(I32, lanes), list(places)))
            for places in (range(lanes), range(lanes, 2 * lanes))
        )
        return builder.fadd(low, high)

    def neighbours(x: Any, y: Any) -> Any:
        even, odd = (
            shuffle(x, y, ir.Constant(_vector(I32, 8), list(range(first, 16, 2))))
            for first in (0, 1)
        )
        return builder.fadd(even, odd)

    left = [halves(each.value, 8) for each in eight]
    while len(left) > 1:
        left = [neighbours(x, y) for x, y in zip(left[::2], left[1::2], strict=True)]
    return left[0]


@contextmanager
def repeated(builder: Any, count: Any) -> Iterator[Any]:
    """A loop; the number of its turn."""
    with cgutils.for_range(builder, count) as loop:
        yield loop.index
