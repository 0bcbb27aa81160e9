"""Arrays that NumPy pickled, found in the pickle by the machine that can call nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, cast

import numpy as np

from language import say
from loaders.dtypes import canonical
from loaders.encoding import meant
from loaders.file_bytes import FileBytes
from loaders.naming import Stored
from loaders.part import RefusedError
from loaders.pickle_machine import Machine
from loaders.strided import strided

# Bytes in a program, and how many say their length.
_BYTES: Mapping[str, int] = {"SHORT_BINBYTES": 1, "BINBYTES": 4, "BINBYTES8": 8, "BYTEARRAY8": 8}


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes in a file."""

    offset: int
    length: int


@dataclass(slots=True)
class Dtype:
    """A format by NumPy's code, `f4`, and the order of its bytes."""

    code: str
    order: str = "="


@dataclass(slots=True)
class PickledArray:
    """An array: shape, format and, in place of bytes, where they are; elements if of objects."""

    shape: tuple[int, ...] = ()
    dtype: Any = None
    fortran: bool = False
    content: Any = None


class _Arrays(Machine):
    """The machine, with what arrays need beside what tensors do."""

    def step(self, opcode: str, argument: Any, position: int) -> None:
        """Bytes are left where they are."""
        if opcode in _BYTES:
            self.stack.append(Piece(position + 1 + _BYTES[opcode], len(argument)))
        else:
            super().step(opcode, argument, position)

    def build(self) -> None:
        """The state of an array or a format; any other as for tensors."""
        target = self.stack[-2]
        if isinstance(target, PickledArray):
            _, shape, target.dtype, fortran, target.content = self.stack.pop()
            target.shape, target.fortran = _counts(shape), fortran is True
        elif isinstance(target, Dtype):
            target.order = str(self.stack.pop()[1])
        else:
            super().build()


def _counts(values: Any) -> tuple[int, ...]:
    if not isinstance(values, tuple) or len(values) > 64:
        raise TypeError
    if not all(type(n) is int and 0 <= n < 1 << 48 for n in values):
        raise TypeError
    return values


_BUILDERS: Mapping[str, Callable[..., Any]] = {
    "numpy.core.multiarray._reconstruct": lambda *_: PickledArray(),
    "numpy._core.multiarray._reconstruct": lambda *_: PickledArray(),
    "numpy.core.multiarray.scalar": lambda dtype, piece: PickledArray((), dtype, False, piece),
    "numpy._core.multiarray.scalar": lambda dtype, piece: PickledArray((), dtype, False, piece),
    "numpy.dtype": lambda code, *_: Dtype(str(code)),
    "collections.OrderedDict": dict,
}


def _ordered(file: np.dtype[Any], order: str) -> np.dtype[Any]:
    return file.newbyteorder(cast(Literal["<", ">"], order)) if order in ("<", ">") else file


def pickled(bytes_: FileBytes, offset: int, where: str) -> Any:
    """What the pickle in a file describes, from byte `offset` on; arrays are `PickledArray`s.

    The file is read once from end to end, of its bytes only places are kept.
    """
    with bytes_.opened() as descriptor, open(descriptor, "rb", closefd=False) as stream:
        stream.seek(offset)
        return _Arrays(where, _BUILDERS).followed(_Bounded(stream, bytes_.size))


class _Bounded:
    """A stream that is never asked for more than is there, which would be allocated first."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream, self._size = stream, size
        self.tell, self.readline = stream.tell, stream.readline

    def read(self, count: int) -> bytes:
        """At most the rest of the file."""
        return self._stream.read(max(0, min(count, self._size - self._stream.tell())))


def array_of(bytes_: FileBytes, found: PickledArray, where: str) -> Stored:
    """A pickled array as it lies in the file."""
    dtype, piece = found.dtype, found.content
    if not isinstance(dtype, Dtype) or not isinstance(piece, Piece):
        raise RefusedError("dtype", where, say("it holds no plain numbers."))
    try:
        file = np.dtype(dtype.code)
    except (TypeError, ValueError) as error:
        raise RefusedError("dtype", where, say("it holds no plain numbers.")) from error
    if file.kind == "b":
        encoding = meant(np.dtype("u1"), "bool", None, where)
    elif canonical(file.name) == file.name:
        encoding = meant(_ordered(file, dtype.order), file.name, None, where)
    else:
        raise RefusedError(
            "dtype", where, say("it holds {name!r}; this is no tensor.", name=file.name[:40])
        )
    strides, step = [], 1
    for length in found.shape if found.fortran else reversed(found.shape):
        strides.append(step)
        step *= max(length, 1)
    source = strided(
        bytes_,
        where,
        encoding,
        offset=piece.offset,
        stored=piece.length,
        shape=found.shape,
        strides=tuple(strides if found.fortran else reversed(strides)),
    )
    return Stored(found.shape, encoding, source)
