"""However a dataset is stored, its values are those of its plain twin; damage stays where it is."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
import pytest
from loader_contract import put_big_endian, put_plain, same_bits
from numpy.typing import NDArray

from analysis.compare import compare
from core.runs import Run
from loaders import crew, open_run
from loaders.crew import Order, filled
from loaders.hdf5 import codecs
from loaders.hdf5.sources import LibraryTiles, OwnTiles
from loaders.part import RefusedError

ROOT = Path(__file__).parent.parent
SHUFFLED = {"shuffle": True}
STORAGES: dict[str, dict[str, Any]] = {
    "chunked": {},
    "gzip": {"compression": "gzip"},
    "gzip, shuffled, checksummed": {"compression": "gzip", "fletcher32": True, **SHUFFLED},
    "lzf": {"compression": "lzf"},
    "lzf, shuffled, checksummed": {"compression": "lzf", "fletcher32": True, **SHUFFLED},
    "zstandard": {**hdf5plugin.Zstd(), **SHUFFLED},
    "lz4": {**hdf5plugin.LZ4(), **SHUFFLED},
    "lz4 in small blocks": {**hdf5plugin.LZ4(1024)},
    "bitshuffle": {**hdf5plugin.Bitshuffle(cname="none")},
    "bitshuffle, lz4": {**hdf5plugin.Bitshuffle(cname="lz4")},
    "bitshuffle, zstandard": {**hdf5plugin.Bitshuffle(cname="zstd")},
    **{
        f"blosc, {name}": {**hdf5plugin.Blosc(name, 5, shuffle)}
        for shuffle, name in enumerate(["lz4", "zstd", "blosclz", "zlib"], start=-1)
        if shuffle >= 0
    },
}


def tensors() -> dict[str, NDArray[Any]]:
    """Values as a model has them, rounded ones that compress, and noise that does not."""
    rng = np.random.default_rng(11)
    smooth = np.cumsum(rng.standard_normal((70, 3, 41)), axis=0)
    large = rng.standard_normal((1031, 517)).astype(np.float32)
    large.view(np.uint32)[...] &= 0xFFFF0000
    return {
        "smooth": smooth.astype(np.float32),
        "double": smooth,
        "half": smooth.astype(np.float16).ravel(),
        "bits": rng.integers(0, 1 << 16, (33, 130), np.uint16),
        "complex": (smooth[0] + 1j * smooth[1]).astype(np.complex64),
        "noise": rng.integers(0, 256, 100_003, np.uint8).astype(np.uint8),
        "large": large,
    }


TENSORS = tensors()


def write(path: Path, storage: dict[str, Any], *, chunked: bool = True) -> Run:
    with h5py.File(path, "w") as file:
        for name, values in TENSORS.items():
            tile = tuple(max(1, length // 3 + 1) for length in values.shape)
            put_plain(file, name, values, **({"chunks": tile} if chunked else {}), **storage)
    return open_run(path)


@pytest.mark.parametrize("storage", STORAGES)
def test_a_compressed_dataset_equals_its_plain_twin(tmp_path: Path, storage: str) -> None:
    run = write(tmp_path / "dump.h5", STORAGES[storage])
    for name, values in TENSORS.items():
        assert isinstance(run.values.by_id[name], OwnTiles)  # type: ignore[attr-defined]
        for elements in (97, 1 << 20):
            assert same_bits(np.concatenate(list(run.chunks(name, elements))), values.ravel())
        late = values.size // 3 + 1
        assert same_bits(np.concatenate(list(run.chunks(name, 97, late))), values.ravel()[late:])
        assert same_bits(run.read(name, (slice(None, None, -3),)), values[::-3])


def test_a_codec_that_is_not_there_leaves_the_dataset_to_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codecs, "is_available", lambda _: False)
    monkeypatch.setattr("loaders.hdf5.filters.is_available", lambda _: False)
    run = write(tmp_path / "dump.h5", STORAGES["zstandard"])
    for name, values in TENSORS.items():
        assert isinstance(run.values.by_id[name], LibraryTiles)  # type: ignore[attr-defined]
        assert same_bits(np.concatenate(list(run.chunks(name))), values.ravel())


def test_shuffled_bytes_come_together_without_vector_instructions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planes = np.arange(4 * 1000 + 3, dtype=np.uint8)
    quick = codecs.unshuffled(planes, 4)
    monkeypatch.setattr(codecs, "_function", lambda *_: None)
    assert np.array_equal(codecs.unshuffled(planes, 4), quick)


@pytest.mark.parametrize("storage", ["big-endian", "gzip, shuffled, checksummed", "blosc, zstd"])
def test_storage_changes_neither_the_id_nor_a_statistic(tmp_path: Path, storage: str) -> None:
    other = {name: (values + 1).astype(values.dtype) for name, values in TENSORS.items()}
    with h5py.File(tmp_path / "other.h5", "w") as file:
        for name, values in other.items():
            put_plain(file, name, values)
    plain = write(tmp_path / "plain.h5", {}, chunked=False)
    if storage == "big-endian":
        with h5py.File(tmp_path / "twin.h5", "w") as file:
            for name, values in TENSORS.items():
                put_big_endian(file, name, values)
        twin = open_run(tmp_path / "twin.h5")
    else:
        twin = write(tmp_path / "twin.h5", STORAGES[storage])
    candidate = open_run(tmp_path / "other.h5")
    one, two = compare(plain, candidate), compare(twin, candidate)
    assert one.id == two.id
    assert [pair.stats for pair in one.pairs] == [pair.stats for pair in two.pairs]


def test_a_long_big_endian_dataset_is_turned_in_pieces(tmp_path: Path) -> None:
    values = np.random.default_rng(1).standard_normal(3_000_001)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = values.astype(">f8")
    run = open_run(tmp_path)
    for elements, start in ((1000, 0), (1 << 21, 7)):
        assert same_bits(np.concatenate(list(run.chunks("x", elements, start))), values[start:])


FUZZ = """
import sys, h5py, hdf5plugin, numpy as np
from loaders.hdf5.codecs import Stream, decompressed
from loaders.part import RefusedError
rng = np.random.default_rng(int(sys.argv[2]))
with h5py.File(sys.argv[1]) as file:
    plist = file["large"].id.get_create_plist()
    code, _, parameters, _ = plist.get_filter(plist.get_nfilters() - 1)
    stored = np.frombuffer(file["large"].id.read_direct_chunk((0, 0))[1], np.uint8)
