"""The header of a `.npy` file: shape, order of axes and format, without the values."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from loaders.dtypes import canonical
from loaders.encoding import Encoding, meant
from loaders.part import RefusedError

SIGNATURE = b"\x93NUMPY"
LONGEST = 1 << 16  # bytes of a header that are looked at

_OPAQUE = {1: "u1", 2: "<u2"}


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before the values, which begin at byte `offset`; `inferred`: format guessed."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    encoding: Encoding
    inferred: bool


def header_of(head: bytes, declared: str | None, where: str) -> Header:
    """The header at the beginning of some bytes; `declared` is the format a dump speaks of.

    Elements of a Python object are refused: reading them would unpickle.
    """
    shape, fortran, file, offset = _parsed(head, where)
    if len(shape) > 64 or any(not 0 <= length < 1 << 62 for length in shape):
        raise RefusedError("damaged", where, "its header declares an impossible shape.")
    logical = None if declared is None else canonical(declared)
    encoding = _encoding(file, logical, where)
    strides, step = [], 1
    for length in shape if fortran else reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    ordered = tuple(strides if fortran else reversed(strides))
    inferred = file.kind == "V" and logical is None
    return Header(offset, shape, ordered, encoding, inferred)


def _parsed(head: bytes, where: str) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    stream = io.BytesIO(head[:LONGEST])
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 2 headers are read too
            version = np.lib.format.read_magic(stream)
            shape, fortran, file = read[version](stream)
    except (ValueError, KeyError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        code = "truncated" if len(head) < 128 else "damaged"
        raise RefusedError(code, where, "its header cannot be understood.") from error
    return tuple(shape), bool(fortran), file, stream.tell()


def _encoding(file: np.dtype[Any], logical: str | None, where: str) -> Encoding:
    if file.kind == "V" and file.names is None and file.subdtype is None:
        if file.itemsize in _OPAQUE:
            # Of the formats NumPy knows only by extension, one alone has two bytes.
            guess = logical or ("bfloat16" if file.itemsize == 2 else None)
            return meant(np.dtype(_OPAQUE[file.itemsize]), "opaque", guess, where)
    elif file.kind == "b":
        return meant(np.dtype("u1"), "bool", logical, where)
    elif canonical(file.name) == file.name:
        return meant(file, file.name, logical, where)
    what = "Python objects, which are never unpickled" if file.hasobject else f"{file.name[:40]!r}"
    raise RefusedError("dtype", where, f"it holds {what}; this is no tensor.")
