"""Attributes as plain Python values, within bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5s, h5t

from language import say
from loaders.limits import Limits
from loaders.names import escaped
from loaders.part import RefusedError

_TEXT = h5py.string_dtype()
_MOST_TEXTS = 64  # strings of varying length in one attribute; each lies elsewhere in the file


def attributes_of(item: Any, limits: Limits, where: str) -> dict[str, Any]:
    """All attributes that are numbers or text, or arrays of them; others are left out.

    The caller holds the library. Strings come back as str, arrays as lists.
    """
    count = h5a.get_num_attrs(item)
    names: list[bytes] = []
    if 0 < count <= limits.attributes:
        h5a.iterate(item, names.append)
    elif count:
        raise RefusedError("attributes", where, say("it has {count} attributes.", count=count))
    values = {escaped(name): _value(h5a.open(item, name), limits) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _value(attribute: Any, limits: Limits) -> Any:
    file_type, space = attribute.get_type(), attribute.get_space()
    if space.get_simple_extent_type() == h5s.NULL:
        return None
    kind, count = file_type.get_class(), space.get_simple_extent_npoints()
    if kind == h5t.STRING and file_type.is_variable_str():
        dtype = _TEXT if count <= _MOST_TEXTS else None
    elif count * file_type.get_size() > limits.attribute:
        dtype = None
    else:
        dtype = _memory_dtype(file_type, kind)
    if dtype is None:
        return None
    array = np.empty(space.shape, dtype)
    attribute.read(array)
    return _plain(array.tolist(), limits)


def _memory_dtype(file_type: Any, kind: int) -> Any:
    if kind == h5t.STRING:
        return np.dtype(f"S{file_type.get_size()}")
    if kind == h5t.INTEGER and file_type.get_size() <= 8:
        return np.dtype("i8" if file_type.get_sign() == h5t.SGN_2 else "u8")
    if kind == h5t.FLOAT and file_type.get_size() <= 8:
        return np.dtype("f8")
    is_bool = kind == h5t.ENUM and file_type.get_size() == 1 and file_type.get_nmembers() == 2
    return np.dtype(bool) if is_bool else None


def _plain(value: Any, limits: Limits) -> Any:
    if isinstance(value, list):
        return [_plain(each, limits) for each in value]
    if isinstance(value, bytes):
        return value[: limits.attribute].decode("utf-8", "replace")
    return value[: limits.attribute] if isinstance(value, str) else value


def text_of(attributes: Mapping[str, Any], *names: str) -> str | None:
    """The first of these attributes that is a non-empty text."""
    found = (attributes.get(name) for name in names)
    return next((value for value in found if isinstance(value, str) and value), None)


def number_of(attributes: Mapping[str, Any], name: str) -> int | None:
    """An attribute that is a non-negative whole number."""
    value = attributes.get(name)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    is_number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if is_number else None
