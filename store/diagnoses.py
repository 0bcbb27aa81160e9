"""Diagnoses on disk, beside the comparison they belong to: complete or not there.

`diagnosis.json` holds the findings, `replays.parquet` the replayed operators. Both are written
beside their place and renamed, the findings last: whoever sees them sees all of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.findings.texts import describe
from core.findings import Diagnosis, Finding, Replay
from store import tables
from store.derived import made_by
from store.jsonable import from_plain, to_plain

_FINDINGS, _REPLAYS = "diagnosis.json", "replays.parquet"
FILES = frozenset({_FINDINGS, _REPLAYS})


def write(folder: Path, diagnosis: Diagnosis) -> None:
    """Keep the diagnosis of a comparison that is kept in `folder`; replaces an older one."""
    place = folder / diagnosis.comparison
    mark = f".{secrets.token_hex(6)}"
    replays, findings = place / f"{_REPLAYS}{mark}", place / f"{_FINDINGS}{mark}"
    head = {
        "made_by": made_by(),
        "verdict": diagnosis.verdict,
        "findings": to_plain(diagnosis.findings),
        "not_replayed": to_plain(diagnosis.not_replayed),
    }
    try:
        tables.write(replays, diagnosis.replays, Replay)
        findings.write_text(json.dumps(head), encoding="utf-8")
        os.replace(replays, place / _REPLAYS)  # noqa: PTH105 - atomic, whatever is there
        os.replace(findings, place / _FINDINGS)  # noqa: PTH105
    finally:
        for draft in (replays, findings):
            draft.unlink(missing_ok=True)


def read(folder: Path, comparison_id: str, *, of_any_version: bool = False) -> Diagnosis | None:
    """The diagnosis of a comparison; None when there is none that can be read.

    One that another version of the analysis made counts only where it is asked for.
    """
    place = folder / comparison_id
    with contextlib.suppress(OSError, KeyError, ValueError, TypeError):
        head = _head(place)
        if head["made_by"] != made_by() and not of_any_version:
            return None
        findings = _findings_of(head)
        return Diagnosis(
            comparison=comparison_id,
            verdict=head["verdict"],
            findings=findings,
            replays=tables.read(place / _REPLAYS, Replay),
            not_replayed=head["not_replayed"],
        )
    return None


def findings(folder: Path, comparison_id: str) -> tuple[Finding, ...]:
    """The findings kept with a comparison, whatever version made them; none without a diagnosis."""
    with contextlib.suppress(OSError, KeyError, ValueError, TypeError):
        return _findings_of(_head(folder / comparison_id))
    return ()


def _head(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place / _FINDINGS).read_text(encoding="utf-8"))
    return found


def _findings_of(head: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Findings that can all be put in words; they may have come in a bundle from anywhere."""
    found: tuple[Finding, ...] = from_plain(tuple[Finding, ...], head["findings"])
    for finding in found:
        describe(finding)
    return found
