"""Measured pieces as bytes: what workers send back, and what is kept of a comparison.

A package is an Arrow IPC stream of one record batch: a row a piece, a column a field of its outline
(`outline.…`), of its statistics (`stats.…`) and a metric (`metric.…`). Columns are compressed
singly, so reading few of them costs little.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, get_type_hints

import pyarrow as pa

from analysis.batches import Batch
from analysis.measuring import Measured, Outline, Told, measure
from core.stats import PairStats
from metrics import METRICS
from store import tables

Columns = Mapping[str, Any]  # Arrow arrays

_HINTS = {
    **{f"outline.{name}": hint for name, hint in get_type_hints(Outline).items()},
    **{f"stats.{name}": hint for name, hint in get_type_hints(PairStats).items()},
}
_OPTIONS = {"compression": pa.Codec("zstd", compression_level=1)}


def measured_package(
    batch: Batch, told: Told = lambda _nbytes, _where: None, *, metrics: Sequence[str] = ()
) -> bytes:
    """Measure a batch, in a worker: the package of its pieces, with these metrics of each."""
    return package(measure(batch, told), metrics)


def package(measured: Sequence[Measured], metrics: Sequence[str] = ()) -> bytes:
    """Pieces with the values of some metrics, as bytes."""
    outlines = tables.column([each.outline for each in measured], Outline)
    stats = tables.column([each.stats for each in measured], PairStats)
    columns = {
        **{f"outline.{f.name}": outlines.field(f.name) for f in fields(Outline)},
        **{f"stats.{f.name}": stats.field(f.name) for f in fields(PairStats)},
        **{f"metric.{name}": _values(measured, name) for name in metrics},
    }
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(**_OPTIONS)) as out:
        out.write_batch(batch)
    kept: bytes = sink.getvalue().to_pybytes()
    return kept


def outlines_of(packed: bytes) -> list[Outline]:
    """The outlines of a package; no statistics are decoded."""
    names = [f.name for f in fields(Outline)]
    columns = columns_of(packed, [f"outline.{name}" for name in names])
    values = (values_of(columns, f"outline.{name}") for name in names)
    return [Outline(*row) for row in zip(*values, strict=True)]


def columns_of(packed: Any, names: Iterable[str]) -> Columns:
    """Some columns of a package; ValueError (pyarrow's) when it is none, KeyError for others."""
    wanted = list(names)
    whole = pa.ipc.open_stream(packed)
    places = [whole.schema.get_field_index(name) for name in wanted]
    if -1 in places:
        raise KeyError(wanted[places.index(-1)])
    options = pa.ipc.IpcReadOptions(included_fields=places, use_threads=False)
    batch = pa.ipc.open_stream(packed, options=options).read_next_batch()
    return {name: batch.column(name) for name in wanted}


def values_of(columns: Columns, name: str) -> list[Any]:
    """A column of an outline or of statistics as Python values."""
    return tables.values_of(columns[name], _HINTS[name])


def _values(measured: Sequence[Measured], name: str) -> Any:
    metric = METRICS[name]
    return pa.array(
        [math.nan if each.stats is None else metric(each.stats) for each in measured], pa.float64()
    )
