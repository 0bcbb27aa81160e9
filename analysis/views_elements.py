"""Single elements of a pair: the worst ones, and one that a link names, with all their bits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from analysis.elementwise import difference, float_values, numpy_dtype, ulps_apart
from analysis.views_blocks import Blocks
from analysis.views_cut import Grid
from core.errors import SelectionError
from core.runs import Run
from core.tensors import TensorInfo
from language import say
from metrics.engine import blocks as blocks_of

Array = NDArray[Any]
CHUNK = 1 << 20
_STRETCH = (
    1 << 12
)  # elements that are looked at one by one where one of them may be among the worst


@dataclass(frozen=True, slots=True)
class Bits:
    """A value as stored in its logical format: hexadecimal, and binary digits by field.

    `fields` is (sign, exponent, mantissa) of a float, one field for integers and booleans. `exact`
    is False when the dump holds more precision than its logical format can.
    """

    hexadecimal: str
    fields: tuple[str, ...]
    dtype: str
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Element:
    """One element as both sides hold it.

    `error` and `ulps` are NaN when a side is not finite, 0 when both hold the same such value.
    """

    index: tuple[int, ...]
    reference: float | int | bool | complex
    candidate: float | int | bool | complex
    error: float
    ulps: float
    bits: tuple[Bits | None, Bits | None]


def worst_elements(
    reference: Run,
    candidate: Run,
    *,
    reference_id: str,
    candidate_id: str,
    dtype: str,
    count: int = 20,
) -> tuple[Element, ...]:
    """The elements with the largest |error|, worst first, equal ones by position.

    Values that are non-finite on one side only, or differ there, come before all others. Elements
    without error are left out. Memory is bounded by one chunk of each side.
    """
    worst = _Worst(count)
    start = 0
    chunks = zip(
        reference.chunks(reference_id, CHUNK), candidate.chunks(candidate_id, CHUNK), strict=True
    )
    for a, b in chunks:
        for at in _promising(a, b, dtype, worst.bar):
            worst.add(severity(a[at : at + _STRETCH], b[at : at + _STRETCH]), start + at)
        start += a.size
    sides = reference[reference_id], candidate[candidate_id]
    return tuple(
        _element(reference, candidate, sides, _unravel(int(place), sides[0].shape), dtype)
        for place in worst.places
    )


def element(
    reference: Run,
    candidate: Run,
    *,
    reference_id: str,
    candidate_id: str,
    dtype: str,
    index: tuple[int, ...],
) -> Element:
    """The element at an index."""
    sides = reference[reference_id], candidate[candidate_id]
    shape = sides[0].shape
    fits = len(index) == len(shape) and all(0 <= i < n for i, n in zip(index, shape, strict=True))
    if not fits or sides[1].shape != shape:
        raise SelectionError(
            say(
                "{index} is not an element of {name}, whose shape is {shape}.",
                index=list(index),
                name=sides[0].name,
                shape=list(shape),
            ),
            say("Pick an element in the slice."),
        )
    return _element(reference, candidate, sides, index, dtype)


def severity(reference: Array, candidate: Array) -> NDArray[np.float64]:
    """What worst means: |error|, inf for a non-finite value not shared, 0 for a shared one."""
    with np.errstate(all="ignore"):
        a, b = float_values(reference), float_values(candidate)
        finite = np.isfinite(a) & np.isfinite(b)
        shared = (reference == candidate) | (np.isnan(a) & np.isnan(b))
        size = np.abs(difference(reference, candidate))
        return np.where(finite, size, np.where(shared, 0.0, np.inf))


@dataclass(slots=True)
class _Worst:
    """The `count` largest so far and their places: largest first, of equal ones the earliest."""

    count: int
    sizes: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    places: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def bar(self) -> float:
        """What a later element has to exceed."""
        return float(self.sizes[-1]) if self.sizes.size == self.count else 0.0

    def add(self, size: NDArray[np.float64], start: int) -> None:
        """Elements from flat place `start` on."""
        top = _largest(size, self.count)
        sizes = np.concatenate([self.sizes, size[top]])
        places = np.concatenate([self.places, top + start])
        keep = np.lexsort((places, -sizes))[: self.count]
        self.sizes, self.places = sizes[keep], places[keep]


def _promising(a: Array, b: Array, dtype: str, bar: float) -> Iterator[int]:
    """Where the stretches of a chunk begin that hold an error above the bar: most hold none."""
    grid = Grid(1, a.size, a.size, (1, _STRETCH))
    blocks = Blocks(grid, dtype, 0.0)
    blocks.add(a[None], b[None], 0, 0)
    high, low = blocks.cells[blocks_of.HIGH, 0], blocks.cells[blocks_of.LOW, 0]
    peak = np.where(blocks.unshared[0] > 0, np.inf, np.maximum(high, -low))
    for number in np.flatnonzero(peak > bar):
        yield int(number) * _STRETCH


def _largest(size: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Positions of the `count` largest, of equal ones the earliest; zeros never."""
    if size.size <= count:
        return np.flatnonzero(size > 0)
    bar = np.partition(size, size.size - count)[size.size - count]
    if not bar > 0:
        return np.flatnonzero(size > 0)
    above = np.flatnonzero(size > bar)
    level = np.flatnonzero(size == bar)[: count - above.size]
    return np.concatenate([above, level])


def _unravel(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(place, shape)) if shape else ()


def _element(
    reference: Run,
    candidate: Run,
    sides: tuple[TensorInfo, TensorInfo],
    index: tuple[int, ...],
    dtype: str,
) -> Element:
    a = np.asarray(reference.read(sides[0].id, index))
    b = np.asarray(candidate.read(sides[1].id, index))
    size = float(severity(a, b))
    finite = bool(np.isfinite(float_values(a)) & np.isfinite(float_values(b)))
    meant = finite or not size
    return Element(
        index=index,
        reference=_number(a),
        candidate=_number(b),
        error=float(difference(a, b)) if finite else 0.0 if meant else math.nan,
        ulps=float(ulps_apart(a, b, dtype)) if finite else 0.0 if meant else math.nan,
        bits=(bits_of(a, sides[0].dtype), bits_of(b, sides[1].dtype)),
    )


def _number(value: Array) -> float | int | bool | complex:
    if value.dtype.kind in "biuc":
        number: int | bool | complex = value.item()
        return number
    return float(value.astype(np.float64))


def bits_of(value: Array, dtype: str) -> Bits | None:
    """Bits of a 0-d array in its logical format; None for complex and unknown formats."""
    kind = numpy_dtype(dtype)
    if kind is None or kind.kind == "c" or value.dtype.kind == "c":
        return None
    with np.errstate(all="ignore"):
        held = value.astype(kind)
        exact = bool(held.astype(value.dtype) == value) or bool(value != value)  # NaN is itself
    width = 8 * kind.itemsize
    word = int(held.reshape(1).view(f"u{kind.itemsize}")[0])
    binary = f"{word:0{width}b}"
    fields = _float_fields(binary, kind) if kind.kind not in "biu" else (binary,)
    return Bits(f"{word:0{width // 4}x}", fields, dtype, exact)


def _float_fields(binary: str, kind: np.dtype[Any]) -> tuple[str, ...]:
    mantissa = int(ml_dtypes.finfo(kind).nmant)
    return binary[0], binary[1 : len(binary) - mantissa], binary[len(binary) - mantissa :]
