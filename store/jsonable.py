"""Frozen values to JSON types and back; floats survive bit for bit, NaN and infinities included."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from language import Said, restored

_SAID = {"said", "values"}  # what a text that can be said again is kept as
_MARK = "\x1f"  # before JSON of it; names of tensors are shown without control characters


def to_plain(value: Any) -> Any:
    """A value as JSON types: dataclasses and mappings become objects, tuples and arrays lists."""
    if isinstance(value, Said):
        return {"said": value.template, "values": to_plain(value.values)}
    if is_dataclass(value):
        return {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return to_plain(value.tolist())
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value.timestamp() if isinstance(value, datetime) else value


def from_plain(hint: Any, value: Any) -> Any:
    """The value of type `hint` that `to_plain` made `value` from.

    Unknown keys of a dataclass are dropped and absent ones take their default, so that files of an
    older version still load.
    """
    if value is None or hint is Any:
        return value
    hint = without_none(hint)
    if isinstance(value, Mapping) and value.keys() == _SAID:
        return _said(value)
    if isinstance(hint, type) and is_dataclass(hint):
        known = get_type_hints(hint)
        return hint(**{k: from_plain(known[k], v) for k, v in value.items() if k in known})
    origin = get_origin(hint)
    if origin is tuple:
        return tuple(from_plain(get_args(hint)[0], item) for item in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: from_plain(get_args(hint)[1], item) for key, item in value.items()}
    if hint is datetime:
        return datetime.fromtimestamp(value, UTC)
    return float(value) if hint is float else value


def to_text(value: str) -> str:
    """A text for a place that holds text alone, so that `from_text` gives it back."""
    return _MARK + json.dumps(to_plain(value)) if isinstance(value, Said) else value


def from_text(kept: str) -> str:
    """The text that `to_text` was given."""
    if not kept.startswith(_MARK):
        return kept
    try:
        value = json.loads(kept[len(_MARK) :])
    except ValueError:
        return kept
    return _said(value) if isinstance(value, dict) and value.keys() == _SAID else kept


def _said(kept: Mapping[str, Any]) -> str:
    values = kept["values"].items()
    again = {name: _said(v) if isinstance(v, Mapping) else v for name, v in values}
    return restored(kept["said"], again)


def without_none(hint: Any) -> Any:
    """`X` for `X | None`, any other hint unchanged."""
    if get_origin(hint) in (Union, types.UnionType):
        present = [arg for arg in get_args(hint) if arg is not types.NoneType]
        return present[0] if len(present) == 1 else hint
    return hint
