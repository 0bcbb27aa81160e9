"""Tensors of which a dump holds no values, only what it says of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from core.errors import NotHereError
from core.runs import Array, Selection
from core.tensors import TensorSummary
from language import say
from loaders.part import RefusedError

_SIZE = re.compile(r"torch\.Size\(\[((?:\d{1,14}(?:,\s*)?){0,64})\]\)")
# Root mean square of the relative error of rounding a number to a format, 0.4247 2^-p.
_ROUNDED = {"bfloat16": 1.66e-3, "float16": 2.07e-4, "float32": 2.53e-8}


@dataclass(frozen=True, slots=True)
class Told:
    """A tensor as a dump without values tells of it; `inferred`: its format was guessed."""

    shape: tuple[int, ...]
    dtype: str
    summary: TensorSummary
    inferred: bool = False


@dataclass(frozen=True, slots=True)
class Absent:
    """Stands where values would be."""

    where: str
    seekable: ClassVar[bool] = True

    def chunks(self, elements: int, start: int = 0) -> Iterator[Array]:  # noqa: ARG002
        """NotHereError."""
        raise self._error()

    def read(self, selection: Selection) -> Array:  # noqa: ARG002
        """NotHereError."""
        raise self._error()

    def _error(self) -> NotHereError:
        hint = say("Dump again with values to look inside; statistics are compared as they are.")
        return NotHereError(
            say("The dump holds no values of {where}, only statistics.", where=self.where), hint
        )


def told(value: Any) -> float | None:
    """A number a dump states, NaN and infinities included; None for anything else."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        return _parsed(value)
    if not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def lengths(shape: Any, where: str) -> tuple[int, ...]:
    """A shape that a dump states; RefusedError where no tensor can have it."""
    stated = shape if isinstance(shape, list) else [None]
    if len(stated) > 64 or not all(type(n) is int and 0 <= n < 1 << 48 for n in stated):
        raise RefusedError("damaged", where, say("its stated shape is impossible."))
    return tuple(stated)


def torch_size(text: str) -> tuple[int, ...] | None:
    """The shape in `torch.Size([2, 3])`; None for anything else."""
    match = _SIZE.fullmatch(text.strip())
    return tuple(int(n) for n in match[1].replace(",", " ").split()) if match else None


def rounding_of(dtype: str) -> float:
    """Relative error of statistics that were computed in the tensor's own format."""
    return _ROUNDED.get(dtype, 0.0)


def _parsed(text: str) -> float | None:
    try:
        return float(text) if len(text) < 64 else None
    except ValueError:
        return None
