"""Finding causes, inside a confined worker process: the comparison is read there, not sent."""

from __future__ import annotations

from pathlib import Path

from analysis.diagnose import diagnose
from analysis.findings import explain
from analysis.repro import bundle
from core.findings import Diagnosis
from core.runs import Run
from store import comparisons, diagnoses


def find_causes(reference: Run, candidate: Run, *, folder: str, kept: str) -> Diagnosis:
    """The diagnosis of a kept comparison; it is kept beside it."""
    place = Path(folder)
    found = diagnose(reference, candidate, comparisons.read(place, kept), explain=explain)
    diagnoses.write(place, found)
    return found


def make_bundle(reference: Run, candidate: Run, *, folder: str, kept: str, tensor: str) -> bytes:
    """The repro bundle of one operator call of a kept comparison."""
    compared = comparisons.read(Path(folder), kept)
    return bundle(reference, candidate, comparison=compared, tensor=tensor)
