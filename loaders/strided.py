"""Values in one piece of a file under any strides: a view of the mapped file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from language import say
from loaders.encoding import Encoding
from loaders.file_bytes import FileBytes
from loaders.hdf5.sources import Tiled
from loaders.hdf5.tiles import Box
from loaders.limits import Limits
from loaders.part import RefusedError, Source
from loaders.stretches import Contiguous, Unwritten

_LARGEST_SPAN = 1 << 30  # bytes of a permuted tensor; it is mapped whole


@dataclass(frozen=True, slots=True)
class Strided(Tiled):
    """Values whose axes lie in the file in another order, or repeat. Strides in elements."""

    offset: int
    strides: tuple[int, ...]

    def boxes(self, boxes: Iterable[Box]) -> Iterator[NDArray[Any]]:
        """The raw elements of each box."""
        return map(self._box, boxes)

    def _box(self, box: Box) -> NDArray[Any]:
        file = self.encoding.file
        first = sum(axis[0] * s for axis, s in zip(box, self.strides, strict=True))
        last = sum(axis[-1] * s for axis, s in zip(box, self.strides, strict=True))
        start = self.offset + first * file.itemsize
        flat = self.bytes.elements(file, start, last - first + 1)
        steps = [axis.step * s * file.itemsize for axis, s in zip(box, self.strides, strict=True)]
        view = np.lib.stride_tricks.as_strided(flat, [len(axis) for axis in box], steps)
        return np.array(view, order="C")


def strided(
    bytes_: FileBytes,
    where: str,
    encoding: Encoding,
    *,
    offset: int,
    stored: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> Source:
    """The source of a tensor in `stored` bytes from byte `offset` on; strides in elements.

    RefusedError where it would reach beyond them, or claims far more than is there.
    """
    itemsize = encoding.file.itemsize
    nbytes = math.prod(shape) * itemsize
    _refuse_huge(nbytes, stored, bytes_.file.limits, where)
    if nbytes == 0:
        return Unwritten(shape, encoding.decode(np.zeros((), encoding.file)))
    span = (1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))) * itemsize
    if span > stored:
        raise RefusedError(
            "truncated",
            where,
            say("it needs {span} bytes and {stored} are there.", span=span, stored=stored),
        )
    if offset + span > bytes_.size:
        raise RefusedError("truncated", where, say("its values lie beyond the end of the file."))
    if _is_row_major(shape, strides):
        return Contiguous(bytes_, offset, shape, encoding)
    if span > _LARGEST_SPAN:
        raise RefusedError(
            "layout", where, say("it is too large to be read in this order of axes.")
        )
    tile = tuple(1 for _ in shape)
    return Strided(bytes_, where, shape, tile, encoding, offset, strides)


def _refuse_huge(nbytes: int, stored: int, limits: Limits, where: str) -> None:
    if nbytes > limits.tensor:
        raise RefusedError("tensor-size", where, say("it declares {nbytes} bytes.", nbytes=nbytes))
    if nbytes > limits.ratio_from and nbytes > limits.ratio * stored:
        raise RefusedError(
            "ratio",
            where,
            say("it declares {nbytes} bytes and stores {stored}.", nbytes=nbytes, stored=stored),
        )


def _is_row_major(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements follow each other; the stride of an axis of length 1 says nothing."""
    expected = 1
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True
