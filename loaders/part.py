"""What a loader makes of one file: tensors with sources of their values, and what it refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

from core.errors import LoadError
from core.runs import Array, Problem, Selection
from core.tensors import TensorInfo
from language import say, sentences
from loaders.limits import Limits


class RefusedError(LoadError):
    """An item that cannot or must not be read, on its way to becoming a problem of the run."""

    def __init__(self, code: str, where: str, reason: str, hint: str = "") -> None:
        super().__init__(say("{where}: {reason}", where=where, reason=reason), hint)
        self.code, self.where, self.reason = code, where, reason

    def __reduce__(self) -> tuple[type, tuple[str, ...]]:  # type: ignore[override]
        return type(self), (self.code, self.where, self.reason, self.hint)

    @property
    def problem(self) -> Problem:
        """The refusal as a value."""
        return Problem(self.code, self.where, sentences((self.reason, self.hint)))


class Source(Protocol):
    """The values of one tensor. Small, picklable, holds no open file.

    `seekable`: chunks from the middle on cost no more than from the beginning.
    """

    seekable: ClassVar[bool]

    def chunks(self, elements: int, start: int = 0) -> Iterator[Array]:
        """Flat row-major stretches of exactly `elements` from element `start` on, in order.

        The last one is shorter.
        """

    def read(self, selection: Selection) -> Array:
        """The selected part, an array of its own: integers drop an axis, slices keep it."""


@dataclass(frozen=True, slots=True)
class DumpFile:
    """One file of a dump on its way to a loader; `name` is its escaped path within the dump.

    `beside` are the files that its format says are its own, by path relative to its folder: regular
    files of the dump, none a link. A loader opens no others, whatever the file speaks of.
    """

    path: Path
    name: str
    limits: Limits = field(default_factory=Limits)
    beside: Mapping[str, DumpFile] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
    """The contribution of one file, tensors in its execution order.

    A loader leaves `TensorInfo.id` equal to the name and numbers `order` as it likes: both are set
    when the files of a dump are put together. `calls`: a name that stands in several files of the
    format, in one step and rank, is the same tensor of another call. `process` is the number of the
    process that wrote the file, of a dump that knows no ranks.
    """

    items: tuple[tuple[TensorInfo, Source], ...]
    provenance: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    calls: bool = False
    process: int | None = None
