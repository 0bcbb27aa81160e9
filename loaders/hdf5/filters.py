"""Filters of storage chunks, undone within bounds; or, for foreign ones, left to the library."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from h5py import h5z

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
_WORDS = 1 << 20  # of a checksum summed at once, so that no 64-bit sum overflows


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter of a chunk's pipeline: its number, and bytes per element for shuffle."""

    code: int
    itemsize: int = 1


def pipeline_of(plist: Any, where: str) -> tuple[Filter, ...]:
    """The filters in the order they were applied; RefusedError for one not known."""
    filters = tuple(_filter(plist.get_filter(i)) for i in range(plist.get_nfilters()))
    foreign = [each.code for each in filters if each.code > FLETCHER32]
    for code in foreign:
        _require(code, where)
    # Inside a foreign pipeline the library checks the checksum, and reads out of bounds (2.0.0)
    # unless it stands last, where the stored size tells that there are bytes to check.
    if foreign and FLETCHER32 in [each.code for each in filters[:-1]]:
        raise RefusedError("filter", where, "it holds a checksum inside a compressed chunk.")
    return filters


def _filter(entry: tuple[Any, ...]) -> Filter:
    code, _, parameters, _ = entry
    return Filter(code, parameters[0] if code == SHUFFLE and parameters else 1)


def _require(code: int, where: str) -> None:
    name = _FOREIGN.get(code)
    if name is None:
        raise RefusedError(
            "filter", where, f"it is stored through filter {code}, which is not known."
        )
    if h5z.filter_avail(code):
        return
    hint = "Install `hdf5plugin`, or write the dump uncompressed or with gzip."
    try:
        importlib.import_module("hdf5plugin")  # registers its filters with the library
    except ImportError:
        raise RefusedError(
            "filter", where, f"the {name} filter ({code}) is missing.", hint
        ) from None
    if not h5z.filter_avail(code):
        raise RefusedError("filter", where, f"`hdf5plugin` lacks the {name} filter ({code}).", hint)


def is_ours(pipeline: tuple[Filter, ...]) -> bool:
    """Whether every filter is undone by this module."""
    return all(each.code <= FLETCHER32 for each in pipeline)


def undone(
    raw: bytes, pipeline: tuple[Filter, ...], mask: int, *, nbytes: int, where: str
) -> bytes | memoryview:
    """The `nbytes` bytes of one chunk, from what the file holds of it.

    The library's own inflate grows its buffer as long as the stream goes on, whatever the declared
    size, and its checksum reads past chunks shorter than 4 bytes. Set bits of `mask` skip a filter.
    """
    data: bytes | memoryview = raw
    for position in reversed(range(len(pipeline))):
        if mask >> position & 1:
            continue
        each = pipeline[position]
        if each.code == DEFLATE:
            data = _inflated(data, nbytes, where)
        elif each.code == SHUFFLE:
            data = _unshuffled(data, each.itemsize)
        else:
            data = _checked(data, where)
    if len(data) != nbytes:
        reason = f"a storage chunk has {len(data)} bytes in place of {nbytes}."
        raise RefusedError("chunk-length", where, reason)
    return data


def _inflated(data: bytes | memoryview, nbytes: int, where: str) -> bytes:
    most = nbytes + 64 + nbytes // 64  # a checksum or another deflate may lie within
    stream = zlib.decompressobj()
    try:
        inflated = stream.decompress(data, most + 1)
    except zlib.error as error:
        raise RefusedError("chunk", where, f"a storage chunk is damaged ({error}).") from error
    if len(inflated) > most:
        raise RefusedError("inflate", where, "a storage chunk inflates beyond its declared size.")
    if not stream.eof:
        raise RefusedError("chunk", where, "a compressed storage chunk is cut short.")
    return inflated


def _unshuffled(data: bytes | memoryview, itemsize: int) -> bytes | memoryview:
    count = len(data) // itemsize if itemsize > 1 else 0
    if count == 0:
        return data
    planes = np.frombuffer(data, np.uint8)
    out = np.empty(len(data), np.uint8)
    whole = count * itemsize
    elements = out[:whole].reshape(count, itemsize)
    for byte in range(itemsize):
        elements[:, byte] = planes[byte * count : (byte + 1) * count]
    out[whole:] = planes[whole:]  # a tail shorter than an element is stored as it is
    return out.data


def _checked(data: bytes | memoryview, where: str) -> bytes | memoryview:
    """The chunk without its Fletcher-32 checksum, which must be right."""
    if len(data) < 4:
        raise RefusedError(
            "checksum", where, f"a storage chunk of {len(data)} bytes has no checksum."
        )
    body, stored = data[:-4], bytes(data[-4:])
    sums = _fletcher32(body)
    # Early releases of the library stored the halves byte-swapped; it accepts both, so do we.
    halves = [(int.from_bytes(stored[i : i + 2], "little") % _MODULUS) for i in (0, 2)]
    swapped = [(int.from_bytes(stored[i : i + 2], "big") % _MODULUS) for i in (0, 2)]
    if sums not in (tuple(halves), tuple(swapped)):
        raise RefusedError("checksum", where, "a storage chunk does not match its checksum.")
    return body


def _fletcher32(data: bytes | memoryview) -> tuple[int, int]:
    """Both sums modulo 65535 over big-endian 16-bit words, as the library takes them.

    J. Fletcher, IEEE Trans. Commun. 30 (1982); with n words w_1 … w_n: Σ w_i and Σ (n - i + 1) w_i.
    """
    even = len(data) & ~1
    first = second = 0
    words = np.frombuffer(data[:even], ">u2")
    for start in range(0, words.size, _WORDS):
        part = words[start : start + _WORDS].astype(np.uint64)
        weights = np.arange(part.size, 0, -1, dtype=np.uint64)
        second = (second + part.size * first + int((part * weights).sum())) % _MODULUS
        first = (first + int(part.sum())) % _MODULUS
    if len(data) > even:
        first = (first + (data[-1] << 8)) % _MODULUS
        second = (second + first) % _MODULUS
    return first, second
