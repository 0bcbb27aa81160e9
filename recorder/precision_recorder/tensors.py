"""Tensors of the framework turned into values for the file, and told apart from one another."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from precision_recorder.values import Values

_RAW = {1: (torch.uint8, "<u1"), 2: (torch.int16, "<u2")}


class UnstorableError(Exception):
    """The tensor has no dense values on this rank that a file could hold."""


def dtype_name(tensor: Any) -> str:
    """Logical format by the framework's name: `bfloat16`, `float8_e4m3fn`."""
    return str(tensor.dtype).removeprefix("torch.")


def copied(tensor: Any) -> Values:
    """A private copy of the tensor's present values on the host."""
    reason = _unstorable(tensor)
    if reason:
        raise UnstorableError(reason)
    try:
        with torch.no_grad():
            dense = tensor.detach().resolve_conj().resolve_neg()
            host = dense.clone(memory_format=torch.contiguous_format).cpu()
            return Values(_bits(host), dtype_name(tensor))
    except (RuntimeError, TypeError, NotImplementedError) as error:  # exotic subclasses
        raise UnstorableError(f"{type(tensor).__name__}: {error}") from error


def _bits(host: Any) -> Any:
    name = dtype_name(host)
    if hasattr(np, name) or name == "bool":
        return host.numpy()
    raw, code = _RAW[host.element_size()]
    return host.view(raw).numpy().view(code)


def _unstorable(tensor: Any) -> str:
    if tensor.device.type == "meta":
        return "a meta tensor has no values"
    if tensor.layout != torch.strided:
        return f"layout {tensor.layout} is not dense"
    if tensor.is_quantized or tensor.dtype == torch.complex32:
        return f"dtype {dtype_name(tensor)} is not supported"
    return ""


@dataclass(frozen=True, slots=True)
class Identity:
    """A tensor as it is now: its memory, its owner, how often it was written to."""

    key: tuple[Any, ...]
    owner: weakref.ref[Any]
    version: int


def identity_of(tensor: Any) -> Identity | None:
    """Identity of a tensor, or None where that cannot be told."""
    if tensor.is_inference() or tensor.numel() == 0:
        return None  # inference tensors do not count their versions
    shape, stride = tuple(tensor.shape), tensor.stride()
    key = (tensor.data_ptr(), shape, stride, tensor.dtype, tensor.device)
    return Identity(key, weakref.ref(tensor), tensor._version)


class Identities:
    """Remembers where tensors were written, each for as long as it lives and stays unchanged."""

    def __init__(self) -> None:
        self._seen: dict[tuple[Any, ...], tuple[Identity, str]] = {}

    def path_of(self, identity: Identity | None) -> str:
        """Path at which these very values stand already, or empty."""
        if identity is None or identity.key not in self._seen:
            return ""
        before, path = self._seen[identity.key]
        alive = before.owner() is not None  # else the memory may belong to someone else by now
        return path if alive and before.version == identity.version else ""

    def remember(self, identity: Identity | None, path: str) -> None:
        """The values of the tensor were written at this path."""
        if identity is not None and not self.path_of(identity):
            self._seen[identity.key] = (identity, path)
