"""Writes one dump file: the values of one step on one rank, in the order they were produced."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np

from precision_recorder.entries import Entry
from precision_recorder.errors import RecordError
from precision_recorder.values import Values

FORMAT = "precision-dump"
FORMAT_VERSION = 1
_CHUNK_BYTES = 1 << 20
_WORTH_COMPRESSING = 1 << 14  # bytes; the index of a chunked dataset alone takes 4 KiB
_MOST_SKIPPED = 200
_TEXT = h5py.string_dtype()
_SCALAR = h5py.h5s.create(h5py.h5s.SCALAR)

Compression = Literal["gzip"] | None


def file_name(step: int, rank: int) -> str:
    """Name of the file of a step and rank."""
    return f"step{step}_rank{rank}.h5"


class DumpWriter:
    """An open dump file. Safe to use from several threads; `order` counts the tensors written.

    The file can be read at any time after a `flush`, also when the process dies right then: the
    attribute `complete` turns true only in `close` without an error.
    """

    def __init__(
        self,
        path: Path,
        *,
        step: int = 0,
        rank: int = 0,
        provenance: Mapping[str, Any] | None = None,
        compression: Compression = None,
        overwrite: bool = False,
    ) -> None:
        self.path = path
        self.order = 0
        self._compression = compression
        self._lock = threading.RLock()
        self._skipped: dict[str, str] = {}
        young = _young(path, overwrite)
        self._file = _created(young)
        self._groups: dict[str, h5py.Group] = {"": self._file}
        self._written: set[str] = set()
        root = self._file.attrs
        root["format"] = FORMAT
        root["format_version"] = FORMAT_VERSION
        root["step"] = step
        root["rank"] = rank
        root["complete"] = False
        root["provenance"] = json.dumps(dict(provenance or {}), ensure_ascii=False)
        self._file.flush()
        young.replace(path)  # no reader ever meets a file without its first lines

    def write(self, entry: Entry, values: Values) -> None:
        """Add a tensor. Written a second time, the last values stand and `writes` counts."""
        with self._lock:
            if entry.path in self._written:
                self._rewrite(self._file[entry.path], values)
            else:
                self._add(entry, values)
                self._written.add(entry.path)
            self.order += 1

    def skip(self, entry: Entry, reason: str) -> None:
        """Note that a tensor was seen and could not be stored."""
        with self._lock:
            if len(self._skipped) < _MOST_SKIPPED:
                self._skipped[entry.path] = reason

    def flush(self) -> None:
        """Bring everything written so far into the file."""
        with self._lock:
            self._file.flush()

    def close(self, error: BaseException | None = None) -> None:
        """Finish the file; with an error it stays marked as incomplete and says why."""
        with self._lock:
            if self._skipped:
                text = json.dumps(self._skipped, ensure_ascii=False)
                self._file.attrs["skipped"] = text
            if error is None:
                self._file.attrs.modify("complete", True)
            else:
                self._file.attrs["error"] = f"{type(error).__name__}: {error}"[:2000]
            self._file.close()

    def _add(self, entry: Entry, values: Values) -> None:
        group = self._group(entry)
        dataset = group.create_dataset(
            entry.path.rsplit("/", 1)[1], data=values.bits, **self._filters(values)
        )
        for name, value in _attributes(entry, values, self.order).items():
            _attach(dataset.id, name, value)

    def _rewrite(self, dataset: h5py.Dataset, values: Values) -> None:
        dataset[...] = values.bits
        dataset.attrs.modify("order", self.order)
        dataset.attrs["writes"] = int(dataset.attrs.get("writes", 1)) + 1

    def _group(self, entry: Entry) -> h5py.Group:
        path = ""
        for name in entry.group[1:].split("/"):
            above, path = path, f"{path}/{name}"
            if path not in self._groups:
                self._groups[path] = self._groups[above].create_group(name, track_order=True)
        return self._groups[path]

    def _filters(self, values: Values) -> dict[str, Any]:
        bits = values.bits
        if self._compression is None or bits.nbytes < _WORTH_COMPRESSING or bits.ndim == 0:
            return {}
        return {
            "compression": self._compression,
            "compression_opts": 4,
            "shuffle": True,
            "chunks": _chunk(bits.shape, bits.itemsize),
        }


def refuse_existing(path: Path) -> None:
    """Raise when a dump of this name exists."""
    if path.exists():
        raise RecordError(
            f"{path.name} exists already in the folder {path.parent.name!r}.",
            "Choose another folder or pass overwrite=True.",
        )


def _young(path: Path, overwrite: bool) -> Path:
    if not overwrite:
        refuse_existing(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f".{path.name}.{os.getpid()}")


def _created(path: Path) -> h5py.File:
    # Large datasets are aligned so that they can be mapped. The older metadata layout has no
    # "open for writing" mark, which would lock out readers after a crash.
    return h5py.File(
        path,
        "w",
        track_order=True,
        libver=("earliest", "v108"),
        alignment_threshold=512,
        alignment_interval=64,
    )


def _attach(dataset: Any, name: str, value: Any) -> None:
    """Create an attribute of a dataset, at half the cost of h5py's own way: there are many."""
    array = np.asarray(value, _TEXT if isinstance(value, str) else None)
    shape = h5py.h5s.create_simple(array.shape) if array.ndim else _SCALAR
    kind = h5py.h5t.py_create(array.dtype, logical=True)
    h5py.h5a.create(dataset, name.encode(), kind, shape).write(array)


def _attributes(entry: Entry, values: Values, order: int) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "module": entry.module,
        "module_class": entry.module_class,
        "op": entry.op,
        "pass": entry.pass_,
        "slot": entry.slot,
        "argument": entry.argument,
        "call": entry.call,
        "order": order,
        "dtype": values.dtype,
        "contiguous": entry.contiguous,
        "attrs_json": json.dumps(dict(entry.attrs), ensure_ascii=False),
    }
    optional = {
        "stride": np.array(entry.stride, np.int64) if entry.stride else None,
        "dims": json.dumps(list(entry.dims), ensure_ascii=False) if entry.dims else None,
        "parameter": entry.parameter or None,
        "same_as": entry.same_as or None,
    }
    return attributes | {name: value for name, value in optional.items() if value is not None}


def _chunk(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The tensor itself, its leading axes halved until a chunk holds at most 1 MiB."""
    chunk = list(shape)
    for axis in range(len(chunk)):
        while chunk[axis] > 1 and np.prod(chunk, dtype=np.int64) * itemsize > _CHUNK_BYTES:
            chunk[axis] = -(-chunk[axis] // 2)
    return tuple(chunk)
