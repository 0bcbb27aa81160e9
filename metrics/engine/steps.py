"""Loops over arrays, sixteen elements a step, while a kernel is generated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from metrics.engine.jit import pointer_of
from metrics.engine.lanes import (
    F32,
    F64,
    I16,
    I32,
    I64,
    LANES,
    NAMES,
    Lanes,
    called,
    index,
    vector,
)

_BYTES = {I16: 2, I32: 4, I64: 8, F32: 4, F64: 8}


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
        name = f"llvm.masked.load.v{LANES}{NAMES[self.kind]}.p0"
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
        name = f"llvm.masked.store.v{LANES}{NAMES[self.kind]}.p0"
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
        return self.builder.bitcast(self.cell(at), vector(self.kind).as_pointer())


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
        places = Lanes(builder, ir.Constant(vector(I32), list(range(LANES))))
        step(whole, Lanes.spread(builder, builder.trunc(rest, I32)) > places)


def sums_of(builder: Any, eight: list[Lanes]) -> Any:
    """Sums over the lanes of eight vectors of float64, as one vector of eight."""
    shuffle = builder.shuffle_vector

    def halves(value: Any, lanes: int) -> Any:
        none = ir.Constant(value.type, ir.Undefined)
        low, high = (
            shuffle(value, none, ir.Constant(vector(I32, lanes), list(places)))
            for places in (range(lanes), range(lanes, 2 * lanes))
        )
        return builder.fadd(low, high)

    def neighbours(x: Any, y: Any) -> Any:
        even, odd = (
            shuffle(x, y, ir.Constant(vector(I32, 8), list(range(first, 16, 2))))
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
