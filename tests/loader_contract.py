"""What every loader promises. A new one inherits `LoaderContract` and writes its files."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import hostile
import ml_dtypes
import numpy as np
import pytest

from core.errors import LoadError, NotHereError, SelectionError
from core.runs import Run
from loaders import open_run

Array = np.ndarray[Any, Any]
Put = Callable[[h5py.Group, str, Array], h5py.Dataset]


def _samples() -> dict[str, Array]:
    """Tensors by key, in an order that is neither alphabetical nor natural."""
    rng = np.random.default_rng(7)
    wide = rng.standard_normal((5, 7, 11))
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 6e-8, 448.0, 1e30, -1.5])
    with np.errstate(over="ignore"):
        return {
            "layers.10.float32": wide.astype(np.float32),
            "layers.2.bfloat16": wide.astype(ml_dtypes.bfloat16),
            "layers.2.float16": special.astype(np.float16),
            "layers.1.float64": special,
            "layers.1.float8_e4m3fn": special.astype(ml_dtypes.float8_e4m3fn),
            "layers.3.float8_e5m2": wide.astype(ml_dtypes.float8_e5m2),
            "layers.3.int64": rng.integers(-(2**62), 2**62, (3, 1000)),
            "head.uint8": np.arange(256, dtype=np.uint8),
            "head.bool": wide > 0,
            "head.complex64": (wide[0] + 1j * wide[1]).astype(np.complex64),
            "head.scalar": np.float32(2.5).reshape(()),
            "head.empty": np.zeros((0, 4), np.float32),
            "head.long": np.arange(70_000, dtype=np.float32).reshape(70, 1000),
        }


SAMPLES = _samples()
SELECTIONS: tuple[tuple[int | slice, ...], ...] = (
    (),
    (0,),
    (-1,),
    (slice(1, 3),),
    (slice(None, None, 2),),
    (slice(None), slice(None, None, -2)),
    (2, slice(1, 4), -1),
    (slice(None, None, -1), 0, slice(8, 2, -3)),
    (slice(2, 2),),
    (slice(-3, 100), slice(None), slice(5, 6)),
)

_RAW = {1: np.uint8, 2: np.uint16}


def put_plain(group: h5py.Group, name: str, array: Array, **storage: Any) -> h5py.Dataset:
    """A dataset; formats unknown to HDF5 as raw bits, each with its dtype in an attribute."""
    foreign = array.dtype.isbuiltin != 1
    bits = array.view(_RAW[array.dtype.itemsize]) if foreign else array
    dataset = group.create_dataset(name, data=bits, **storage)
    dataset.attrs["dtype"] = array.dtype.name
    return dataset


def put_compressed(group: h5py.Group, name: str, array: Array) -> h5py.Dataset:
    """The same in small shuffled, deflated and checksummed chunks that do not divide the shape."""
    if array.size == 0 or array.ndim == 0:
        return put_plain(group, name, array)
    chunks = tuple(max(1, length // 2 + 1) for length in array.shape)
    storage = {"compression": "gzip", "shuffle": True, "fletcher32": True}
    return put_plain(group, name, array, chunks=chunks, **storage)


def put_big_endian(group: h5py.Group, name: str, array: Array) -> h5py.Dataset:
    """The same with the other byte order; raw bits of formats unknown to HDF5 included."""
    dtype = array.dtype.name
    if array.dtype.isbuiltin != 1:
        array = array.view(_RAW[array.dtype.itemsize])
    dataset = group.create_dataset(name, data=array.astype(array.dtype.newbyteorder(">")))
    dataset.attrs["dtype"] = dtype
    return dataset


LAYOUTS: dict[str, Put] = {
    "plain": put_plain,
    "compressed": put_compressed,
    "big-endian": put_big_endian,
}


def same_bits(a: Array, b: Array) -> bool:
    """Same type, shape and bytes: -0 is not 0, and NaNs count by their payload."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