size = int(np.prod(plist.get_chunk())) * 4
refused = 0
for _ in range(400):
    data = stored[: rng.integers(1, stored.size + 1)].copy()
    where = rng.integers(0, min(data.size, 64 if rng.random() < 0.7 else data.size), 3)
    data[where] = rng.integers(0, 256, 3)
    try:
        assert decompressed(code, Stream(data, tuple(parameters), size, "x")).size <= size
    except RefusedError:
        refused += 1
print(refused)
"""


@pytest.mark.parametrize(
    "storage",
    ["lzf", "zstandard", "lz4 in small blocks", "bitshuffle, lz4", "bitshuffle, zstandard"]
    + [name for name in STORAGES if name.startswith("blosc")],
)
def test_a_damaged_chunk_is_refused_or_bounded_and_harms_nothing(
    tmp_path: Path, storage: str
) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        options = STORAGES[storage] | {"shuffle": False}
        file.create_dataset("large", data=TENSORS["large"], chunks=(128, 64), **options)
    command = [sys.executable, "-c", FUZZ, str(tmp_path / "x.h5"), "5"]
    environment = {"MALLOC_PERTURB_": "90", "PYTHONMALLOC": "debug"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


def test_a_checksum_inside_a_compressed_chunk_is_still_checked(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        x = file.create_dataset("x", data=np.arange(999.0), chunks=(999,), fletcher32=True)
        stored = bytearray(x.id.read_direct_chunk((0,))[1])
        stored[100] ^= 4
        x.id.write_direct_chunk((0,), bytes(stored))
    with pytest.raises(RefusedError, match="does not match its checksum"):
        list(open_run(tmp_path).chunks("x"))


def orders(count: int, size: int, made: list[int]) -> Iterator[Order]:
    for n in range(count):
        made.append(n)
        array = np.zeros(size, np.uint8)
        yield Order(array, [partial(array[i::4].fill, n) for i in range(4)])


def test_arrays_come_in_order_with_one_ahead_and_no_more() -> None:
    made: list[int] = []
    for n, array in enumerate(filled(orders(9, 1 << 21, made))):
        assert (array == n).all()
        assert len(made) <= n + 3  # in use, ahead, and the one that is asked for next


def test_arrays_too_large_for_two_are_not_filled_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "_AHEAD", 3 << 20)
    running: list[int] = []

    def work(array: NDArray[Any]) -> None:
        running.append(1)
        array.fill(1)

    def watched() -> Iterator[Order]:
        for _ in range(4):
            array = np.zeros(1 << 21, np.uint8)
            yield Order(array, [partial(work, array)])

    assert [len(running) for _ in filled(watched())] == [1, 2, 3, 4]


def test_what_a_piece_raises_reaches_the_reader_and_ends_the_threads() -> None:
    def fail() -> None:
        raise RefusedError("chunk", "x", "it is damaged.")

    broken = [Order(np.zeros(1 << 21, np.uint8), [fail])]
    with pytest.raises(RefusedError, match="it is damaged"):
        list(filled(iter(broken)))
    assert not [t for t in threading.enumerate() if t.name.startswith("reading")]


def test_leaving_early_ends_the_threads() -> None:
    arrays = filled(orders(5, 1 << 21, []))
    next(arrays)
    assert [t for t in threading.enumerate() if t.name.startswith("reading")]
    arrays.close()  # type: ignore[attr-defined]
    assert not [t for t in threading.enumerate() if t.name.startswith("reading")]


def test_small_tensors_read_one_after_another_are_their_own_and_notice_a_change(
    tmp_path: Path,
) -> None:
    """They come from stretches of 256 KB that are read once; some lie across two of them."""
    values = np.random.default_rng(0).standard_normal((300, 1000)).astype(np.float32)
    with h5py.File(tmp_path / "many.h5", "w") as file:
        for n, each in enumerate(values):
            file[f"t{n}"] = each
    run = open_run(tmp_path)
    for n, each in enumerate(values):
        assert same_bits(np.concatenate(list(run.chunks(f"t{n}"))), each)
    with (tmp_path / "many.h5").open("r+b") as file:
        file.truncate(100_000)
    with pytest.raises(RefusedError, match="changed since"):
        next(iter(run.chunks("t299")))
    (tmp_path / "many.h5").unlink()
    with pytest.raises(RefusedError, match="can no longer be read"):
        next(iter(run.chunks("t299")))
