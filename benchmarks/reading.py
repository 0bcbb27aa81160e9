"""Reading one tensor from every kind of storage: through our loaders, and as h5py's `d[()]`.

Values that bf16 holds, so that they compress as activations do. Rates are of uncompressed bytes,
files in the page cache; all bytes of a chunk are looked at once (their XOR). The plain read takes
the XOR of a memory map of the same values. Ratios: against h5py, against the plain read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
from numpy.typing import NDArray

from benchmarks.row import Row, timed
from loaders import open_run

SHAPE = (8192, 8192)  # 256 MB in float32
CHUNK = 1 << 22  # elements, as in a comparison
REPEATS = 3
_CHUNKED: dict[str, Any] = {"chunks": (256, 1024)}
_SHUFFLED = {**_CHUNKED, "shuffle": True}
STORAGES: dict[str, dict[str, Any]] = {
    "contiguous": {},
    "contiguous, big-endian": {"dtype": ">f4"},
    "chunked": _CHUNKED,
    "chunked, checksummed": {**_CHUNKED, "fletcher32": True},
    "gzip 1, shuffled": {**_SHUFFLED, "compression": "gzip", "compression_opts": 1},
    "lzf, shuffled": {**_SHUFFLED, "compression": "lzf"},
    "zstandard 3, shuffled": {**_SHUFFLED, **hdf5plugin.Zstd(3)},
    "lz4, shuffled": {**_SHUFFLED, **hdf5plugin.LZ4()},
    "blosc lz4, shuffled": {**_CHUNKED, **hdf5plugin.Blosc("lz4", 5, hdf5plugin.Blosc.SHUFFLE)},
    "bitshuffle lz4": {**_CHUNKED, **hdf5plugin.Bitshuffle()},
}


def measure() -> Iterator[Row]:
    """A row for each storage: our rate, h5py's, and the plain read's in the same turns."""
    values = _values()
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.bin"
        values.tofile(plain)
        for name, storage in STORAGES.items():
            path = Path(folder) / "dump.h5"
            with h5py.File(path, "w") as file:
                file.create_dataset("x", data=values, **storage)
            yield _row(name, path, plain, values.nbytes)


def _row(name: str, path: Path, plain: Path, nbytes: int) -> Row:
    works: tuple[Callable[[], object], ...] = (
        lambda: _ours(path),
        lambda: _whole(path),
        lambda: _xor(np.memmap(plain, np.uint8, "r")),
    )
    rounds = [[timed(work) for work in works] for _ in range(REPEATS)]
    ours, whole, read = (min(times) for times in zip(*rounds, strict=True))
    rates = [f"{nbytes / seconds / 1e6:.0f} MB/s" for seconds in (ours, whole, read)]
    return Row(
        f"reading, {name}",
        rates[0],
        f"h5py {rates[1]}, plain read {rates[2]}",
        f"{whole / ours:.2f}, {read / ours:.3f}",
    )


def _values() -> NDArray[np.float32]:
    values = np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32)
    values.view(np.uint32)[...] &= 0xFFFF0000
    return values


def _ours(path: Path) -> None:
    for chunk in open_run(path).chunks("x", CHUNK):
        _xor(chunk)


def _whole(path: Path) -> None:
    with h5py.File(path) as file:
        file["x"][()]


def _xor(values: NDArray[Any]) -> None:
    words = values.view(np.uint64)
    for start in range(0, words.size, 1 << 17):
        np.bitwise_xor.reduce(words[start : start + (1 << 17)])
