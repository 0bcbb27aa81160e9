"""Comparisons on disk: a folder each, complete or not there.

`meta.json` holds what is small, Parquet files the pairs and what has no partner, `stats.ledger` the
statistics as they were measured. A folder is written beside its place, flushed and renamed, so a
reader sees all of it or nothing. Reading takes what is small; pairs are decoded when asked for.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.comparison import Comparison, Pair, RunSummary, Settings
from core.coverage import Coverage
from core.errors import NotHereError
from core.tensors import TensorInfo
from language import say
from store import derived, tables
from store.derived import Derived
from store.jsonable import from_plain, to_plain
from store.kept_pairs import KeptPairs, Places
from store.ledger import FileLedger
from store.records import ComparisonRecord

_DRAFT = ".draft-"
_META = "meta.json"
_LEDGER = "stats.ledger"
_UNMATCHED = ("unmatched_reference", "unmatched_candidate")


@dataclass(frozen=True, slots=True)
class Kept:
    """What the catalogue says of a comparison, kept with it so that the catalogue can be remade."""

    record: ComparisonRecord
    reference_run: str
    candidate_run: str
    engine: int


def write(
    folder: Path,
    comparison: Comparison,
    kept: Kept,
    *,
    owner: str,
    ledger: FileLedger | None = None,
    made: Derived | None = None,
) -> None:
    """Keep a comparison under its id; a whole one that is there stays, it has the same content.

    `ledger` is where its statistics are already, on the same disk; without one they are written.
    `made` is what was derived from it already.
    """
    with drafted(folder, owner) as draft:
        _write_parts(draft, comparison, kept, ledger)
        if made is not None:
            derived.write(draft, made)
        settle(draft, folder / comparison.id)


@contextmanager
def drafted(folder: Path, owner: str) -> Iterator[Path]:
    """An empty folder beside the comparisons that nobody sees; what is left of it is removed."""
    draft = folder / f"{_DRAFT}{owner}-{secrets.token_hex(6)}"
    draft.mkdir(mode=0o700)
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def settle(draft: Path, place: Path) -> None:
    """Make a folder the comparison at its place, flushed; a whole one that is there stays."""
    for path in [*draft.iterdir(), draft]:
        _flush(path)
    try:
        draft.rename(place)
    except OSError:
        if not place.is_dir():
            raise
        with contextlib.suppress(NotHereError):
            read(place.parent, place.name)
            return  # the same comparison, whole
        place.rename(draft.with_name(f"{draft.name}-damaged"))  # swept at the next start
        draft.rename(place)
    _flush(place.parent)


def _write_parts(
    draft: Path, comparison: Comparison, kept: Kept, ledger: FileLedger | None
) -> None:
    if ledger is None:
        with FileLedger(draft / _LEDGER, key=comparison.id) as made:
            places = _places(comparison.pairs, made)
    else:
        places = _places(comparison.pairs, ledger)
        (draft / _LEDGER).hardlink_to(ledger.path)
    tables.write(draft / "pairs.parquet", comparison.pairs, Pair, leaving="stats")
    tables.write(draft / "places.parquet", places, Places)
    for name in _UNMATCHED:
        tables.write(draft / f"{name}.parquet", getattr(comparison, name), TensorInfo)
    write_meta(draft, comparison, kept)


def write_meta(draft: Path, comparison: Comparison, kept: Kept) -> None:
    """Write what is small; all else is in the draft already."""
    size = (draft / _LEDGER).stat().st_size
    meta = {"comparison": _head(comparison), "kept": to_plain(kept), "ledger": size}
    (draft / _META).write_text(json.dumps(meta), encoding="utf-8")


def _places(pairs: Sequence[Pair], ledger: FileLedger) -> list[Places]:
    """Where the statistics of each pair are, those that were not in the ledger yet included."""
    elsewhere = [p.stats for p in pairs if p.stats is not None and not ledger.holds(p.stats)]
    added = ledger.keep(elsewhere)
    places = []
    for pair in pairs:
        stats = pair.stats
        if stats is not None and not ledger.holds(stats):
            stats = next(added)
        places.append(Places.of(stats))
    return places


def read(folder: Path, comparison_id: str) -> Comparison:
    """The comparison of this id; raises NotHereError when there is none that can be read."""
    place = _place(folder, comparison_id)
    try:
        meta = json.loads((place / _META).read_text(encoding="utf-8"))
        if (place / _LEDGER).stat().st_size != meta["ledger"]:
            raise ValueError("its statistics are not whole")
        head = meta["comparison"]
        pairs = KeptPairs(place)
        unmatched = {n: tables.read(place / f"{n}.parquet", TensorInfo) for n in _UNMATCHED}
    except (OSError, KeyError, ValueError) as error:
        raise NotHereError(
            say(
                "Comparison {comparison_id} is here but cannot be read: {error}.",
                comparison_id=comparison_id,
                error=error,
            ),
            say("It was damaged or made by another version: compare the two runs again."),
        ) from error
    return Comparison(
        id=comparison_id,
        reference=from_plain(RunSummary, head["reference"]),
        candidate=from_plain(RunSummary, head["candidate"]),
        settings=from_plain(Settings, head["settings"]),
        coverage=from_plain(Coverage, head.get("coverage")),
        pairs=pairs,
        **unmatched,
    )


def kept(folder: Path, *, known: frozenset[str] = frozenset()) -> Iterator[Kept]:
    """What is kept with each comparison not `known` yet; unreadable ones are left out."""
    for path in sorted(folder.glob(f"[!.]*/{_META}")):
        if path.parent.name in known:
            continue
        with contextlib.suppress(OSError, KeyError, ValueError, TypeError):
            yield from_plain(Kept, json.loads(path.read_text(encoding="utf-8"))["kept"])


def exists(folder: Path, comparison_id: str) -> bool:
    """Whether a comparison of this id is kept."""
    return comparison_id.isalnum() and (folder / comparison_id / _META).is_file()


def sweep(folder: Path, is_alive: Callable[[str], bool]) -> None:
    """Remove what writers that are gone left half-written."""
    for draft in folder.glob(f"{_DRAFT}*"):
        if not is_alive(draft.name.removeprefix(_DRAFT).split("-")[0]):
            shutil.rmtree(draft, ignore_errors=True)


def _head(comparison: Comparison) -> dict[str, Any]:
    return {
        name: to_plain(getattr(comparison, name))
        for name in ("reference", "candidate", "settings", "coverage")
    }


def _place(folder: Path, comparison_id: str) -> Path:
    if not exists(folder, comparison_id):  # also keeps a link from naming any other folder
        raise NotHereError(
            say("This server has no comparison {comparison_id!r}.", comparison_id=comparison_id),
            say("Compare the two runs here, or open the link on the server it came from."),
        )
    return folder / comparison_id


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
