"""The numbers and words a call was made with: what a replay needs beside the tensors."""

from __future__ import annotations

import enum
import functools
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

_LONGEST_LIST = 64
_LONGEST_TEXT = 400

# Positional names of functions that are written in C and have no signature to inspect.
_POSITIONS: Mapping[str, tuple[str, ...]] = {
    "scaled_dot_product_attention": (
        "query", "key", "value", "attn_mask", "dropout_p", "is_causal",
    ),
    "linear": ("input", "weight", "bias"),
    "softmax": ("input", "dim", "dtype"),
    "log_softmax": ("input", "dim", "dtype"),
    "gelu": ("input",),
    "matmul": ("input", "other"),
    "bmm": ("input", "mat2"),
    "mm": ("input", "mat2"),
    "add": ("input", "other"),
    "sub": ("input", "other"),
    "mul": ("input", "other"),
    "div": ("input", "other"),
    "pow": ("input", "exponent"),
    "mean": ("input", "dim", "keepdim"),
    "sum": ("input", "dim", "keepdim"),
    "cat": ("tensors", "dim"),
    "stack": ("tensors", "dim"),
    "masked_fill": ("input", "mask", "value"),
    "where": ("condition", "input", "other"),
    "clamp": ("input", "min", "max"),
    "topk": ("input", "k", "dim", "largest", "sorted"),
    "gather": ("input", "dim", "index"),
    "index_select": ("input", "dim", "index"),
    "cumsum": ("input", "dim"),
    "to": ("input", "dtype"),
}  # fmt: skip


def plain(value: Any) -> Any:
    """The value as JSON can hold it, or None when it is no scalar, word or short list of them."""
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return value[:_LONGEST_TEXT]
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, torch.dtype | torch.device):
        return str(value).removeprefix("torch.")
    if isinstance(value, tuple | list) and len(value) <= _LONGEST_LIST:
        items = [plain(item) for item in value]
        return None if None in items else items
    return value.__name__ if inspect.isroutine(value) else None


def module_scalars(module: Any) -> dict[str, Any]:
    """Public scalar attributes of a module: eps, p, num_heads, is_causal."""
    found = ((name, plain(value)) for name, value in vars(module).items() if name[0] != "_")
    return {name: value for name, value in found if value is not None}


def call_scalars(
    names: tuple[str, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Non-tensor arguments of a call by name, or `arg1` where a position has no known name."""
    found = [(_name(names, i), plain(value)) for i, value in enumerate(args)]
    found += [(key, plain(value)) for key, value in kwargs.items() if key[0] != "_"]
    return {name: value for name, value in found if value is not None}


def argument_names(function: Callable[..., Any], op: str) -> tuple[str, ...]:
    """Names of the positional parameters of a function, as far as they can be known."""
    return _schema(function) or _signature(function) or _POSITIONS.get(op, ())


def named(names: tuple[str, ...], path: str) -> str:
    """Formal name of the parameter that an argument path belongs to, or empty."""
    head = path.split(".", 1)[0]
    if not head.isdigit():
        return head
    return names[int(head)] if int(head) < len(names) else ""


def _schema(function: Any) -> tuple[str, ...]:
    overloads = getattr(function, "overloads", None)
    chosen = getattr(function, overloads()[0]) if overloads is not None else function
    schema = getattr(chosen, "_schema", None)
    return () if schema is None else tuple(argument.name for argument in schema.arguments)


def _name(names: tuple[str, ...], position: int) -> str:
    return names[position] if position < len(names) else f"arg{position}"


@functools.lru_cache(maxsize=4096)
def _signature(function: Callable[..., Any]) -> tuple[str, ...]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C
        return ()
    return tuple(_positional(parameters))


def _positional(parameters: Any) -> Iterator[str]:
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            return
        yield parameter.name