class LoaderContract:
    """Inherit, and give `write` and `name`; `in_order` where the format does not record order."""

    samples: Mapping[str, Array] = SAMPLES  # fewer where the format knows fewer dtypes
    one_more_byte = b"\0"  # that a file of the format may end in

    def write(self, folder: Path, arrays: Mapping[str, Array], put: Put) -> None:
        """Write the tensors in the given order, as this format's own writer does."""
        raise NotImplementedError

    def name(self, key: str) -> str:
        """The id under which the run has the tensor of that key."""
        raise NotImplementedError

    def in_order(self, keys: list[str]) -> list[str] | None:
        """The keys as the run must list them, None where the order can only be guessed."""
        return keys

    def file(self, folder: Path, _: str) -> Path:
        """The file that holds the values of that key."""
        return next(path for path in folder.rglob("*") if path.is_file())

    @pytest.fixture(params=LAYOUTS)
    def run(self, request: pytest.FixtureRequest, tmp_path: Path) -> Run:
        folder = tmp_path / "a dump"
        folder.mkdir()
        self.write(folder, self.samples, LAYOUTS[request.param])
        return open_run(folder)

    def test_it_finds_all_that_was_written_and_no_trouble(self, run: Run) -> None:
        assert set(run.tensors) == {self.name(key) for key in self.samples}
        assert run.problems == ()
        assert run.label == "a dump"
        assert run.provenance["format"]

    def test_shapes_and_logical_dtypes_are_those_written(self, run: Run) -> None:
        for key, array in self.samples.items():
            tensor = run[self.name(key)]
            assert tensor.shape == array.shape
            assert tensor.dtype == array.dtype.name
            assert not tensor.dtype_inferred

    def test_tensors_stand_in_execution_order(self, run: Run) -> None:
        expected = self.in_order(list(self.samples))
        if expected is None:
            assert not any(tensor.order_recorded for tensor in run.tensors.values())
        else:
            assert list(run.tensors) == [self.name(key) for key in expected]
        assert [tensor.order for tensor in run.tensors.values()] == list(range(len(self.samples)))

    @pytest.mark.parametrize("elements", [1, 3, 1000, 1 << 20])
    def test_chunks_are_of_the_asked_length_and_hold_every_bit(
        self, run: Run, elements: int
    ) -> None:
        for key, array in self.samples.items():
            if array.size > 10_000 and elements == 1:
                continue  # slow, and no different
            chunks = list(run.chunks(self.name(key), elements))
            assert all(chunk.ndim == 1 for chunk in chunks)
            assert [len(chunk) for chunk in chunks[:-1]] == [elements] * (len(chunks) - 1)
            whole = np.concatenate(chunks) if chunks else np.zeros(0, array.dtype)
            assert same_bits(whole, array.ravel()), key
            assert all(chunk.dtype.isnative for chunk in chunks)

    @pytest.mark.parametrize("start", [1, 77, 5000])
    def test_chunks_may_begin_anywhere(self, run: Run, start: int) -> None:
        for key, array in self.samples.items():
            if start < array.size:
                chunks = list(run.chunks(self.name(key), 1000, start))
                assert same_bits(np.concatenate(chunks), array.ravel()[start:]), key

    def test_a_part_of_the_run_reads_the_same_and_knows_nothing_else(self, run: Run) -> None:
        key, other = list(self.samples)[:2]
        part = pickle.loads(pickle.dumps(run.only([self.name(key)])))
        assert same_bits(part.read(self.name(key)), self.samples[key])
        with pytest.raises(NotHereError):
            part[self.name(other)]

    def test_a_selection_gives_what_numpy_gives(self, run: Run) -> None:
        for key, array in self.samples.items():
            for selection in SELECTIONS:
                if _fits(selection, array):
                    assert same_bits(run.read(self.name(key), selection), array[selection]), key

    def test_a_selection_outside_the_tensor_is_refused(self, run: Run) -> None:
        with pytest.raises(SelectionError, match="axis 0, which has 70"):
            run.read(self.name("head.long"), (70,))

    def test_an_unknown_name_suggests_the_nearest(self, run: Run) -> None:
        name = self.name("layers.10.float32")
        with pytest.raises(NotHereError) as raised:
            run[name.replace("float32", "flaot32")]
        assert name in raised.value.hint

    def test_a_run_crosses_to_another_process(self, run: Run) -> None:
        name = self.name("layers.2.float16")
        again = pickle.loads(pickle.dumps(run))
        assert again[name] == run[name]
        assert same_bits(again.read(name), run.read(name))

    def test_the_fingerprint_stays_until_the_dump_changes(self, tmp_path: Path) -> None:
        self.write(tmp_path, self.samples, put_plain)
        first = open_run(tmp_path)
        assert open_run(tmp_path).fingerprint == first.fingerprint
        with self.file(tmp_path, "head.long").open("ab") as stream:
            stream.write(self.one_more_byte)
        assert open_run(tmp_path).fingerprint != first.fingerprint
        with pytest.raises(LoadError, match="changed since"):
            first.read(self.name("head.long"))

    def test_a_truncated_copy_is_named_and_never_crashes(self, tmp_path: Path) -> None:
        folder = tmp_path / "whole"
        folder.mkdir()
        self.write(folder, self.samples, put_plain)
        files = [path for path in folder.rglob("*") if path.is_file()]
        copies = [copy for file in files for copy in _truncated_copies(folder, file)]
        for result in probed(copies):
            named = [code for code, *_ in result["problems"]]
            assert result["error"] or "truncated" in named, result["file"]


class OwnLayout(LoaderContract):
    """The contract for formats that are not HDF5: what is written is all there is to vary."""

    @pytest.fixture
    def run(self, tmp_path: Path) -> Run:
        folder = tmp_path / "a dump"
        folder.mkdir()
        self.write(folder, self.samples, put_plain)
        return open_run(folder)


def _fits(selection: tuple[int | slice, ...], array: Array) -> bool:
    if len(selection) > array.ndim:
        return False
    return all(
        isinstance(part, slice) or -length <= part < length
        for part, length in zip(selection, array.shape, strict=False)
    )


def _truncated_copies(folder: Path, file: Path) -> Iterator[Path]:
    """Copies of a dump in which one file is cut, at several places."""
    size = file.stat().st_size
    for percent in (3, 30, 60, 90, 99):
        name = "_".join(file.relative_to(folder).parts)
        copy = folder.parent / f"{name} cut at {percent}"
        shutil.copytree(folder, copy)
        with (copy / file.relative_to(folder)).open("r+b") as stream:
            stream.truncate(size * percent // 100)
        yield copy


def probed(paths: list[Path]) -> list[dict[str, Any]]:
    """Each opened and read in one other process, which must survive it."""
    command = [sys.executable, hostile.__file__, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{done.returncode} after {done.stdout[-300:]} {done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]
