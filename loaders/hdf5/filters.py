"""Filters of storage chunks, undone within bounds; what cannot be is left to the library."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from h5py import h5z
from numpy.typing import NDArray

from language import say
from loaders.hdf5.codecs import Bytes, Stream, decompressed, is_available, unshuffled
from loaders.part import RefusedError

DEFLATE, SHUFFLE, FLETCHER32 = 1, 2, 3
_FOREIGN: Mapping[int, str] = {
    307: "bzip2",
    32000: "LZF",
    32001: "Blosc",
    32004: "LZ4",
    32008: "Bitshuffle",
    32015: "Zstandard",
    32026: "Blosc2",
}
_MODULUS = 65535
_ROWS = 256  # of a square of words that are summed at once: no sum leaves 32 bits
_BLOCK = _ROWS * _ROWS
_PLACES = np.arange(_ROWS)


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter of a pipeline: its number and its parameters, as the library keeps them."""

    code: int
    parameters: tuple[int, ...] = ()

    @property
    def itemsize(self) -> int:
        """Bytes per element, for shuffle."""
        return self.parameters[0] if self.parameters else 1


def pipeline_of(plist: Any, where: str) -> tuple[Filter, ...]:
    """The filters in the order they were applied; RefusedError for one not known."""
    filters = tuple(_filter(plist.get_filter(i)) for i in range(plist.get_nfilters()))
    foreign = [each.code for each in filters if each.code > FLETCHER32]
    for code in foreign:
        _require(code, where)
    # In its own pipelines the library checks the checksum, and reads out of bounds (2.0.0)
    # unless it stands last, where the stored size tells that there are bytes to check.
    if not is_ours(filters) and FLETCHER32 in [each.code for each in filters[:-1]]:
        raise RefusedError("filter", where, say("it holds a checksum inside a compressed chunk."))
    return filters


def _filter(entry: tuple[Any, ...]) -> Filter:
    code, _, parameters, _ = entry
    return Filter(code, tuple(parameters))


def _require(code: int, where: str) -> None:
    name = _FOREIGN.get(code)
    if name is None:
        raise RefusedError(
            "filter",
            where,
            say("it is stored through filter {code}, which is not known.", code=code),
        )
    if h5z.filter_avail(code):
        return
    hint = say("Install `hdf5plugin`, or write the dump uncompressed or with gzip.")
    try:
        importlib.import_module("hdf5plugin")  # registers its filters with the library
    except ImportError:
        raise RefusedError(
            "filter",
            where,
            say("the {name} filter ({code}) is missing.", name=name, code=code),
            hint,
        ) from None
    if not h5z.filter_avail(code):
        raise RefusedError(
            "filter",
            where,
            say("`hdf5plugin` lacks the {name} filter ({code}).", name=name, code=code),
            hint,
        )


def is_ours(pipeline: tuple[Filter, ...]) -> bool:
    """Whether every filter is undone by this module."""
    return all(each.code <= FLETCHER32 or is_available(each.code) for each in pipeline)


def undone(
    raw: bytes, pipeline: tuple[Filter, ...], mask: int, *, nbytes: int, where: str
) -> Bytes:
    """The `nbytes` bytes of one chunk, from what the file holds of it.

    The library's own inflate grows its buffer as long as the stream goes on, whatever the declared
    size, and its checksum reads past chunks shorter than 4 bytes. Set bits of `mask` skip a filter.
    """
    data = np.frombuffer(raw, np.uint8)
    most = nbytes + 64 + nbytes // 64  # a checksum or another compression may lie within
    for position in reversed(range(len(pipeline))):
        if not mask >> position & 1:
            data = _undone(pipeline[position], data, most, where)
    if len(data) != nbytes:
        reason = say(
            "a storage chunk has {data} bytes in place of {nbytes}.", data=len(data), nbytes=nbytes
        )
        raise RefusedError("chunk-length", where, reason)
    return data


def _undone(each: Filter, data: Bytes, most: int, where: str) -> Bytes:
    if each.code == DEFLATE:
        return np.frombuffer(_inflated(data, most, where), np.uint8)
    if each.code == SHUFFLE:
        return unshuffled(data, each.itemsize) if 1 < each.itemsize <= data.size else data
    if each.code == FLETCHER32:
        return _checked(data, where)
    return decompressed(each.code, Stream(data, each.parameters, most, where))


def _inflated(data: Bytes, most: int, where: str) -> bytes:
    stream = zlib.decompressobj()
    try:
        inflated = stream.decompress(data.data, most + 1)
    except zlib.error as error:
        raise RefusedError(
            "chunk", where, say("a storage chunk is damaged ({error}).", error=error)
        ) from error
    if len(inflated) > most:
        raise RefusedError(
            "inflate", where, say("a storage chunk inflates beyond its declared size.")
        )
    if not stream.eof:
        raise RefusedError("chunk", where, say("a compressed storage chunk is cut short."))
    return inflated


def _checked(data: Bytes, where: str) -> Bytes:
    """The chunk without its Fletcher-32 checksum, which must be right."""
    if len(data) < 4:
        raise RefusedError(
            "checksum",
            where,
            say("a storage chunk of {data} bytes has no checksum.", data=len(data)),
        )
    body, stored = data[:-4], data[-4:].tobytes()
    sums = _fletcher32(body)
    # Early releases of the library stored the halves byte-swapped; it accepts both, so do we.
    halves = [(int.from_bytes(stored[i : i + 2], "little") % _MODULUS) for i in (0, 2)]
    swapped = [(int.from_bytes(stored[i : i + 2], "big") % _MODULUS) for i in (0, 2)]
    if sums not in (tuple(halves), tuple(swapped)):
        raise RefusedError("checksum", where, say("a storage chunk does not match its checksum."))
    return body


def _fletcher32(data: Bytes) -> tuple[int, int]:
    """Both sums modulo 65535 over big-endian 16-bit words, as the library takes them.

    J. Fletcher, IEEE Trans. Commun. 30 (1982); with n words w_1 … w_n: Σ w_i and Σ (n - i + 1) w_i.
    Swapping the bytes of a word multiplies it by 256 modulo 65535, so words are added as they lie.
    """
    words = np.zeros(-(-len(data) // 2), "<u2")
    words.view(np.uint8)[: len(data)] = data
    whole = words.size // _BLOCK * _BLOCK
    blocks = words[:whole].reshape(-1, _ROWS, _ROWS)
    parts = [*map(_square, blocks), _line(words[whole:])]
    lengths = [*[_BLOCK] * len(blocks), words.size - whole]
    first = second = 0
    for length, (plain, weighted) in zip(lengths, parts, strict=True):
        first, second = (first + plain) % _MODULUS, (second + length * first + weighted) % _MODULUS
    return first * 256 % _MODULUS, second * 256 % _MODULUS


def _square(words: NDArray[np.uint16]) -> tuple[int, int]:
    """Both sums over a square of words, row by row: from the sums of its rows and columns."""
    wide = words.astype(np.uint32)
    rows, columns = (np.add.reduce(wide, axis, dtype=np.uint32).astype(np.int64) for axis in (1, 0))
    total = int(rows.sum())
    return total, _BLOCK * total - int(rows @ _PLACES) * _ROWS - int(columns @ _PLACES)


def _line(words: NDArray[np.uint16]) -> tuple[int, int]:
    wide = words.astype(np.int64)
    return int(wide.sum()), int(wide @ np.arange(wide.size, 0, -1))
