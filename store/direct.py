"""Comparisons of a command, without a workspace: on a cluster node next to the data, say."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.compare import ENGINE_VERSION
from analysis.diagnose import diagnose
from analysis.findings import explain
from core.comparison import Comparison, Judgement, Settings
from core.errors import LoadError
from core.runs import Run
from language import say
from metrics import METRICS
from metrics.engine.place import cache_folder
from store import bundles, comparisons, derived, diagnoses, ledgers, thumbnails
from store.comparing import measured_by, recorded
from store.comparisons import Kept
from store.confinement import Bounds
from store.ledger import FileLedger
from store.options import Options, workspace_root
from store.workers import Workers

_OWNER = "command"
_UNPACK_S = 600.0


@dataclass(frozen=True, slots=True)
class Saving:
    """Where a comparison is saved, None for nowhere, and where what was measured is meanwhile."""

    path: Path | None
    folder: Path
    ledger: FileLedger


@contextmanager
def ledger(
    dumps: tuple[Path, Path], runs: tuple[Run, Run], settings: Settings, save: Path | None
) -> Iterator[Saving]:
    """A ledger for two dumps; beside the file to save, it lets a killed command go on."""
    keys = [(str(path.resolve()), run.fingerprint) for path, run in zip(dumps, runs, strict=True)]
    key = measured_by(ENGINE_VERSION, settings, keys)
    with contextlib.ExitStack() as stack:
        if save is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="px-")))
            opened = ledgers.opened(folder, key)
        else:
            if not save.absolute().parent.is_dir():
                raise LoadError(
                    say("There is no folder {parent}.", parent=save.parent), say("Make it first.")
                )
            folder = save.absolute().parent
            opened = ledgers.opened(folder, key, metrics=tuple(METRICS))
        yield Saving(save, folder, stack.enter_context(opened))


def save(to: Saving, comparison: Comparison, runs: tuple[Run, Run]) -> None:
    """Write the bundle of a comparison, with its findings and thumbnails of its worst pairs."""
    assert to.path is not None
    found = diagnose(*runs, comparison, explain=explain)
    made = derived.derive(comparison, found)
    kept = Kept(recorded(comparison, made[0]), "", "", ENGINE_VERSION)
    with comparisons.drafted(to.folder, _OWNER) as folder:
        comparisons.write(folder, comparison, kept, owner=_OWNER, ledger=to.ledger, made=made)
        diagnoses.write(folder, found)
        place = folder / comparison.id
        thumbnails.write(place, thumbnails.drawn(runs, comparison, made[1]))
        bundles.save(to.path, place)
    ledgers.remove(to.ledger)


@contextmanager
def opened(path: Path) -> Iterator[tuple[Comparison, Judgement]]:
    """A bundle's comparison and judgement; LoadError when the file is none."""
    bundle = bundles.bundle_at(path.resolve())
    if bundle is None:
        raise LoadError(
            say("{path} is no saved comparison.", path=path),
            say("`compare --save FILE` writes one."),
        )
    with tempfile.TemporaryDirectory(prefix="px-") as folder:
        bounds: Any = Bounds(
            readable=(str(bundle), str(cache_folder())),
            writable=(folder,),
            private=str(workspace_root()),
            nbytes=Options().memory,
        )
        workers = Workers(1, bounds, preload=("store.bundles",))
        try:
            kept = workers.call(
                say("read {name}", name=path.name),
                bundles.take,
                bundle,
                Path(folder),
                _OWNER,
                timeout_s=_UNPACK_S,
            )
        finally:
            workers.close()
        comparison = comparisons.read(Path(folder), kept.record.id)
        yield comparison, derived.derived(Path(folder) / comparison.id, comparison)[0]
