"""Writes one dump file: the values of one step on one rank, in the order they were produced."""

from __future__ import annotations

import json
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
        self._file = _created(path, overwrite)
        root = self._file.attrs
        root["format"] = FORMAT
        root["format_version"] = FORMAT_VERSION
        root["step"] = step
        root["rank"] = rank
        root["complete"] = False
        root["provenance"] = json.dumps(dict(provenance or {}), ensure_ascii=False)
        self._file.flush()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return not self._file.id.valid

    def write(self, entry: Entry, values: Values) -> None:
        """Add a tensor. Written a second time, the last values stand and `writes` counts."""
        with self._lock:
            if entry.path in self._file:
                self._rewrite(self._file[entry.path], values)
            else:
                self._add(entry, values)
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
            dataset.attrs.create(name, value)

    def _rewrite(self, dataset: h5py.Dataset, values: Values) -> None:
        dataset[...] = values.bits
        dataset.attrs.modify("order", self.order)
        dataset.attrs["writes"] = int(dataset.attrs.get("writes", 1)) + 1

    def _group(self, entry: Entry) -> h5py.Group:
        group = self._file
        for name in entry.group[1:].split("/"):
            group = group[name] if name in group else group.create_group(name, track_order=True)
        return group

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


def _created(path: Path, overwrite: bool) -> h5py.File:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        # Large datasets are aligned so that they can be mapped. The older metadata layout has no
        # "open for writing" mark, which would lock out readers after a crash.
        return h5py.File(
            path,
            "w" if overwrite else "x",
            track_order=True,
            libver=("earliest", "v108"),
            alignment_threshold=512,
            alignment_interval=64,
        )
    except FileExistsError:
        raise RecordError(
            f"{path.name} exists already in {path.parent.name}.",
            "Choose another folder or pass overwrite=True.",
        ) from None


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
