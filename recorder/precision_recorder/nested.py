"""Tensors inside the arguments and results of a call, by path: `0`, `1.0`, `last_hidden_state`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch


def tensors_in(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, tensor) in order; a bare tensor has the path `0`."""
    if isinstance(value, torch.Tensor):
        yield path or "0", value
        return
    for key, item in _items(value):
        yield from tensors_in(item, f"{path}.{key}" if path else str(key))


def tensors_in_call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(path, tensor) of a call: positions first, then keywords."""
    yield from (pair for i, item in enumerate(args) for pair in tensors_in(item, str(i)))
    yield from (pair for key, item in kwargs.items() for pair in tensors_in(item, key))


def replaced(value: Any, change: Callable[[Any], Any]) -> Any:
    """The value with every tensor in plain tuples, lists and dicts changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if type(value) in (tuple, list):
        return type(value)(replaced(item, change) for item in value)
    if type(value) is dict:
        return {key: replaced(item, change) for key, item in value.items()}
    return value


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, Mapping):  # model outputs of transformers are mappings
        yield from value.items()
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from zip(value._fields, value, strict=True)
    elif isinstance(value, tuple | list):
        yield from enumerate(value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value))
