"""How kernels are compiled: without the interpreter lock, and kept on disk between processes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba import extending
from numba.core import cgutils, types

from metrics.engine.kept import TIMED, KeptCode

F = TypeVar("F", bound=Callable[..., Any])
intrinsic: Callable[[F], Any] = extending.intrinsic


def inlined(function: F) -> F:
    """Compile a part of a kernel; floats as IEEE 754 says."""
    return cast(F, numba.njit(nogil=True, error_model="numpy")(function))


def summing(function: F) -> F:
    """Compile a part of a kernel whose sums may be taken in several lanes, products fused in."""
    options = {"reassoc", "nsz", "contract"}
    return cast(F, numba.njit(nogil=True, error_model="numpy", fastmath=options)(function))


def kernel(function: F) -> F:
    """Compile what Python calls, and keep the code on disk."""
    compiled = numba.njit(nogil=True, error_model="numpy")(function)
    if not os.environ.get("NUMBA_DISABLE_JIT"):
        compiled._cache = KeptCode(function)
    return cast(F, compiled)


@intrinsic
def leading_zeros(typing_context: Any, value: Any) -> Any:  # noqa: ARG001
    """Zero bits above the highest set bit of an unsigned integer; its width for 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.ctlz(arguments[0], cgutils.false_bit)

    return value(value), generate


@intrinsic
def trailing_zeros(typing_context: Any, value: Any) -> Any:  # noqa: ARG001
    """Zero bits below the lowest set bit of an unsigned integer that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.int64(types.uint64), generate


@intrinsic
def ones(typing_context: Any, value: Any) -> Any:  # noqa: ARG001
    """Set bits of an unsigned integer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic
def float_of_bits(typing_context: Any, value: Any) -> Any:  # noqa: ARG001
    """The float64 of 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.uint64), generate


@intrinsic
def bits_of_float(typing_context: Any, value: Any) -> Any:  # noqa: ARG001
    """The 64 bits of a float64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.bitcast(arguments[0], context.get_value_type(types.uint64))

    return types.uint64(types.float64), generate


@intrinsic
def float32_of_bits(typing_context: Any, value: Any) -> Any:  # noqa: ARG001
    """The float32 of 32 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.bitcast(arguments[0], context.get_value_type(types.float32))

    return types.float32(types.uint32), generate


@intrinsic
def _pointer(typing_context: Any, address: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.inttoptr(arguments[0], context.get_value_type(types.CPointer(types.uint8)))

    return types.CPointer(types.uint8)(types.int64), generate


@inlined
def bytes_at(address: int, count: int) -> Any:
    """Memory as bytes. An address takes arrays of every type, read-only ones too."""
    return numba.carray(_pointer(address), count)


def pointer_of(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """Where the elements of an array begin, while code is generated."""
    return context.make_array(kind)(context, builder, array).data


@intrinsic
def borrowed(typing_context: Any, array: Any) -> Any:  # noqa: ARG001
    """The same array without an owner, so that views of it count no references.

    The caller keeps it alive. Counting costs more than some stages of a block.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (array_type,) = signature.args
        view = context.make_array(array_type)(context, builder, arguments[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()

    return array(array), generate


@intrinsic
def _cycles(typing_context: Any) -> Any:  # noqa: ARG001
    """The processor's time stamp counter."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        kind = ir.FunctionType(ir.IntType(64), [])
        counter = builder.module.declare_intrinsic("llvm.readcyclecounter", (), kind)
        return builder.call(counter, [])

    return types.int64(), generate


@inlined
def tick(clock: Any, stage: int) -> None:
    """The time since the last call belongs to `stage`; nothing unless stages are measured."""
    if TIMED:
        now = _cycles()
        clock[stage] += now - clock[0]
        clock[0] = now


def touch(builder: Any, address: Any) -> None:
    """Generate a request for the cache line at an address, which need not be readable."""
    pointer = ir.IntType(8).as_pointer()
    word = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [pointer, word, word, word])
    prefetch = builder.module.declare_intrinsic("llvm.prefetch", (pointer,), kind)
    builder.call(prefetch, [builder.inttoptr(address, pointer), word(0), word(2), word(1)])
