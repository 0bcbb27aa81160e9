"""Logical formats: the names dumps declare, and whether what lies in the file can hold them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

# Formats a dump may store as raw bits in integers or opaque bytes of the same width; their bytes.
BITS: Mapping[str, int] = {
    "bfloat16": 2,
    "float16": 2,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1,
}
_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_REAL = (*BITS, "float32", "float64", "tf32", "float4_e2m1fn", *_INTEGERS, "bool")
_COMPLEX = ("complex64", "complex128")
_NUMPY_CODE = re.compile(r"[<>|=]?(?:b1|[iu][1248]|f[248]|c8|c16)")  # as in `array.dtype.str`

_ALIASES: Mapping[str, str] = {
    "bf16": "bfloat16",
    "half": "float16",
    "fp16": "float16",
    "f16": "float16",
    "float": "float32",
    "fp32": "float32",
    "f32": "float32",
    "double": "float64",
    "fp64": "float64",
    "f64": "float64",
    "tfloat32": "tf32",
    "e4m3": "float8_e4m3fn",
    "e4m3fn": "float8_e4m3fn",
    "fp8_e4m3": "float8_e4m3fn",
    "fp8_e4m3fn": "float8_e4m3fn",
    "float8_e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "fp8_e5m2": "float8_e5m2",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "byte": "uint8",
    "char": "int8",
    "cfloat": "complex64",
    "cdouble": "complex128",
}


def numpy_type(name: str) -> np.dtype[Any]:
    """The NumPy type of a format; those NumPy lacks are `ml_dtypes`, whose import takes 0.6 s."""
    if name in BITS and name != "float16":
        foreign: np.dtype[Any] = np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
        return foreign
    return np.dtype(name)


def canonical(declared: str) -> str | None:
    """Our name of a declared dtype (`torch.bfloat16`, `paddle.float32`, `fp16`), or None."""
    name = declared.strip().rpartition(".")[2].lower()
    name = _ALIASES.get(name, name)
    if _NUMPY_CODE.fullmatch(name):
        name = np.dtype(name).name
    return name if name in _REAL or name in _COMPLEX else None


def holds(storage: str, logical: str) -> bool:
    """Whether values of a logical format can lie, as values and not as bits, in a storage format.

    Floats hold anything real: dump scripts upcast. Integers hold integers and bool.
    """
    if storage in _COMPLEX or logical in _COMPLEX:
        return storage in _COMPLEX and logical in _COMPLEX
    if storage in _INTEGERS or storage == "bool":
        return logical in _INTEGERS or logical == "bool"
    return True
