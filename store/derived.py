"""What follows from a comparison, kept beside it: the judgement, and the table with all metrics.

A fingerprint of the code that derives it stands in the file: another version derives it anew, from
the statistics, without the dumps.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from blake3 import blake3
from pyarrow import feather

from analysis.table import SAID, pair_table
from analysis.verdict import judge
from core.comparison import Comparison, Judgement, Pair
from core.findings import Diagnosis
from core.stats import FloatArray, PairStats
from metrics import METRICS
from store.jsonable import from_plain, from_text, to_plain, to_text
from store.kept_stats import Frames, KeptStats
from store.options import PROJECT

NAME = "derived.arrow"  # Arrow IPC: read seven times as fast as Parquet of the same size
_DERIVING = ("core", "metrics", "analysis")  # packages
_COLUMNS = {  # of the table, for what the judgement says of each pair
    "floors": "floor",
    "times_floor": "times_floor",
    "inherited": "inherited",
    "added": "added",
    "verdicts": "verdict",
}
_HEAD = b"judgement"
_MADE_BY = b"made_by"

Derived = tuple[Judgement, pd.DataFrame]


def derived(place: Path, comparison: Comparison, diagnosis: Diagnosis | None = None) -> Derived:
    """Judgement and table of the comparison in a folder: as kept there, else made and kept now."""
    with contextlib.suppress(OSError, KeyError, ValueError):
        return _read(place / NAME)
    made = derive(comparison, diagnosis)
    with contextlib.suppress(OSError):  # a workspace that is full or read-only still answers
        write(place, made)
    return made


def derive(comparison: Comparison, diagnosis: Diagnosis | None = None) -> Derived:
    """Judgement, from the diagnosis where there is one, and whole table of a comparison."""
    judgement = judge(comparison, diagnosis)
    return judgement, pair_table(comparison, judgement, values=metric_columns(comparison.pairs))


def write(place: Path, made: Derived) -> None:
    """Keep what was derived in a folder."""
    judgement, table = made
    head = {k: v for k, v in to_plain(judgement).items() if k not in _COLUMNS}
    said = {name: pd.Series(map(to_text, table[name]), index=table.index) for name in SAID}
    arrow = pa.Table.from_pandas(table.assign(**said), preserve_index=False)
    arrow = arrow.replace_schema_metadata(
        {**arrow.schema.metadata, _HEAD: json.dumps(head), _MADE_BY: made_by()}
    )
    draft = place / f".{NAME}-{secrets.token_hex(6)}"
    try:
        feather.write_feather(arrow, str(draft), compression="lz4")
        os.replace(draft, place / NAME)  # noqa: PTH105 - atomic, whatever is there
    finally:
        draft.unlink(missing_ok=True)


@functools.cache
def made_by() -> str:
    """Changes with the code that derives judgements and metrics."""
    digest = blake3()
    for package in _DERIVING:
        for path in sorted((PROJECT / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return str(digest.hexdigest())


def metric_columns(pairs: Sequence[Pair]) -> Mapping[str, FloatArray]:
    """Every metric of every pair, (pairs,): as it was measured where that is kept, else anew."""
    table = np.full((len(METRICS), len(pairs)), np.nan)
    kept = _KeptMetrics()
    for n, pair in enumerate(pairs):
        if pair.stats is not None:
            known = kept.row(pair.stats)
            table[:, n] = [m(pair.stats) for m in METRICS.values()] if known is None else known
    return dict(zip(METRICS, table, strict=True))


class _KeptMetrics:
    """Metrics kept beside the statistics; pairs that follow each other share a frame."""

    def __init__(self) -> None:
        self._at: tuple[Frames, int] | None = None
        self._values: FloatArray | None = None

    def row(self, stats: PairStats) -> FloatArray | None:
        """All metrics of a pair, (metrics,); None where they are not kept."""
        if not isinstance(stats, KeptStats) or len(stats.places) != 1:
            return None
        frame, row = stats.places[0]
        if self._at != (stats.frames, frame):
            self._at = (stats.frames, frame)
            self._values = None
            with contextlib.suppress(KeyError):
                self._values = stats.frames.metrics(frame, tuple(METRICS))
        return None if self._values is None else self._values[:, row]


def _read(path: Path) -> Derived:
    """What is kept in a file; KeyError when other code made it."""
    arrow = feather.read_table(path, memory_map=True)
    if arrow.schema.metadata[_MADE_BY] != made_by().encode():
        raise KeyError(path.name)
    table = arrow.to_pandas(split_blocks=True)  # NaN again where Arrow has nothing
    for name in SAID:
        known = {text: from_text(text) for text in table[name].unique()}
        table[name] = pd.Series([known[text] for text in table[name]], dtype=object)
    columns = {field: tuple(table[name].tolist()) for field, name in _COLUMNS.items()}
    head = json.loads(arrow.schema.metadata[_HEAD])
    return from_plain(Judgement, head | columns), table
