"""Decompressors of storage chunks: the functions beneath the library's filters, called directly.

The shared objects of `h5py` and `hdf5plugin` that carry HDF5's filters also export the plain
functions those wrap. Called past the library they hold neither its lock nor the interpreter's, so
chunks decompress side by side, and into memory of a size set here, so a stream cannot claim more.
Where a build does not export them the codec counts as missing, and the library reads the dataset.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from h5py import h5z
from numpy.typing import NDArray

from language import say
from loaders.part import RefusedError

Bytes = NDArray[np.uint8]
LZF, BLOSC, LZ4, BITSHUFFLE, ZSTANDARD = 32000, 32001, 32004, 32008, 32015

_UNKNOWN_SIZE, _NO_FRAME = (1 << 64) - 1, (1 << 64) - 2  # answers of ZSTD_getFrameContentSize
_BLOSC_HEADER = 16  # bytes
_LARGEST_ITEM, _LARGEST_BLOCK = 1024, 1 << 27  # of bitshuffle: bytes of an element, elements
_UNPACKED = {2: "bshuf_decompress_lz4", 3: "bshuf_decompress_zstd"}  # by bitshuffle's parameter 4


@dataclass(frozen=True, slots=True)
class Stream:
    """A compressed chunk, and the most bytes it may become."""

    data: Bytes
    parameters: tuple[int, ...]
    most: int
    where: str

    def room(self, size: int) -> Bytes:
        """Memory for what the stream says it holds; RefusedError if that is too much."""
        if size > self.most:
            reason = say("a storage chunk inflates beyond its declared size.")
            raise RefusedError("inflate", self.where, reason)
        return np.empty(size, np.uint8)

    def require(self, sound: bool) -> None:
        """RefusedError unless what must hold of a sound stream does."""
        if not sound:
            raise RefusedError("chunk", self.where, say("a storage chunk is damaged."))

    def number(self, at: int, width: int) -> int:
        """A big-endian number within the stream."""
        self.require(at + width <= self.data.size)
        return int.from_bytes(self.data[at : at + width].tobytes(), "big")


def is_available(code: int) -> bool:
    """Whether chunks of a filter can be decompressed here."""
    known = _CODECS.get(code)
    return known is not None and all(_function(known[0], name) for name in known[1])


def decompressed(code: int, stream: Stream) -> Bytes:
    """The bytes of a compressed chunk; RefusedError if damaged, or where they are too many."""
    return _CODECS[code][2](stream)


def unshuffled(planes: Bytes, itemsize: int) -> Bytes:
    """Elements whose bytes were stored apart: all first ones, all second ones, and so on."""
    out = np.empty(planes.size, np.uint8)
    vectorised = _function("blosc2", "blosc2_unshuffle") if planes.size < 1 << 31 else None
    if vectorised is not None:
        vectorised(ctypes.c_int32(itemsize), ctypes.c_int32(planes.size), _at(planes), _at(out))
        return out
    count = planes.size // itemsize
    whole = count * itemsize
    elements = out[:whole].reshape(count, itemsize)
    for byte in range(itemsize):
        elements[:, byte] = planes[byte * count : (byte + 1) * count]
    out[whole:] = planes[whole:]  # a tail shorter than an element is stored as it is
    return out


@functools.cache
def _function(library: str, name: str) -> Any | None:
    """A function of a shared object, returning a signed 64-bit number; None if there is none."""
    try:
        function = getattr(ctypes.CDLL(_path(library)), name)
    except (ImportError, OSError, AttributeError):
        return None
    function.restype = ctypes.c_int if name.startswith(("blosc", "LZ4", "lzf")) else ctypes.c_int64
    return function


def _path(library: str) -> str:
    if library == "h5z":
        return str(h5z.__file__)
    folder = Path(importlib.import_module("hdf5plugin").PLUGIN_PATH)
    return str(next(folder.glob(f"libh5{library}.*"), folder / "absent"))


def _call(library: str, name: str, *arguments: Any) -> int:
    function = _function(library, name)
    assert function is not None
    return int(function(*arguments))


def _at(array: Bytes) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _lzf(stream: Stream) -> Bytes:
    """One stream; what it inflates to stands in the filter's third parameter."""
    data, known = stream.data, stream.parameters[2:3]
    out = stream.room(*known) if known else stream.room(stream.most)
    sizes = ctypes.c_uint(data.size), ctypes.c_uint(out.size)
    made = _call("h5z", "lzf_decompress", _at(data), sizes[0], _at(out), sizes[1])
    stream.require(0 < made <= out.size)
    return out[:made]


