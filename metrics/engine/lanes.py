"""Sixteen neighbouring elements at once: vector instructions, said outright.

A loop's step is written once in Python with `Lanes` while numba generates code. The code generator
splits sixteen lanes over the registers of the machine, whatever their width; every lane keeps its
own sum, so the result is the same on all of them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

LANES = 16
I1, I16, I32, I64 = (ir.IntType(width) for width in (1, 16, 32, 64))
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()
NAMES = {I1: "i1", I16: "i16", I32: "i32", I64: "i64", F32: "f32", F64: "f64"}


def index(value: int) -> Any:
    """A constant position."""
    return ir.Constant(I64, value)


def vector(kind: Any, lanes: int = LANES) -> Any:
    """The type of some lanes of a kind."""
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
        return cls(builder, ir.Constant(vector(kind), [number] * LANES))

    @classmethod
    def spread(cls, builder: Any, value: Any) -> Lanes:
        """The same computed value everywhere."""
        none = ir.Constant(vector(value.type), ir.Undefined)
        first = builder.insert_element(none, value, ir.Constant(I32, 0))
        places = ir.Constant(vector(I32), [0] * LANES)
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
        name = f"llvm.ctlz.v{LANES}{NAMES[self.kind]}"
        no = ir.Constant(I1, 0)
        return Lanes(self.builder, called(self.builder, name, self.value.type, self.value, no))

    def bits_as(self, kind: Any) -> Lanes:
        """The same bits as another kind of the same width."""
        return Lanes(self.builder, self.builder.bitcast(self.value, vector(kind)))

    def widened(self, kind: Any = F64) -> Lanes:
        """The same numbers as a wider kind of integers or floats."""
        widen = self.builder.fpext if kind in (F32, F64) else self.builder.zext
        return Lanes(self.builder, widen(self.value, vector(kind)))

    def rounded_integers(self) -> Lanes:
        """Floats that hold small integers, as integers."""
        return Lanes(self.builder, self.builder.fptoui(self.value, vector(I32)))

    def upper_halves(self) -> Lanes:
        """The upper 32 of each 64 bits."""
        pairs = self.builder.bitcast(self.value, vector(I32, 2 * LANES))
        places = ir.Constant(vector(I32), list(range(1, 2 * LANES, 2)))
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
        name = f"llvm.vector.reduce.{operation}.v{LANES}{NAMES[self.kind]}"
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
        name = f"llvm.{operation}.v{LANES}{NAMES[self.kind]}"
        like = [self._like(other) for other in others]
        return Lanes(self.builder, called(self.builder, name, self.value.type, self.value, *like))
