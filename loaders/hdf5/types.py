"""The types of HDF5 as encodings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from h5py import h5t

from core.runs import Problem
from language import say
from loaders.dtypes import canonical
from loaders.encoding import Encoding, meant
from loaders.part import RefusedError

# (bytes, sign bit, exponent at, exponent bits, mantissa at, mantissa bits, exponent bias).
# Our own table, not h5py's: that one calls a 1-byte float16 and loses e4m3fn above 240.
_FLOATS: Mapping[tuple[int, ...], str] = {
    (8, 63, 52, 11, 0, 52, 1023): "float64",
    (4, 31, 23, 8, 0, 23, 127): "float32",
    (2, 15, 10, 5, 0, 10, 15): "float16",
    (2, 15, 7, 8, 0, 7, 127): "bfloat16",
    (1, 7, 3, 4, 0, 3, 7): "float8_e4m3fn",
    (1, 7, 2, 5, 0, 2, 15): "float8_e5m2",
}
_COMPLEX_NAMES = ([b"r", b"i"], [b"re", b"im"], [b"real", b"imag"])
_CLASS_NAMES: Mapping[int, str] = {
    h5t.STRING: "text",
    h5t.BITFIELD: say("bit fields"),
    h5t.OPAQUE: say("opaque bytes"),
    h5t.COMPOUND: "records",
    h5t.REFERENCE: say("references to other objects"),
    h5t.ENUM: say("an enumeration"),
    h5t.VLEN: say("lists of varying length"),
    h5t.ARRAY: say("small arrays"),
}


def encoding_of(
    file_type: Any, declared: str | None, where: str
) -> tuple[Encoding, Problem | None]:
    """The encoding of an HDF5 type, with the dtype the dump declares for it, if any.

    A declared name nobody knows is noted and ignored for floats; integers could be the raw bits of
    anything, so there it is a RefusedError.
    """
    file, storage = _stored(file_type, where)
    logical = None if declared is None else canonical(declared)
    if declared is None or logical is not None:
        return meant(file, storage, logical, where), None
    refusal = RefusedError(
        "dtype",
        where,
        say("its declared dtype {declared!r} is not known here.", declared=declared[:40]),
    )
    if file.kind in "iu":
        raise refusal
    taken = Problem(
        "dtype",
        where,
        say("{reason} It is read as {storage}.", reason=refusal.reason, storage=storage),
    )
    return meant(file, storage, None, where), taken


def _stored(file_type: Any, where: str) -> tuple[np.dtype[Any], str]:
    """NumPy type of the bytes, and the name of what they are."""
    kind, size = file_type.get_class(), file_type.get_size()
    if kind == h5t.INTEGER and file_type.get_precision() == 8 * size and size in (1, 2, 4, 8):
        sign = "i" if file_type.get_sign() == h5t.SGN_2 else "u"
        file = np.dtype(f"{_order(file_type)}{sign}{size}")
        return file, file.name
    if kind == h5t.FLOAT and (name := _float_name(file_type)):
        letter = "f" if name in ("float16", "float32", "float64") else "u"
        return np.dtype(f"{_order(file_type)}{letter}{size}"), name
    if kind == h5t.ENUM and size == 1 and file_type.get_nmembers() == 2:
        return np.dtype("u1"), "bool"
    if kind == h5t.OPAQUE and size in (1, 2):
        return np.dtype(f"<u{size}"), "opaque"
    if kind in (h5t.COMPOUND, h5t.COMPLEX) and (part := _part_of_complex(file_type)):
        file = np.dtype(f"{_order(part)}c{size}")
        return file, file.name
    what = _CLASS_NAMES.get(kind, say("numbers of an unknown format"))
    raise RefusedError(
        "dtype",
        where,
        say("it holds {what} ({size} bytes each), which are no tensor.", what=what, size=size),
    )


def _float_name(file_type: Any) -> str | None:
    if file_type.get_order() not in (h5t.ORDER_LE, h5t.ORDER_BE):
        return None
    fields = (*file_type.get_fields(), file_type.get_ebias())
    return _FLOATS.get((file_type.get_size(), *fields))


def _part_of_complex(file_type: Any) -> Any | None:
    """The float type both halves of a complex number share, None for any other record."""
    if file_type.get_class() == h5t.COMPLEX:
        parts = [file_type.get_super()]
    elif file_type.get_nmembers() == 2:
        if [file_type.get_member_name(i).lower() for i in (0, 1)] not in _COMPLEX_NAMES:
            return None
        parts = [file_type.get_member_type(i) for i in (0, 1)]
        if not parts[0].equal(parts[1]) or file_type.get_member_offset(0) != 0:
            return None
    else:
        return None
    size = file_type.get_size()
    fits = parts[0].get_class() == h5t.FLOAT and parts[0].get_size() * 2 == size
    known = fits and _float_name(parts[0]) in ("float32", "float64")
    return parts[0] if known else None


def _order(file_type: Any) -> str:
    return ">" if file_type.get_order() == h5t.ORDER_BE else "<"
