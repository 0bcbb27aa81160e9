"""Dataclass values to columns and back, exactly: what a type's fields say is all there is to know.

A list of values becomes one Arrow column: a dataclass a struct, a NumPy array or a tuple a list, a
mapping JSON text. A new field of a stored type therefore needs no change here.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from store.cache import Recent
from store.jsonable import from_text, to_plain, to_text, without_none

Columns = Any  # pyarrow has no type hints
T = TypeVar("T")

_GROUP = 1024  # rows that are decoded together
_KEPT_GROUPS = 8

_SCALARS = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
_ZEROS = {bool: False, int: 0, float: 0.0}


def write(path: Path, values: Sequence[Any], kind: type, *, leaving: str = "") -> None:
    """Keep dataclass values as a Parquet file, one row each, one column a field.

    The field called `leaving` is left out; it must have a default.
    """
    hints = get_type_hints(kind)
    kept = [f.name for f in fields(kind) if f.name != leaving]
    columns = [column([getattr(v, name) for v in values], hints[name]) for name in kept]
    table = pa.Table.from_arrays(columns, names=kept)
    pq.write_table(table, path, compression="zstd", row_group_size=_GROUP)


def read(path: Path, kind: type[T]) -> tuple[T, ...]:
    """The dataclass values of a file; raises KeyError when a field without default is absent."""
    return tuple(_rows(pq.ParquetFile(path).read(), kind))


class Rows(Sequence[T]):
    """The dataclass values of a file, decoded some at a time when they are asked for."""

    def __init__(self, path: Path, kind: type[T]) -> None:
        self._file, self._kind = pq.ParquetFile(path, memory_map=True), kind
        self._length: int = self._file.metadata.num_rows
        self._decoded: Recent[list[T]] = Recent(_KEPT_GROUPS)
        self._lock = threading.Lock()  # a reader of Parquet serves one thread at a time

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(self._length))]
        if not -self._length <= place < self._length:
            raise IndexError(place)
        group, row = divmod(place % self._length, _GROUP)
        return self._decoded.get(group, lambda: self._group(group))[row]

    def _group(self, group: int) -> list[T]:
        with self._lock:
            return _rows(self._file.read_row_group(group), self._kind)


def _rows(table: Any, kind: type[T]) -> list[T]:
    arrays = [_whole(chunked) for chunked in table.columns]
    return list(_records(dict(zip(table.column_names, arrays, strict=True)), kind, len(table)))


def column(values: Sequence[Any], hint: Any) -> Columns:
    """One Arrow array holding `values`, each of type `hint`, or None."""
    hint = without_none(hint)
    if is_dataclass(hint):
        return _struct(values, hint)
    origin = get_origin(hint)
    if origin is np.ndarray:
        return _arrays(values, hint)
    if origin is tuple:
        return _lists(values, get_args(hint)[0])
    if origin is not None and issubclass(_class(origin), Mapping):
        return pa.array([None if v is None else _json(v) for v in values], pa.string())
    return _scalars(values, str if origin is Literal else hint)


def values_of(array: Columns, hint: Any) -> list[Any]:
    """The values that `column` made an array from."""
    optional = without_none(hint) is not hint
    hint = without_none(hint)
    if is_dataclass(hint):
        return _from_struct(array, hint)
    origin = get_origin(hint)
    if origin is np.ndarray:
        return _from_arrays(array, get_args(get_args(hint)[1])[0])
    if origin is tuple:
        return _from_lists(array, get_args(hint)[0])
    if origin is not None and issubclass(_class(origin), Mapping):
        return [None if text is None else json.loads(text) for text in array.to_pylist()]
    return _from_scalars(array, str if origin is Literal else hint, optional)


def _class(origin: Any) -> type:
    return origin if isinstance(origin, type) else object


def _json(mapping: Mapping[str, Any]) -> str:
    return json.dumps(to_plain(mapping), separators=(",", ":"), default=str)


def _struct(values: Sequence[Any], kind: Any) -> Columns:
    hints = get_type_hints(kind)
    names = [f.name for f in fields(kind)]
    arrays = [column([getattr(v, name, None) for v in values], hints[name]) for name in names]
    absent = pa.array([v is None for v in values], pa.bool_())
    return pa.StructArray.from_arrays(arrays, names=names, mask=absent)


def _from_struct(array: Columns, kind: Any) -> list[Any]:
    names = [array.type.field(n).name for n in range(array.type.num_fields)]
    records = _records(dict(zip(names, array.flatten(), strict=True)), kind, len(array))
    present = array.is_valid().to_pylist()
    return [record if there else None for record, there in zip(records, present, strict=True)]


def _records(columns: Mapping[str, Columns], kind: Any, length: int) -> Iterable[Any]:
    hints = get_type_hints(kind)
    items = [
        values_of(columns[f.name], hints[f.name])
        if f.name in columns
        else [_default(f, kind)] * length
        for f in fields(kind)
    ]
    names = [f.name for f in fields(kind)]
    for row in zip(*items, strict=True):
        yield kind(**dict(zip(names, row, strict=True)))


def _default(absent: Any, kind: type) -> Any:
    if absent.default is not MISSING:
        return absent.default
    if absent.default_factory is not MISSING:
        return absent.default_factory()
    raise KeyError(f"{kind.__name__}.{absent.name}")


def _arrays(values: Sequence[Any], hint: Any) -> Columns:
    dtype = get_args(get_args(hint)[1])[0]
    parts = [np.zeros(0, dtype) if v is None else np.asarray(v, dtype) for v in values]
    flat = _narrowed(np.concatenate([np.zeros(0, dtype), *parts]))
    return pa.LargeListArray.from_arrays(_offsets(map(len, parts)), pa.array(flat))


def _narrowed(flat: Any) -> Any:
    """Integers in the narrowest type that holds them all."""
    if flat.dtype.kind != "i" or not flat.size:
        return flat
    low, high = int(flat.min()), int(flat.max())
    return flat.astype(np.min_scalar_type(min(low, -1 - high) if low < 0 else high))


def _from_arrays(array: Columns, dtype: Any) -> list[Any]:
    flat = array.values.to_numpy().astype(dtype, copy=False)
    flat.flags.writeable = False  # all values of a column share it
    return [flat[a:b] for a, b in pairwise(array.offsets.to_pylist())]


def _lists(values: Sequence[Any], item: Any) -> Columns:
    parts = [() if v is None else v for v in values]
    flat = [element for part in parts for element in part]
    return pa.LargeListArray.from_arrays(_offsets(map(len, parts)), column(flat, item))


def _from_lists(array: Columns, item: Any) -> list[Any]:
    flat = values_of(array.values, item)
    return [tuple(flat[a:b]) for a, b in pairwise(array.offsets.to_pylist())]


def _offsets(lengths: Iterable[int]) -> Columns:
    return pa.array(accumulate(lengths, initial=0), pa.int64())


def _scalars(values: Sequence[Any], kind: Any) -> Columns:
    if kind is str:
        values = [None if v is None else to_text(v) for v in values]
    try:
        return pa.array(values, _SCALARS[kind])
    except UnicodeEncodeError:  # names of a damaged dump may hold bytes that are no text
        packed = [None if v is None else v.encode("utf-8", "surrogatepass") for v in values]
        return pa.array(packed, pa.binary())


def _from_scalars(array: Columns, kind: Any, optional: bool) -> list[Any]:
    if pa.types.is_binary(array.type):
        texts = array.to_pylist()
        return [None if t is None else t.decode("utf-8", "surrogatepass") for t in texts]
    if kind is str:
        return [None if t is None else from_text(t) for t in array.to_pylist()]
    if optional:
        return list(array.to_pylist())
    whole = pc.fill_null(array, _ZEROS[kind])  # nulls lie under absent records only
    return list(whole.to_numpy(zero_copy_only=False).tolist())


def _whole(chunked: Columns) -> Columns:
    return chunked.chunk(0) if chunked.num_chunks == 1 else pa.concat_arrays(chunked.chunks)
