"""A comparison as one file: statistics, judgement, coverage and thumbnails, without the dumps.

A ZIP archive of stored members: `bundle.json` first, then the files of a comparison's folder. It
comes from anywhere, so it is read in a confined worker: only members of known names are taken, none
is compressed as a whole, every frame and column is checked, and the id must follow from the rest.
"""

from __future__ import annotations

import itertools
import json
import shutil
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.compare import comparison_id
from core.comparison import Comparison
from core.errors import LoadError, NotHereError
from language import say
from store import comparisons, derived, diagnoses, thumbnails
from store.comparing import recorded
from store.comparisons import Kept
from store.kept_pairs import KeptPairs
from store.ledger import frames_of
from store.records import SAVED_COMPARISON as FORMAT

VERSION = 1
_HEAD = "bundle.json"
_TABLES = ("pairs", "places", "unmatched_reference", "unmatched_candidate")
_NEEDED = frozenset({"meta.json", "stats.ledger", *(f"{name}.parquet" for name in _TABLES)})
_KNOWN = _NEEDED | diagnoses.FILES | {thumbnails.NAME}
_MOST_TEXT = 64 << 20  # bytes of JSON
_MOST_DECODED = 4 << 30  # bytes of one table, decompressed
_BROKEN = (OSError, KeyError, ValueError, TypeError, zipfile.BadZipFile, NotHereError)
_START = b"PK\x03\x04"
_HINT = say("It may be cut short: copy it again, or save the comparison anew.")


def save(path: Path, folder: Path) -> None:
    """Write the bundle of the comparison in a folder, whole or not at all."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED) as archive:
            head = {"format": FORMAT, "version": VERSION, "id": folder.name}
            archive.writestr(_HEAD, json.dumps(head))
            for member in sorted(folder.iterdir()):
                if member.name in _KNOWN:
                    archive.write(member, member.name)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def bundle_at(path: Path) -> Path | None:
    """The bundle that a path is, or that is the only file in it (an upload); None for a dump."""
    if path.is_dir():
        inside = [child for child in path.iterdir() if not child.name.startswith(".")]
        if len(inside) != 1:
            return None
        path = inside[0]
    if path.is_symlink() or not path.is_file():
        return None
    with path.open("rb") as file:
        start = file.read(len(_START) + 26 + len(_HEAD))
    return path if start.startswith(_START) and start.endswith(_HEAD.encode()) else None


def take(path: Path, folder: Path, owner: str) -> Kept:
    """Unpack a bundle into the folder of comparisons; LoadError if it is not what it should be.

    What follows from the statistics is derived anew. A comparison that is there already stays as it
    is. Run it in a confined worker.
    """
    with comparisons.drafted(folder, owner) as draft:
        try:
            place = _unpacked(path, draft)
            comparison, engine = _checked(place)
            found = diagnoses.read(place.parent, place.name, of_any_version=True)
            made = derived.derive(comparison, found)
            kept = Kept(recorded(comparison, made[0]), "", "", engine)
            thumbnails.read(place)
        except _BROKEN as error:
            raise LoadError(
                say("{name} is no whole comparison: {error}", name=path.name, error=error), _HINT
            ) from error
        derived.write(place, made)
        comparisons.write_meta(place, comparison, kept)
        comparisons.settle(place, folder / place.name)
        return kept


def _unpacked(path: Path, folder: Path) -> Path:
    """Copy the members into a folder named by the id the bundle claims."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        _check_members([member.filename for member in members])
        if any(m.compress_type or m.file_size > path.stat().st_size for m in members):
            raise ValueError(say("a member is compressed"))
        head = json.loads(archive.read(_HEAD)[:_MOST_TEXT])
        if (head["format"], head["version"]) != (FORMAT, VERSION):
            raise ValueError(
                say(
                    "its version is {version}, here {version2} is known",
                    version=head["version"],
                    version2=VERSION,
                )
            )
        name = str(head["id"])
        if not name.isalnum():
            raise ValueError(say("its id is none"))
        place = folder / name
        place.mkdir()
        for member in members[1:]:
            with archive.open(member) as source, (place / member.filename).open("wb") as target:
                shutil.copyfileobj(source, target)
    return place


def _check_members(names: list[str]) -> None:
    if names[:1] != [_HEAD] or len(set(names)) != len(names):
        raise ValueError(say("its members are out of order"))
    unknown, missing = set(names[1:]) - _KNOWN, _NEEDED - set(names)
    if unknown or missing:
        raise ValueError(
            say(
                "{unknown} members are unknown, {missing} are missing",
                unknown=len(unknown),
                missing=len(missing),
            )
        )


def _checked(place: Path) -> tuple[Comparison, int]:
    """The comparison and the version of its engine, after a check of all that readers rely on."""
    if (place / "meta.json").stat().st_size > _MOST_TEXT:
        raise ValueError(say("its description is too long"))
    for path in place.glob("*.parquet"):
        _check_table(path)
    rows = _rows_of_frames(place / "stats.ledger")
    comparison = comparisons.read(place.parent, place.name)
    assert isinstance(comparison.pairs, KeptPairs)
    if not all(rows.get(frame, 0) > row >= 0 for frame, row in comparison.pairs.places()):
        raise ValueError(say("it refers to statistics that it does not hold"))
    (kept,) = comparisons.kept(place.parent)
    made = comparison_id(
        comparison.reference,
        comparison.candidate,
        comparison.settings,
        comparison.pairs,
        engine=kept.engine,
    )
    if made != place.name:
        raise ValueError(say("its id does not follow from what it holds"))
    return comparison, kept.engine


def _check_table(path: Path) -> None:
    file = pq.ParquetFile(path)
    groups = (file.metadata.row_group(n) for n in range(file.metadata.num_row_groups))
    if sum(group.total_byte_size for group in groups) > _MOST_DECODED:
        raise ValueError(say("{name} is too large", name=path.name))
    for n in range(file.metadata.num_row_groups):
        file.read_row_group(n).validate(full=True)


def _rows_of_frames(path: Path) -> dict[int, int]:
    """Rows of each frame of a ledger by its place; every one is whole and well-formed."""
    rows = {}
    for at, content in itertools.islice(frames_of(path), 1, None):  # the first is the key
        batch = pa.ipc.open_stream(content).read_next_batch()
        batch.validate(full=True)
        rows[at] = batch.num_rows
    return rows
