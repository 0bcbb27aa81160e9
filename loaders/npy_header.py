"""The header of a `.npy` file: shape, order of axes and format, without the values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from language import say
from loaders.dtypes import canonical
from loaders.encoding import Encoding, meant
from loaders.part import RefusedError

SIGNATURE = b"\x93NUMPY"
LONGEST = 1 << 16  # bytes of a header that are looked at

# Formats of one number; records are lists, and what has commas is several.
_DESCR = re.compile(rb"""['"]descr['"]\s*:\s*['"]([<>|=]?[biufcOSUVmM?]\d{0,4})['"]""")
_FORTRAN = re.compile(rb"""['"]fortran_order['"]\s*:\s*(True|False)""")
_SHAPE = re.compile(rb"""['"]shape['"]\s*:\s*\(([\d\sL,]{0,2000})\)""")
_LENGTH = re.compile(rb"\d{1,18}L?")  # L: written by Python 2
_OPAQUE = {1: "u1", 2: "<u2"}


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before the values, which begin at byte `offset`; `inferred`: format guessed."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    encoding: Encoding
    inferred: bool
    fortran: bool


def header_of(head: bytes, declared: str | None, where: str) -> Header:
    """The header at the beginning of some bytes; `declared` is the format a dump speaks of.

    Elements of a Python object are refused: reading them would unpickle.
    """
    shape, fortran, file, offset = _parsed(head, where)
    if len(shape) > 64 or any(length >= 1 << 48 for length in shape):
        raise RefusedError("damaged", where, say("its header declares an impossible shape."))
    logical = None if declared is None else canonical(declared)
    encoding = _encoding(file, logical, where)
    strides, step = [], 1
    for length in shape if fortran else reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    ordered = tuple(strides if fortran else reversed(strides))
    inferred = file.kind == "V" and logical is None
    return Header(offset, shape, ordered, encoding, inferred, fortran)


def _parsed(head: bytes, where: str) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, order, format and length of a header.

    NumPy's own reader gives the text to Python's parser, which a crafted one can hurt.
    """
    text, offset = _text(head, where)
    descr, fortran, shape = (pattern.search(text) for pattern in (_DESCR, _FORTRAN, _SHAPE))
    if not (fortran and shape) or (descr is None and b"descr" not in text):
        raise RefusedError("damaged", where, say("its header cannot be understood."))
    try:
        file = np.dtype(descr[1].decode() if descr else "")
    except TypeError as error:
        raise RefusedError("dtype", where, say("it holds no plain numbers.")) from error
    lengths = shape[1].replace(b",", b" ").split()
    if not all(map(_LENGTH.fullmatch, lengths)):
        raise RefusedError("damaged", where, say("its header declares an impossible shape."))
    return tuple(int(n.rstrip(b"L")) for n in lengths), fortran[1] == b"True", file, offset


def header_end(head: bytes, where: str) -> int:
    """Where what follows the header begins."""
    return _text(head, where)[1]


def _text(head: bytes, where: str) -> tuple[bytes, int]:
    """The text of a header, and where it ends; its length has two bytes or, later on, four."""
    digits = {1: 2, 2: 4, 3: 4}.get(head[6] if len(head) > 6 else 1)
    if digits is None or not (head.startswith(SIGNATURE) or SIGNATURE.startswith(head)):
        raise RefusedError("damaged", where, say("its header is of no version known here."))
    start = 8 + digits
    end = start + int.from_bytes(head[8:start], "little")
    if end > LONGEST:
        raise RefusedError("damaged", where, say("its header is too long."))
    if len(head) < start or len(head) < end:
        raise RefusedError("truncated", where, say("it ends within its header."))
    return head[start:end], end


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
    what = (
        say("Python objects, which are never unpickled")
        if file.hasobject
        else f"{file.name[:40]!r}"
    )
    raise RefusedError("dtype", where, say("it holds {what}; this is no tensor.", what=what))
