"""The command findings, and the stories of the samples as the diagnosis tells them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import cli
from analysis.compare import compare
from analysis.diagnose import diagnose
from analysis.findings import explain
from analysis.verdict import judge
from loaders import open_run

SAMPLES = Path(__file__).parent.parent / "sample_dumps"
INDEX = json.loads((SAMPLES / "index.json").read_text())
FAULT = next(s for s in INDEX if s["id"] == "decoder-fault")
SIDES = [str(SAMPLES / FAULT[side]) for side in ("reference", "candidate")]


@pytest.mark.parametrize("sample", INDEX, ids=lambda s: s["id"])
def test_every_sample_tells_its_story(sample: dict[str, Any]) -> None:
    runs = [open_run(SAMPLES / sample[side]) for side in ("reference", "candidate")]
    comparison = compare(*runs)
    found = diagnose(*runs, comparison, explain=explain)
    expect = sample["expect"]
    assert found.verdict == expect["verdict"]
    judged = judge(comparison, found)
    assert judged.verdict == expect["verdict"]
    if "module" in expect:
        first = found.findings[0]
        assert (first.operator, first.slot) == (expect["module"], expect["slot"])
        assert first.side == "candidate"
        assert judged.first_divergence is not None
    else:
        assert not found.findings


def test_the_command_writes_findings_and_a_bundle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, parcel = tmp_path / "f.json", tmp_path / "call.zip"
    code = cli.main(["findings", *SIDES, "--json", str(out), "--bundle", str(parcel)])
    assert code == 1
    written = json.loads(out.read_text())
    assert written["first"]["module"] == FAULT["expect"]["module"]
    assert written["first"]["mechanisms"]
    assert "rerun.py" in zipfile.ZipFile(parcel).namelist()
    said = capsys.readouterr().out
    assert said.startswith("FAULT")
    assert "next: " in said


def test_a_batch_names_every_pair_also_one_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = tmp_path / "pairs.txt"
    lines.write_text(f"same\t{SIDES[0]}\t{SIDES[0]}\n# a remark\ngone\t{tmp_path}/x\t{SIDES[0]}\n")
    out = tmp_path / "all.json"
    assert cli.main(["findings", "--batch", str(lines), "--json", str(out)]) == 2
    answers = json.loads(out.read_text())
    assert answers["same"]["verdict"] == "rounding"
    assert answers["gone"]["verdict"] == "uncompared"
    assert "same  rounding" in capsys.readouterr().out


def test_a_yardstick_gives_the_error_in_its_units(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["findings", *SIDES, "--yardstick", SIDES[0]])
    assert "against the yardstick: FAULT" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "two dumps"),
        ([*SIDES, "--id", "f99"], "no finding 'f99'"),
        ([*SIDES, "--functions", "nothing.py"], "no file nothing.py"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["findings", *words]) == 2
    assert said in capsys.readouterr().err