def _zstandard(stream: Stream) -> Bytes:
    """One frame, which need not say how long it is."""
    data, stored = stream.data, ctypes.c_size_t(stream.data.size)
    size = _call("zstd", "ZSTD_getFrameContentSize", _at(data), stored) % (1 << 64)
    stream.require(size != _NO_FRAME)
    out = stream.room(stream.most if size == _UNKNOWN_SIZE else size)
    room = ctypes.c_size_t(out.size)
    made = _call("zstd", "ZSTD_decompress", _at(out), room, _at(data), stored)
    stream.require(0 <= made <= out.size)  # errors are -1, -2, …
    return out[:made]


def _lz4(stream: Stream) -> Bytes:
    """Size (8 bytes) and block size (4), then blocks, each after its stored length (4 bytes).

    A block that did not shrink is stored as it is, which its length says.
    """
    out, block, at = stream.room(stream.number(0, 8)), stream.number(8, 4), 12
    stream.require(block > 0)
    for start in range(0, out.size, block):
        piece, stored = out[start : start + block], stream.number(at, 4)
        source = stream.data[at + 4 : at + 4 + stored]
        at += 4 + stored
        stream.require(source.size == stored)
        if stored == piece.size:
            piece[:] = source
            continue
        sizes = ctypes.c_int(stored), ctypes.c_int(piece.size)
        made = _call("lz4", "LZ4_decompress_safe", _at(source), _at(piece), *sizes)
        stream.require(made == piece.size)
    return out


def _blosc(stream: Stream) -> Bytes:
    """One Blosc 1 buffer, whose header says what is inside."""
    at, size, room = _at(stream.data), ctypes.c_size_t(0), ctypes.c_size_t(stream.data.size)
    stream.require(stream.data.size >= _BLOSC_HEADER)
    wrong = _call("blosc", "blosc_cbuffer_validate", at, room, ctypes.byref(size))
    stream.require(not wrong)
    out = stream.room(size.value)
    whole = ctypes.c_size_t(out.size)
    made = _call("blosc", "blosc_decompress_ctx", at, _at(out), whole, ctypes.c_int(1))
    stream.require(made == out.size)
    return out


def _bitshuffle(stream: Stream) -> Bytes:
    """Bits stored plane by plane within blocks; parameters 2 to 4: element, block, compressor."""
    item, block, packing = (*stream.parameters, 0, 0, 0, 0, 0)[2:5]
    stream.require(0 < item <= _LARGEST_ITEM)
    if packing not in _UNPACKED:
        out = stream.room(stream.data.size)
        return _bits_together("bshuf_bitunshuffle", stream, 0, out, (item, block))
    out, block = stream.room(stream.number(0, 8)), stream.number(8, 4) // item
    _require_blocks(stream, out.size // item, item, block)
    return _bits_together(_UNPACKED[packing], stream, 12, out, (item, block))


def _bits_together(
    name: str, stream: Stream, start: int, out: Bytes, sizes: tuple[int, int]
) -> Bytes:
    item, block = sizes
    stream.require(out.size % item == 0 and block % 8 == 0)
    if out.size:
        numbers = (ctypes.c_size_t(n) for n in (out.size // item, item, block))
        stream.require(_call("bshuf", name, _at(stream.data[start:]), _at(out), *numbers) >= 0)
    return out


def _require_blocks(stream: Stream, count: int, item: int, block: int) -> None:
    """The decoder trusts the stored lengths of the blocks: they must lie within the chunk."""
    stream.require(0 < block <= _LARGEST_BLOCK)
    at, data, length_at = 12, stream.data.data, struct.Struct(">I").unpack_from
    for _ in range(count // block + (count % block >= 8)):
        stream.require(at + 4 <= stream.data.size)
        at += 4 + length_at(data, at)[0]  # there are hundreds: what is quick counts here
    stream.require(at + count % 8 * item <= stream.data.size)


# By filter: the library, the functions of it that are needed, and how they are used.
_CODECS: Mapping[int, tuple[str, tuple[str, ...], Callable[[Stream], Bytes]]] = {
    LZF: ("h5z", ("lzf_decompress",), _lzf),
    BLOSC: ("blosc", ("blosc_cbuffer_validate", "blosc_decompress_ctx"), _blosc),
    LZ4: ("lz4", ("LZ4_decompress_safe",), _lz4),
    BITSHUFFLE: ("bshuf", ("bshuf_bitunshuffle", *_UNPACKED.values()), _bitshuffle),
    ZSTANDARD: ("zstd", ("ZSTD_getFrameContentSize", "ZSTD_decompress"), _zstandard),
}
