"""How kernels are compiled: without the interpreter lock, and kept on disk between processes."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba import extending
from numba.core import cgutils, types
from numba.core.caching import CacheImpl, CompileResultCacheImpl, FunctionCache
from numba.core.runtime import rtsys

from metrics.engine.place import cache_folder

F = TypeVar("F", bound=Callable[..., Any])
intrinsic: Callable[[F], Any] = extending.intrinsic

_HERE = Path(__file__).parent


def _stamp() -> str:
    """Hash of all kernel sources: numba itself looks at the file of the outermost function only."""
    digest = hashlib.sha256()
    for source in sorted(_HERE.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


# Measures stages, for benchmarks.engine alone: it costs time of its own.
TIMED = bool(os.environ.get("PX_ENGINE_TIMED"))
_STAMP = f"{_stamp()} {TIMED}"


class _Locator:
    """Where the compiled code of one function lies; a folder that cannot be written still reads."""

    def __init__(self, function: Callable[..., Any], source: str) -> None:
        self._py_file = source
        self._line = function.__code__.co_firstlineno
        self._folder = cache_folder()

    @classmethod
    def from_function(cls, function: Callable[..., Any], source: str) -> _Locator:
        """As numba makes locators."""
        return cls(function, source)

    def ensure_cache_path(self) -> None:
        """Make the folder."""
        self._folder.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        """The folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """Stale code is recompiled when any kernel changed."""
        return _STAMP

    def get_disambiguator(self) -> str:
        """What tells functions of one name apart."""
        return hashlib.sha256(Path(self._py_file).name.encode()).hexdigest()[:10]


class _Impl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)

    def __init__(self, function: Callable[..., Any]) -> None:
        CacheImpl.__init__(self, function)


class _Cache(FunctionCache):  # type: ignore[misc]
    _impl_class = _Impl

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Compiled code as kept; none where the folder is closed to this process.

        Numba's own way first imports all it can compile; what was compiled needs its runtime alone,
        and a process starts 0.2 s earlier.
        """
        rtsys.initialize(target_context)
        with contextlib.suppress(OSError), self._guard_against_spurious_io_errors():
            return self._load_overload(signature, target_context)
        return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep compiled code; a process that must not write there goes without."""
        with contextlib.suppress(OSError):
            super().save_overload(signature, data)


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
        compiled._cache = _Cache(function)
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
