"""Finding causes, inside a confined worker process: the comparison is read there, not sent."""

from __future__ import annotations

from pathlib import Path

from analysis.diagnose import DIAGNOSIS_VERSION, diagnose
from core.findings import Diagnosis
from core.runs import Run
from store import comparisons, diagnoses


def find_causes(reference: Run, candidate: Run, *, folder: str, kept: str) -> Diagnosis:
    """The diagnosis of a kept comparison; it is kept beside it."""
    place = Path(folder)
    found = diagnose(reference, candidate, comparisons.read(place, kept))
    diagnoses.write(place, found, version=DIAGNOSIS_VERSION)
    return found
