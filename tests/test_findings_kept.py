"""Findings beside a comparison, read without the replays they came with."""

from __future__ import annotations

from pathlib import Path

import fakes

from store import diagnoses


def test_findings_are_read_alone(tmp_path: Path) -> None:
    found = (fakes.finding(), fakes.finding(confidence=0.25))
    (tmp_path / "c0ffee").mkdir()
    diagnoses.write(tmp_path, fakes.diagnosis(fakes.comparison(), findings=found))
    (tmp_path / "c0ffee" / "replays.parquet").unlink()
    kept = diagnoses.findings(tmp_path, "c0ffee")
    assert [(f.id, f.side, f.confidence) for f in kept] == [
        (f.id, f.side, f.confidence) for f in found
    ]


def test_without_a_diagnosis_or_with_a_damaged_one_there_are_none(tmp_path: Path) -> None:
    assert diagnoses.findings(tmp_path, "gone") == ()
    (tmp_path / "c0ffee").mkdir()
    (tmp_path / "c0ffee" / "diagnosis.json").write_text('{"findings": [{}]}')
    assert diagnoses.findings(tmp_path, "c0ffee") == ()
